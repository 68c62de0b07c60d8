package recorder

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trainyard/trainyard/internal/record"
)

const (
	// maxEntry is more than an entry of a log can have: runtimes cut lines at 16 KiB.
	maxEntry = 256 << 10
	// maxRead is how much of one log is read before it is the others' turn.
	maxRead = 4 << 20
)

// file is the log of one run of a container that is being recorded.
//
// kubelet rotates a log that has grown too long: it renames the file, and the runtime begins a new one at the old path. The runtime may
// write a little more to the old file after the new one is there, so the old one is read once more before the new one is begun.
type file struct {
	log    record.Log
	path   string
	writer *record.LogWriter
	// open is the file that is read, offset how far. The files before must be read first; next is the one that has taken its place.
	open, next *os.File
	// pending are the files between open and next. whole says that none of these is missing.
	before, pending []*os.File
	whole           bool
	offset          int64
	// moved is when next was first seen, changed when something was last read.
	moved, changed time.Time
	// known finds the entries that were recorded by an earlier process, or from the file before.
	known known
	done  bool
}

// openFile begins to record a log, or continues.
func openFile(store *record.Store, namespace string, job types.UID, log record.Log, path string) (*file, error) {
	open, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	writer, err := store.WriteLog(namespace, job, log)
	if err != nil {
		return nil, errors.Join(err, open.Close())
	}
	f := &file{log: log, path: path, writer: writer, open: open, known: newKnown(writer)}
	f.before, _ = f.rotated()
	return f, nil
}

// rotated opens the other files that kubelet has moved away and that may have something new, in their order. If the open file is among
// them, nothing between is missing: they are whole.
func (f *file) rotated() (files []*os.File, whole bool) {
	own, err := f.open.Stat()
	if err != nil {
		return nil, false
	}
	names, _ := filepath.Glob(record.EscapeGlob(f.path) + ".*") // the pattern is valid
	last, _ := f.writer.Last()
	for _, name := range names { // they end with the time
		info, err := os.Stat(name)
		switch {
		case err != nil || strings.HasSuffix(name, ".tmp"):
			continue
		case os.SameFile(own, info):
			whole = true
			continue
		case info.ModTime().Before(last.Add(-time.Second)):
			continue // what it has is recorded
		}
		if file, err := os.Open(name); err == nil {
			files = append(files, file)
		}
	}
	return files, whole
}

// readWhole records a file that does not grow.
func (f *file) readWhole(file *os.File) error {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	var content io.Reader = file
	if strings.HasSuffix(file.Name(), ".gz") {
		var err error
		if content, err = gzip.NewReader(file); err != nil {
			return nil // it is being written, and the original is there
		}
	}
	began := f.known
	for buffer, have := make([]byte, maxEntry), 0; ; {
		n, err := content.Read(buffer[have:])
		have += n
		used, writeErr := f.record(buffer[:have])
		if writeErr != nil { // the file will be read again from its beginning
			if f.known.same == 0 { // what came before is recorded
				began = newKnown(f.writer)
				began.complete = true
			}
			f.known = began
			return fmt.Errorf("recording %s: %w", file.Name(), writeErr)
		}
		have = copy(buffer, buffer[used:have])
		if err != nil || have == len(buffer) {
			return nil
		}
	}
}

// record writes the whole entries of a text that are not known, and returns how much of it that was.
func (f *file) record(text []byte) (used int, err error) {
	whole := text[:bytes.LastIndexByte(text, '\n')+1]
	if len(whole) == 0 {
		return 0, nil
	}
	known := f.known
	fresh, lost := known.skip(whole)
	if lost {
		first, _ := record.ParseEntry(firstLine(fresh))
		fresh = append(record.GapEntry(first.Time, "the recorder did not run, and the log files of this time were removed meanwhile"), fresh...)
	}
	if len(fresh) > 0 {
		if err := f.writer.Write(fresh); err != nil {
			return 0, err
		}
	}
	f.known = known
	return len(whole), nil
}

