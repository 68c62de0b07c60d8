package yard

import (
	"strings"
	"testing"
	"time"
)

func TestMergingLogs(t *testing.T) {
	day := time.Date(2026, 11, 15, 8, 0, 0, 0, time.UTC)
	for _, row := range []struct{ sentence, logs, want string }{
		{"nothing", "", ""},
		{"one log stays as it is", "1a 2b", "1a 2b"},
		{"lines come in the order of time", "1a 4b 5c|2d 3e|6f", "1a 2d 3e 4b 5c 6f"},
		{"lines of the same time come in the order of the replicas", "1a 1b|1c 2d|1e", "1a 1b 1c 1e 2d"},
		{"an empty log does not matter", "|1a|", "1a"},
		{"a log that goes back stays in its order", "3a 1b|2c", "2c 3a 1b"},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			var sources []*source
			for log := range strings.SplitSeq(row.logs, "|") {
				lines := make(chan Line)
				sources = append(sources, &source{lines: lines})
				go func() {
					defer close(lines)
					for _, word := range strings.Fields(log) {
						lines <- Line{Time: day.Add(time.Duration(word[0]-'0') * time.Second), Text: word}
					}
				}()
			}
			var got []string
			merge(sources, func(l Line) { got = append(got, l.Text) })
			if text := strings.Join(got, " "); text != row.want {
				t.Errorf("got %q, want %q", text, row.want)
			}
		})
	}
}
