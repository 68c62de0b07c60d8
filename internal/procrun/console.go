package procrun

import (
	"context"
	"io"
	"os"
	"sync"
	"time"
)

// console is where a container's output goes, to its log and to those attached to it, and where its input comes from.
type console struct {
	*streams
	log   *logFile
	pumps []*pump
	lines []*logStream

	mu       sync.Mutex
	watchers map[*watcher]struct{}
}

func openConsole(c *container, logLimit int64) (*console, error) {
	log, err := openLog(c.logPath, logLimit)
	if err != nil {
		return nil, err
	}
	streams, err := openStreams(c.config.GetStdin(), c.config.GetTty(), c.spec.User)
	if err != nil {
		log.close()
		return nil, err
	}
	return &console{streams: streams, log: log, watchers: map[*watcher]struct{}{}}, nil
}

// begin starts reading what the container writes.
func (c *console) begin() {
	c.read(c.stdout, "stdout")
	if c.stderr != nil {
		c.read(c.stderr, "stderr")
	}
}

func (c *console) read(from *os.File, name string) {
	line := &logStream{log: c.log, name: name}
	c.lines = append(c.lines, line)
	c.pumps = append(c.pumps, startPump(from, func(data []byte) {
		line.write(data)
		c.show(data, name)
	}))
}

// EnlargePipes lets running containers write more, about 1 MB a stream, while this process reads nothing: before it is frozen.
func (r *Runtime) EnlargePipes() {
	for _, c := range r.allContainers() {
		c.mu.Lock()
		console := c.console
		c.mu.Unlock()
		if console != nil {
			console.enlarge()
		}
	}
}

// end completes the log after the container has ended.
func (c *console) end() {
	c.log.unblock()
	for i, pump := range c.pumps {
		pump.finish()
		c.lines[i].pass()
	}
	c.close()
}

func (c *console) close() {
	c.streams.close()
	c.log.close()
}

// watcher is a client that is attached to a container. One that is too slow is detached.
type watcher struct {
	stdout, stderr io.Writer
	chunks         chan chunk
	gone           chan struct{}
	once           sync.Once
}

type chunk struct {
	to   io.Writer
	data []byte
}

// slowWatcherTimeout is how long a container waits for a client that does not read what it is sent.
const slowWatcherTimeout = 5 * time.Second

func (c *console) watch(stdout, stderr io.Writer) *watcher {
	w := &watcher{stdout: stdout, stderr: stderr, chunks: make(chan chunk, 64), gone: make(chan struct{})}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watchers[w] = struct{}{}
	return w
}

func (c *console) unwatch(w *watcher) {
	w.leave()
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.watchers, w)
}

func (w *watcher) leave() { w.once.Do(func() { close(w.gone) }) }

// show gives data to all watchers of a stream.
func (c *console) show(data []byte, stream string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for w := range c.watchers {
		to := w.stdout
		if stream == "stderr" {
			to = w.stderr
		}
		if to == nil {
			continue
		}
		select {
		case w.chunks <- chunk{to, append([]byte(nil), data...)}:
		case <-w.gone:
		case <-time.After(slowWatcherTimeout):
			w.leave()
		}
	}
}

// run writes what comes for the watcher until it leaves, its context ends or the container is done.
func (w *watcher) run(ctx context.Context, done <-chan struct{}) {
	for {
		select {
		case chunk := <-w.chunks:
			if _, err := chunk.to.Write(chunk.data); err != nil {
				return
			}
		case <-w.gone:
			return
		case <-ctx.Done():
			return
		case <-done:
			for {
				select {
				case chunk := <-w.chunks:
					_, _ = chunk.to.Write(chunk.data)
				default:
					return
				}
			}
		}
	}
}
