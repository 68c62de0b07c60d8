package record

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// partSize is when a part of a log is sealed: small enough to be read for one page, large enough to compress well.
const partSize = 1 << 20

// Index is the place of a part in its log. It is in the comment of the part's gzip header.
type Index struct {
	// Line is how many lines the log has before this part, Lines how many end in it. Bytes is its size before compression.
	Line  int64 `json:"line"`
	Lines int64 `json:"lines"`
	Bytes int64 `json:"bytes"`
	// First and Last are the times of its first and last entry. Same is how many entries at its end have the time Last.
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	Same  int       `json:"same"`
	// Open says that the last entry does not end its line, End that the log ends with this part. Lost is why the part has no content any more.
	Open bool   `json:"open,omitempty"`
	End  bool   `json:"end,omitempty"`
	Lost string `json:"lost,omitempty"`
	gaps int64
}

// add counts entries.
func (x *Index) add(entries []byte) {
	for len(entries) > 0 {
		line, rest, _ := bytes.Cut(entries, []byte{'\n'})
		x.Bytes += int64(len(line) + 1)
		if e, ok := ParseEntry(line); ok {
			if x.First.IsZero() {
				x.First = e.Time
			}
			if !e.Time.Equal(x.Last) {
				x.Same = 0
			}
			x.Last = e.Time
			x.Same++
			if e.IsGap() {
				x.gaps++
			}
			x.Open = e.Partial
			if !e.Partial {
				x.Lines++
			}
		}
		entries = rest
	}
}

// LogWriter appends to a log. It is for one goroutine.
type LogWriter struct {
	store *Store
	dir   string
	// open is the part that grows, file its file, nil while it has no entry.
	open   part
	file   *os.File
	index  Index
	sealed []sealedPart
	// finished says that the last part is marked as the end.
	finished bool
}

type sealedPart struct {
	number int
	bytes  int64
}

// WriteLog continues a log, or begins it. What a killed process left of an entry is removed.
func (s *Store) WriteLog(namespace string, uid types.UID, l Log) (*LogWriter, error) {
	w := &LogWriter{store: s, dir: filepath.Join(s.jobDir(namespace, uid), l.path())}
	if err := os.MkdirAll(w.dir, 0o700); err != nil {
		return nil, err
	}
	if err := w.recover(s.remote != nil && s.remote.continued[uid]); err != nil {
		return nil, fmt.Errorf("continuing the log in %s: %w", w.dir, err)
	}
	return w, nil
}

// recover finds the end of the log. remote says that parts of it may be in the object store only.
func (w *LogWriter) recover(remote bool) error {
	all, err := w.store.parts(w.dir, remote)
	if err != nil {
		return err
	}
	for _, p := range all {
		if !p.sealed {
			w.open = p
			return w.reopen()
		}
		found, err := w.store.findPart(w.dir, p)
		if err != nil {
			return err
		}
		index := found.index
		if found.damaged {
			index = Index{Line: w.index.Line, Lines: 1, Last: w.index.Last, Same: w.index.Same}
		}
		_ = os.Remove(filepath.Join(w.dir, part{number: p.number}.name())) // it may be left from before the part was sealed
		w.sealed, w.finished = append(w.sealed, sealedPart{p.number, index.Bytes}), index.End
		w.open.number = p.number + 1
		w.index = Index{Line: index.Line + index.Lines, Last: index.Last, Same: index.Same}
	}
	return nil
}