// read records what was written since the last time, and goes on with the new file after a rotation. The buffer holds an entry at least.
func (f *file) read(now time.Time, buffer []byte) error {
	if f.done {
		return nil
	}
	if f.changed.IsZero() {
		f.changed = now
	}
	for total := 0; total < maxRead; {
		if err := f.readBefore(now); err != nil {
			return err
		}
		n, err := f.open.ReadAt(buffer, f.offset)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("recording %s: %w", f.path, err)
		}
		used, err := f.record(buffer[:n])
		if err != nil {
			return fmt.Errorf("recording %s: %w", f.path, err)
		}
		if used == 0 && !f.rotate(now) {
			return nil
		}
		f.offset, total = f.offset+int64(used), total+used
		if used > 0 {
			f.changed = now
		}
	}
	return nil
}

func (f *file) readBefore(now time.Time) error {
	for len(f.before) > 0 {
		if err := f.readWhole(f.before[0]); err != nil {
			return err
		}
		_ = f.before[0].Close()
		f.before, f.changed = f.before[1:], now
	}
	return nil
}

// rotate goes on with the new file if there is one, and reports that it did. The old one was read to its end. The new one is opened as soon
// as it is seen, because it may be deleted with its pod.
func (f *file) rotate(now time.Time) bool {
	if f.next != nil {
		if now.Sub(f.moved) < readInterval {
			return false
		}
		f.goOn()
		return true
	}
	own, err := f.open.Stat()
	if err != nil {
		return false
	}
	current, err := os.Stat(f.path)
	if err != nil || os.SameFile(own, current) {
		return false // it is not rotated, or the new file is not there yet
	}
	if next, err := os.Open(f.path); err == nil { // else it is rotated again
		f.next, f.moved = next, now
		f.pending, f.whole = f.rotated()
	}
	return false
}

// goOn takes the new file, after those that were there only between the old one and the new one.
func (f *file) goOn() {
	_ = f.open.Close()
	f.open, f.offset, f.before = f.next, 0, f.pending
	f.next, f.pending, f.moved = nil, nil, time.Time{}
	f.known = newKnown(f.writer)
	f.known.complete = f.known.complete || f.whole
}

// finish records the rest and closes the log.
func (f *file) finish(now time.Time, buffer []byte) error {
	for {
		before := f.offset
		if err := f.read(now, buffer); err != nil {
			return err
		}
		switch {
		case f.next != nil:
			f.goOn()
		case f.done || f.offset == before:
			return f.close()
		}
	}
}

// close seals the log.
func (f *file) close() error {
	if f.done {
		return nil
	}
	if err := f.writer.Close(); err != nil {
		return err
	}
	f.done = true
	return f.open.Close()
}

// known finds the entries that are recorded already, by their times.
type known struct {
	last time.Time
	same int
	// found says that the last entry which is recorded was met, complete that nothing can be missing.
	found, complete bool
}

func newKnown(w *record.LogWriter) known {
	last, same := w.Last()
	return known{last: last, same: same, complete: last.IsZero()}
}

// skip leaves out the entries at the beginning that are recorded. lost says that entries between the last recorded and these are missing.
func (k *known) skip(entries []byte) (fresh []byte, lost bool) {
	for k.same > 0 && len(entries) > 0 {
		line := firstLine(entries)
		e, ok := record.ParseEntry(line)
		switch {
		case ok && e.Time.After(k.last):
			lost = !k.found && !k.complete
			k.same = 0
			return entries, lost
		case ok && e.Time.Equal(k.last):
			k.found = true
			k.same--
		case ok:
			k.found = true
		}
		entries = entries[len(line)+1:]
	}
	return entries, false
}

func firstLine(text []byte) []byte {
	line, _, _ := bytes.Cut(text, []byte{'\n'})
	return line
}
