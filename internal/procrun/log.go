package procrun

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// maxLogLine is where a longer line is cut into parts, as all of kubelet's runtimes do.
const maxLogLine = 16 << 10

// partialLineDelay is how long the beginning of a line waits for the rest. Then it is written as a part, so that a progress bar is
// seen as it moves; and however small the pieces are in which a program writes, it makes five parts a second at most.
const partialLineDelay = 200 * time.Millisecond

// logFile is a container's log in kubelet's format: time, stream, F for a line or P for a part of one, content.
//
// kubelet looks at the sizes of logs from time to time, and a container can write gigabytes in between. One that has
// written as much as limit says is therefore held back until kubelet has moved its log away.
//
// kubelet joins a part with whatever entry follows, of either stream. So the line of one stream ends where the other one writes.
type logFile struct {
	path  string
	limit int64 // 0: none

	mu    sync.Mutex
	moved sync.Cond // the log has been reopened, or is about to be closed
	file  *os.File  // nil: kubelet wants no log
	size  int64
	lost  int  // bytes that could not be written since the last that could
	last  bool // the container has ended, and what it left in its pipes is all that comes

	batch []byte    // entries to be written at once; reused
	stamp time.Time // the last entry's. Each has a later one, because readers that come back begin after the last they know
	open  string    // the stream whose line the last entry left open
	was   string    // open, before the batch
}

func openLog(path string, limit int64) (*logFile, error) {
	l := &logFile{path: path, limit: limit}
	l.moved.L = &l.mu
	if path == "" {
		return l, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("creating log directory: %w", err)
	}
	return l, l.reopen()
}

// reopen continues in a new file at the same path, after kubelet has moved the old one away.
func (l *logFile) reopen() error {
	file, err := os.OpenFile(l.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o640)
	if err != nil {
		return fmt.Errorf("opening log: %w", err)
	}
	info, err := file.Stat()
	if err != nil {
		_ = file.Close()
		return fmt.Errorf("opening log: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		_ = l.file.Close()
	}
	l.file, l.size = file, info.Size()
	l.moved.Broadcast()
	return nil
}

// unblock lets the log grow beyond its limit: the container has ended.
func (l *logFile) unblock() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = true
	l.moved.Broadcast()
}

func (l *logFile) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		_ = l.file.Close()
		l.file = nil
	}
}

// begin waits until the log may grow, and begins a batch.
func (l *logFile) begin() {
	for l.limit > 0 && l.size >= l.limit && !l.last {
		l.moved.Wait()
	}
	l.batch, l.was = l.batch[:0], l.open
}

// add puts an entry into the batch, on a line of its stream.
func (l *logFile) add(stream string, tag byte, content []byte) {
	if l.lost > 0 && len(l.batch) == 0 {
		l.endLine()
		l.entry("stderr", 'F', fmt.Appendf(nil, "[%d bytes of log were lost: the disk was full]", l.lost))
	}
	if l.open != stream {
		l.endLine()
	}
	l.entry(stream, tag, content)
}

func (l *logFile) endLine() {
	if l.open != "" {
		l.entry(l.open, 'F', nil)
	}
}

func (l *logFile) entry(stream string, tag byte, content []byte) {
	now := time.Now().UTC().Round(0)
	if !now.After(l.stamp) {
		now = l.stamp.Add(1)
	}
	l.stamp, l.open = now, ""
	if tag == 'P' {
		l.open = stream
	}
	l.batch = now.AppendFormat(l.batch, time.RFC3339Nano)
	l.batch = append(append(append(l.batch, ' '), stream...), ' ', tag, ' ')
	l.batch = append(append(l.batch, content...), '\n')
}

// commit writes the batch. On a full disk it is dropped, never half-written, and the container goes on; once there is room
// again the log says how much is missing.
func (l *logFile) commit() {
	if l.file == nil || len(l.batch) == 0 {
		return
	}
	n, err := l.file.Write(l.batch)
	if err != nil {
		l.lost, l.open = l.lost+len(l.batch), l.was
		_ = l.file.Truncate(l.size)
		return
	}
	l.size, l.lost = l.size+int64(n), 0
}

// logStream cuts one stream of a container into the entries of its log.
type logStream struct {
	log  *logFile
	name string
	// line is what is begun and neither ended nor passed on yet; timer passes it on.
	line  []byte
	timer *time.Timer
}

func (s *logStream) write(chunk []byte) {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	s.log.begin()
	fresh := len(s.line) == 0
	for len(chunk) > 0 {
		part, rest, ended := bytes.Cut(chunk, []byte{'\n'})
		for room := maxLogLine - len(s.line); len(part) > room; room = maxLogLine - len(s.line) {
			s.line = append(s.line, part[:room]...)
			s.emit('P')
			part = part[room:]
		}
		s.line = append(s.line, part...)
		if ended {
			s.emit('F')
			fresh = true
		}
		chunk = rest
	}
	s.log.commit()
	if fresh && len(s.line) > 0 {
		s.schedulePass()
	}
}

// schedulePass writes the beginning of the line as a part when it has waited long enough.
func (s *logStream) schedulePass() {
	if s.timer == nil {
		s.timer = time.AfterFunc(partialLineDelay, s.pass)
		return
	}
	s.timer.Reset(partialLineDelay)
}

func (s *logStream) emit(tag byte) {
	s.log.add(s.name, tag, s.line)
	s.line = s.line[:0]
}

// pass passes on what there is of a line: when it has waited long enough, or when no more comes. There is never an empty
// part: kubelet takes that for the end of a line.
func (s *logStream) pass() {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	s.log.begin()
	if len(s.line) > 0 {
		s.emit('P')
	}
	s.log.commit()
}

// ReopenContainerLog continues a container's log in a new file.
func (r *Runtime) ReopenContainerLog(_ context.Context, id string) error {
	if err := r.running(id); err != nil {
		return fmt.Errorf("reopening log: %w", err)
	}
	c, err := r.container(id)
	if err != nil {
		return err
	}
	return c.console.log.reopen()
}