// reopen continues the part that grew when the recorder ended.
func (w *LogWriter) reopen() error {
	file, err := os.OpenFile(filepath.Join(w.dir, w.open.name()), os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	content, err := io.ReadAll(file)
	if err == nil {
		w.index.add(wholeLines(content))
		err = w.truncate(file)
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	w.file, w.finished = file, false
	return nil
}

// truncate removes what was written after the last whole entry.
func (w *LogWriter) truncate(file *os.File) error {
	if err := file.Truncate(w.index.Bytes); err != nil {
		return err
	}
	_, err := file.Seek(w.index.Bytes, io.SeekStart)
	return err
}

// Last is the time of the last entry written, zero if there is none, and how many entries at the end have this time.
func (w *LogWriter) Last() (at time.Time, same int) { return w.index.Last, w.index.Same }

// Write appends whole entries: all of them, or none if it returns an error.
func (w *LogWriter) Write(entries []byte) error {
	if w.index.Bytes >= partSize {
		if err := w.seal(); err != nil {
			return err
		}
	}
	if w.file == nil {
		file, err := os.OpenFile(filepath.Join(w.dir, w.open.name()), os.O_CREATE|os.O_RDWR|os.O_TRUNC, 0o600)
		if err != nil {
			return err
		}
		w.file, w.finished = file, false
	}
	if _, err := w.file.Write(entries); err != nil {
		return errors.Join(err, w.truncate(w.file))
	}
	gaps := w.index.gaps
	w.index.add(entries)
	w.store.Written.note(w.index.gaps-gaps, w.index.Last, time.Now())
	return nil
}

// Close seals the last part. The log can be continued by another writer.
func (w *LogWriter) Close() error {
	if w.file == nil {
		return nil
	}
	return w.seal()
}

// Finish is Close, and marks the log as complete.
func (w *LogWriter) Finish() error {
	if w.file == nil {
		return nil
	}
	w.index.End = true
	err := w.seal()
	w.index.End, w.finished = false, err == nil
	return err
}

// Finished reports whether the log was marked as complete, by this process or an earlier one.
func (w *LogWriter) Finished() bool { return w.finished }

// seal makes the part that grew a compressed one that never changes. If that fails, it grows on.
func (w *LogWriter) seal() error {
	if _, err := w.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	target := filepath.Join(w.dir, part{number: w.open.number, sealed: true}.name())
	err := writePart(target, w.index, io.LimitReader(w.file, w.index.Bytes))
	if err != nil {
		_, seekErr := w.file.Seek(w.index.Bytes, io.SeekStart)
		return errors.Join(fmt.Errorf("sealing %s: %w", target, err), seekErr)
	}
	_ = w.file.Close()
	_ = os.Remove(filepath.Join(w.dir, w.open.name()))
	w.sealed = append(w.sealed, sealedPart{w.open.number, w.index.Bytes})
	w.file, w.open = nil, part{number: w.open.number + 1}
	w.index = Index{Line: w.index.Line + w.index.Lines, Last: w.index.Last, Same: w.index.Same}
	return w.limitSize()
}

// limitSize removes the oldest parts of the second half when the log is longer than its limit. The hole in the numbers shows it.
func (w *LogWriter) limitSize() error {
	total, head := int64(0), 0
	for i, p := range w.sealed {
		if total += p.bytes; total <= w.store.Limits.Log/2 {
			head = i + 1
		}
	}
	for total > w.store.Limits.Log && head < len(w.sealed)-1 {
		if err := w.store.discard(filepath.Join(w.dir, part{number: w.sealed[head].number, sealed: true}.name())); err != nil {
			return err
		}
		total -= w.sealed[head].bytes
		w.sealed = append(w.sealed[:head], w.sealed[head+1:]...)
	}
	return nil
}

func writePart(name string, index Index, content io.Reader) error {
	comment, err := json.Marshal(index)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(name+".new", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	compressed, err := gzip.NewWriterLevel(file, gzip.BestSpeed)
	if err == nil {
		compressed.Comment = string(comment)
		_, err = io.Copy(compressed, content)
		err = errors.Join(err, compressed.Close(), file.Sync()) // the part that it replaces is removed
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = errors.Join(os.Rename(file.Name(), name), syncDir(filepath.Dir(name)))
	}
	if err != nil {
		_ = os.Remove(file.Name())
	}
	return err
}
