package record

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Line is a line of a log with its number, from 0. Lines that were not kept have numbers, too.
type Line struct {
	Number int64
	Time   time.Time
	Text   []byte
	Gap    bool
	Stderr bool
	// More is how many bytes follow that are not in Text. Open says that the line has no end yet, or that its process died before it wrote one.
	More int
	Open bool
}

// errEnough ends the reading of a log.
var errEnough = errors.New("enough")

// Count is how many lines a log has, with one that has no end yet.
func (s *Store) Count(namespace string, uid types.UID, l Log) (int64, error) {
	all, err := s.findParts(filepath.Join(s.jobDir(namespace, uid), l.path()))
	if err != nil || len(all) == 0 {
		return 0, err
	}
	last := all[len(all)-1].index
	if last.Open {
		last.Lines++
	}
	return last.Line + last.Lines, nil
}

// Lines emits the lines of a log from one number on, until emit returns false. It reads only the parts that it needs, and the one before,
// where the first line may begin.
func (s *Store) Lines(namespace string, uid types.UID, l Log, from int64, emit func(Line) bool) error {
	all, err := s.findParts(filepath.Join(s.jobDir(namespace, uid), l.path()))
	if err != nil {
		return err
	}
	first := 0
	for first < len(all)-1 && all[first+1].index.Line <= from {
		first++
	}
	if first > 0 && all[first].index.Line == from {
		first--
	}
	reader := &lineReader{from: from, emit: emit}
	for _, p := range all[min(first, len(all)):] {
		if err := reader.part(p); errors.Is(err, errEnough) {
			return nil
		} else if err != nil {
			return err
		}
	}
	if reader.open != nil {
		reader.open.Open = true
		_ = reader.send(*reader.open)
	}
	return nil
}

// lineKept is how much of a line is kept in memory.
const lineKept = 1 << 20

// add takes more text of the line. What the program has overwritten after a carriage return is dropped: a progress bar that overwrites itself all
// day is one line.
func (l *Line) add(text []byte) {
	visible := bytes.TrimRight(text, "\r")
	if at := bytes.LastIndexByte(visible, '\r'); at >= 0 {
		l.Text, l.More, text = l.Text[:0], 0, text[at+1:]
	} else if len(visible) > 0 && bytes.HasSuffix(l.Text, []byte{'\r'}) {
		l.Text, l.More = l.Text[:0], 0
	}
	room := max(0, lineKept-len(l.Text))
	if over := len(text) - room; over > 0 {
		l.More += over
		if bytes.HasSuffix(text, []byte{'\r'}) {
			l.Text = append(append(l.Text, text[:room]...), '\r') // what comes next overwrites it
			return
		}
		text = text[:room]
	}
	l.Text = append(l.Text, text...)
}

// lineReader joins entries to lines and counts them.
type lineReader struct {
	from, next int64
	open       *Line
	emit       func(Line) bool
	damaged    bool // the part before: that is a gap already
}

func (r *lineReader) part(p *foundPart) error {
	if p.index.Line > r.next && r.next > 0 && !r.damaged {
		gap := missing(p.index, p.index.Line-r.next)
		if err := r.send(Line{Number: r.next, Time: gap.Time, Text: gap.Text, Gap: true}); err != nil {
			return err
		}
	}
	r.next, r.damaged = p.index.Line, p.damaged
	if err := p.emit(r.entry); err != nil || p.index.Lost == "" {
		return err
	}
	r.next = p.index.Line + p.index.Lines
	return nil
}

func (r *lineReader) entry(e Entry) error {
	if r.open == nil {
		r.open = &Line{Number: r.next, Time: e.Time, Gap: e.IsGap(), Stderr: e.Stream == "stderr"}
	}
	if e.IsGap() && !r.open.Gap { // the rest of the line is missing
		e.Text = fmt.Appendf(nil, " (%s)", e.Text)
	}
	r.open.add(e.Text)
	if e.Partial {
		return nil
	}
	line := *r.open
	r.open = nil
	r.next++
	return r.send(line)
}

func (r *lineReader) send(line Line) error {
	if line.Number >= r.from && !r.emit(line) {
		return errEnough
	}
	return nil
}
