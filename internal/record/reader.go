package record

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Query says which entries of a log are wanted. Entries before may come, too: whole parts are left out, not single entries.
type Query struct {
	// Tail is how many of the last lines are wanted, 0 for all. Since is the time of the oldest.
	Tail  int64
	Since time.Time
}

// ReadLog emits the entries of a log in their order, and a gap where parts are missing. It ends when emit returns an error, and returns it.
// It has one file open at a time, because a reader may want many logs at once.
func (s *Store) ReadLog(namespace string, uid types.UID, l Log, q Query, emit func(Entry) error) error {
	dir := filepath.Join(s.jobDir(namespace, uid), l.path())
	all, err := s.findParts(dir)
	if err != nil {
		return fmt.Errorf("reading the log in %s: %w", dir, err)
	}
	chosen := wanted(all, q)
	next := int64(0) // how many lines come before the next part
	if len(chosen) < len(all) {
		next = chosen[0].index.Line
	}
	damaged := false // that is a gap already
	for _, p := range chosen {
		if p.index.Line > next && !damaged {
			if err := emit(missing(p.index, p.index.Line-next)); err != nil {
				return err
			}
		}
		if err := p.emit(emit); err != nil {
			return err
		}
		next, damaged = p.index.Line+p.index.Lines, p.damaged
	}
	return nil
}

// missing is the gap before a part, if the parts before it were removed to limit the size.
func missing(x Index, lines int64) Entry {
	return Entry{Time: x.First, Stream: gapStream, Text: fmt.Appendf(nil, "%d lines were not kept, because the log is too long", lines)}
}

// wanted leaves out the parts at the beginning that a query does not want. The last part is always wanted.
func wanted(all []*foundPart, q Query) []*foundPart {
	if len(all) == 0 {
		return nil
	}
	first := len(all) - 1
	lines := all[first].index.Lines
	for first > 0 && (q.Tail == 0 || lines < q.Tail) && !all[first-1].index.Last.Before(q.Since) {
		first--
		lines += all[first].index.Lines
	}
	return all[first:]
}

// foundPart is a part with its index. One that is damaged has none: the machine may have stopped before its disk had it.
type foundPart struct {
	store   *Store
	name    string
	index   Index
	damaged bool
	// growing is the content of a part that is not sealed.
	growing []byte
}

// findParts reads the indexes of all parts, and the part that grows as far as it is written.
func (s *Store) findParts(dir string) ([]*foundPart, error) {
	list, err := s.parts(dir, s.remote != nil)
	if err == nil {
		err = s.readHeaders(dir, list)
	}
	if err != nil {
		return nil, err
	}
	var all []*foundPart
	for _, p := range list {
		found, err := s.findPart(dir, p)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was removed to limit the size
		}
		if err != nil {
			return nil, err
		}
		if found.index.Bytes == 0 && !found.damaged {
			continue
		}
		if found.damaged {
			found.index.Lines = 1 // the gap in its place
		}
		if n := len(all); n > 0 && (found.growing != nil || found.damaged) { // it does not say its place
			before := all[n-1].index
			found.index.Line = before.Line + before.Lines
			found.index.First, found.index.Last = cmp.Or(found.index.First, before.Last), cmp.Or(found.index.Last, before.Last)
		}
		all = append(all, found)
	}
	return all, nil
}

func (s *Store) findPart(dir string, p part) (*foundPart, error) {
	found := &foundPart{store: s, name: filepath.Join(dir, p.name())}
	if !p.sealed {
		content, err := os.ReadFile(found.name)
		if errors.Is(err, fs.ErrNotExist) {
			return s.findPart(dir, part{p.number, true, false}) // it has just been sealed
		}
		found.growing = wholeLines(content)
		found.index.add(found.growing)
		return found, err
	}
	content, err := readBeginning(found.name)
	if s.remote != nil && errors.Is(err, fs.ErrNotExist) {
		found.index, found.damaged, err = s.remote.header(s.name(found.name))
		return found, err
	}
	if err != nil {
		return nil, err
	}
	index, ok := readHeader(content)
	found.index, found.damaged = index, !ok
	return found, nil
}

// readBeginning reads as much of a part as its header can have.
func readBeginning(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	return io.ReadAll(io.LimitReader(file, headerSize))
}

// readHeader reads the index in the gzip header of a part.
func readHeader(content []byte) (index Index, ok bool) {
	header, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return index, false
	}
	return index, json.Unmarshal([]byte(header.Comment), &index) == nil
}

// emit emits the entries of the part, and a gap for what cannot be read.
func (p *foundPart) emit(emit func(Entry) error) error {
	gap := func(cause string) error {
		return emit(Entry{Time: p.index.Last, Stream: gapStream, Text: []byte(cause)})
	}
	if p.index.Lost != "" {
		return gap(fmt.Sprintf("%d lines are missing: %s", p.index.Lines, p.index.Lost))
	}
	const damaged = "a part of the log is damaged on disk"
	var content io.Reader = bytes.NewReader(p.growing)
	if p.growing == nil {
		whole, err := p.store.read(p.name)
		if errors.Is(err, fs.ErrNotExist) {
			return gap(fmt.Sprintf("%d lines were not kept, because the log is too long", p.index.Lines))
		}
		if err != nil {
			return err
		}
		if content, err = gzip.NewReader(bytes.NewReader(whole)); err != nil || p.damaged {
			return gap(damaged)
		}
	}
	for lines := bufio.NewReaderSize(content, 64<<10); ; {
		line, err := lines.ReadBytes('\n')
		if e, ok := ParseEntry(bytes.TrimSuffix(line, []byte{'\n'})); ok {
			if err := emit(e); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return gap(damaged)
		}
	}
}
