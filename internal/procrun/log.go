package procrun

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// maxLogLine is where a longer line is cut into parts, as all of kubelet's runtimes do.
const maxLogLine = 16 << 10

// logFile is a container's log in kubelet's format: time, stream, F for a line or P for a part of one, content.
//
// kubelet looks at the sizes of logs from time to time, and a container can write gigabytes in between. One that has
// written as much as limit says is therefore held back until kubelet has moved its log away.
type logFile struct {
	path  string
	limit int64 // 0: none

	mu    sync.Mutex
	moved sync.Cond // the log has been reopened, or is about to be closed
	file  *os.File  // nil: kubelet wants no log
	size  int64
	lost  int  // bytes that could not be written since the last that could
	last  bool // the container has ended, and what it left in its pipes is all that comes
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

// letGo holds nobody back any more.
func (l *logFile) letGo() {
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

// append writes whole entries. On a full disk they are dropped, never half-written, and the container goes on; once
// there is room again the log says how much is missing.
func (l *logFile) append(entries []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.limit > 0 && l.size >= l.limit && !l.last {
		l.moved.Wait()
	}
	if l.file == nil {
		return
	}
	if l.lost > 0 {
		note := entry(nil, "stderr", 'F', fmt.Appendf(nil, "[%d bytes of log were lost: the disk was full]", l.lost))
		entries = append(note, entries...)
	}
	n, err := l.file.Write(entries)
	if err != nil {
		l.lost += len(entries)
		_ = l.file.Truncate(l.size)
		return
	}
	l.size, l.lost = l.size+int64(n), 0
}

func entry(to []byte, stream string, tag byte, content []byte) []byte {
	to = time.Now().UTC().AppendFormat(to, time.RFC3339Nano)
	to = append(append(append(to, ' '), stream...), ' ', tag, ' ')
	return append(append(to, content...), '\n')
}

// logStream cuts one stream of a container into the entries of its log.
type logStream struct {
	log  *logFile
	name string
	line []byte // begun and not ended yet
	out  []byte // reused
}

func (s *logStream) write(chunk []byte) {
	s.out = s.out[:0]
	for len(chunk) > 0 {
		end := bytes.IndexByte(chunk, '\n')
		part, rest := chunk, []byte(nil)
		if end >= 0 {
			part, rest = chunk[:end], chunk[end+1:]
		}
		for room := maxLogLine - len(s.line); len(part) > room; room = maxLogLine - len(s.line) {
			s.line = append(s.line, part[:room]...)
			s.emit('P')
			part = part[room:]
		}
		s.line = append(s.line, part...)
		if end >= 0 {
			s.emit('F')
		}
		chunk = rest
	}
	if len(s.out) > 0 {
		s.log.append(s.out)
	}
}

func (s *logStream) emit(tag byte) {
	s.out = entry(s.out, s.name, tag, s.line)
	s.line = s.line[:0]
}

// finish writes the last line of a stream that ended without a newline.
func (s *logStream) finish() {
	if len(s.line) > 0 {
		s.out = s.out[:0]
		s.emit('P')
		s.log.append(s.out)
	}
}

var errNotRunning = errors.New("it is not running")
