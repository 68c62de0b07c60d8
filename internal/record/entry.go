package record

import (
	"bytes"
	"time"
)

// Entry is an entry of a container's log, in the format in which kubelet's runtimes write logs:
//
//	2026-11-15T08:00:00.123456789Z stdout F epoch 3
//
// F ends a line. P is a part of one, and the next entry continues it.
type Entry struct {
	Time   time.Time
	Stream string
	// Partial says that the line goes on with the next entry.
	Partial bool
	Text    []byte
}

// gapStream is the stream of an entry that stands for what is missing. Its text is the cause.
const gapStream = "gap"

// IsGap reports whether the entry stands for something that was not recorded. Its text gives the cause.
func (e Entry) IsGap() bool { return e.Stream == gapStream }

// ParseEntry reads an entry without its newline.
func ParseEntry(line []byte) (e Entry, ok bool) {
	stamp, rest, ok := bytes.Cut(line, []byte{' '})
	if !ok {
		return e, false
	}
	stream, rest, ok := bytes.Cut(rest, []byte{' '})
	if !ok || len(rest) == 0 {
		return e, false
	}
	tag, text, _ := bytes.Cut(rest, []byte{' '})
	at, err := time.Parse(time.RFC3339Nano, string(stamp))
	if err != nil || len(tag) == 0 {
		return e, false
	}
	return Entry{Time: at, Stream: string(stream), Partial: tag[0] == 'P', Text: text}, true
}

// GapEntry is the entry, with its newline, for what was not recorded until a moment.
func GapEntry(until time.Time, cause string) []byte {
	line := append(until.UTC().AppendFormat(nil, time.RFC3339Nano), " "+gapStream+" F "...)
	return append(append(line, cause...), '\n')
}
