package ui

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/trainyard/trainyard/internal/record"
	"github.com/trainyard/trainyard/internal/text"
	"github.com/trainyard/trainyard/internal/yard"
)

const (
	// maxLineText is how much of a line is sent. The whole log can be downloaded.
	maxLineText = 8 << 10
	// maxFound is how many lines a search finds at most.
	maxFound = 1000
)

// line is a line of a log, as a terminal shows it: with its colours, and without what the program has overwritten.
type line struct {
	Number int64     `json:"n"`
	Time   time.Time `json:"t"`
	Text   string    `json:"text"`
	Gap    bool      `json:"gap,omitempty"`
	Stderr bool      `json:"stderr,omitempty"`
}

func shown(l record.Line) line {
	raw, more := text.Visible(string(l.Text)), l.More
	if over := len(raw) - 4*maxLineText; over > 0 { // colours take room, too
		raw, more = raw[:4*maxLineText], more+over
	}
	content := text.KeepColours(strings.ToValidUTF8(raw, "\uFFFD"))
	if over := len(content) - maxLineText; over > 0 {
		content, more = strings.ToValidUTF8(content[:maxLineText], ""), more+over
	}
	if more > 0 {
		content = fmt.Sprintf("%s\033[0m … (%d more bytes)", content, more)
	}
	return line{l.Number, l.Time, content, l.Gap, l.Stderr}
}

// chosen is the log that a request names. If there is none, it has answered.
func (j *jobs) chosen(w http.ResponseWriter, r *http.Request) (*yard.Job, record.Log, bool) {
	found, ok := j.find(w, r)
	if !ok {
		return nil, record.Log{}, false
	}
	logs, err := j.yard.Past.Logs(found.Job.Namespace, found.Job.UID)
	if err != nil {
		fail(w, err)
		return nil, record.Log{}, false
	}
	name := r.URL.Query().Get("log")
	at := slices.IndexFunc(logs, func(l record.Log) bool {
		return name == fmt.Sprintf("%d/%s/%s.%d.%s", l.Attempt, l.Replica, l.Container, l.Restart, l.Pod)
	})
	if at < 0 {
		http.Error(w, "There is no such log.", http.StatusNotFound)
		return nil, record.Log{}, false
	}
	return found, logs[at], true
}

// log answers with lines from a number on, and with how many there are.
func (j *jobs) log(w http.ResponseWriter, r *http.Request) {
	found, l, ok := j.chosen(w, r)
	if !ok {
		return
	}
	query, lines := r.URL.Query(), []line{}
	limit := min(number(query.Get("limit"), pageSize), pageSize)
	total, err := j.yard.Past.Count(found.Job.Namespace, found.Job.UID, l)
	if err == nil {
		err = j.yard.Past.Lines(found.Job.Namespace, found.Job.UID, l, number(query.Get("from"), 0), func(l record.Line) bool {
			if int64(len(lines)) < limit {
				lines = append(lines, shown(l))
			}
			return int64(len(lines)) < limit
		})
	}
	if err != nil {
		fail(w, err)
		return
	}
	answer(w, map[string]any{"lines": lines, "total": total})
}

// readable is the text of a line that a person can read: without colours, and without what was overwritten.
func readable(line []byte) []byte {
	if !bytes.ContainsFunc(line, unicode.IsControl) {
		return line
	}
	return []byte(text.Plain(text.Visible(string(line))))
}

// search answers with the numbers of the lines that have a text, or that match a regular expression.
func (j *jobs) search(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	pattern := "(?i)" + regexp.QuoteMeta(query.Get("q"))
	if query.Get("regex") == "1" {
		pattern = query.Get("q")
	}
	matches, err := regexp.Compile(pattern)
	if err != nil {
		http.Error(w, fmt.Sprintf("This is not a regular expression: %v", err), http.StatusBadRequest)
		return
	}
	found, l, ok := j.chosen(w, r)
	if !ok {
		return
	}
	numbers := []int64{}
	err = j.yard.Past.Lines(found.Job.Namespace, found.Job.UID, l, 0, func(l record.Line) bool {
		if matches.Match(readable(l.Text)) {
			numbers = append(numbers, l.Number)
		}
		return len(numbers) <= maxFound && r.Context().Err() == nil
	})
	if err != nil {
		fail(w, err)
		return
	}
	more := len(numbers) > maxFound
	answer(w, map[string]any{"lines": numbers[:min(len(numbers), maxFound)], "more": more})
}

// wholeLog is a log as a file.
func (j *jobs) wholeLog(w http.ResponseWriter, r *http.Request) {
	found, l, ok := j.chosen(w, r)
	if !ok {
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", fmt.Sprintf("%s-%s-attempt%d.log", found.Job.Name, l.Replica, l.Attempt+1)))
	// The header is sent, so an error can only cut the file.
	_ = j.yard.Past.ReadLog(found.Job.Namespace, found.Job.UID, l, record.Query{}, func(e record.Entry) error {
		if !e.Partial {
			e.Text = append(e.Text, '\n')
		}
		_, err := w.Write(e.Text)
		return cmp.Or(err, r.Context().Err())
	})
}
