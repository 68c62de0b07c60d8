package yard

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cri-client/pkg/logs"

	terminal "github.com/trainyard/trainyard/internal/text"
)

// recorded is a container's log on its node.
type recorded struct {
	*testing.T
	path string
	// answers are what kubelet shows of it from a time on.
	answers map[time.Time]string
}

// logOf writes a log with an entry of each of these, as in "59.9 stderr P 50%". They begin with their second.
func logOf(t *testing.T, entries ...string) recorded {
	t.Helper()
	var all strings.Builder
	for _, e := range entries {
		second, rest, _ := strings.Cut(e, " ")
		fmt.Fprintf(&all, "2026-01-02T03:04:%sZ %s\n", second, rest)
	}
	r := recorded{t, filepath.Join(t.TempDir(), "0.log"), map[time.Time]string{}}
	if err := os.WriteFile(r.path, []byte(all.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return r
}

func second(s int) time.Time { return time.Date(2026, 1, 2, 3, 4, s, 0, time.UTC) }

// read is what a stream is given that asks for the log: kubelet's words, from the whole second on that the API carries.
func (r recorded) read(s *stream) string {
	r.Helper()
	options := logs.LogOptions{Timestamp: true}
	if s.since != nil {
		options.Since = s.since.Time
	}
	if !s.last.IsZero() {
		options.Since = s.last.Truncate(time.Second)
	}
	if answer, ok := r.answers[options.Since]; ok {
		return answer
	}
	var both strings.Builder
	if err := logs.ReadLogs(r.Context(), r.path, "", &options, nil, &both, &both); err != nil {
		r.Fatal(err)
	}
	r.answers[options.Since] = both.String()
	return both.String()
}

// emittedBy are the lines that a stream has emitted, with … after an incomplete one.
func emittedBy(s *stream) *[]string {
	var all []string
	s.emit = func(l Line) {
		if l.Partial {
			l.Text += "…"
		}
		all = append(all, l.Text)
	}
	return &all
}

func TestALineIsWhatATerminalShows(t *testing.T) {
	for _, row := range []struct {
		name    string
		entries []string
		want    []string
	}{
		{"lines", []string{"01.1 stdout F one", "01.2 stdout F ", "01.3 stderr F  two "}, []string{"one", "", " two "}},
		{"a line in parts", []string{"01.1 stdout P o", "01.2 stdout P n", "02.3 stdout F e"}, []string{"one"}},
		{"a progress bar, and what it ended with", []string{"01.1 stderr P \r1%", "01.2 stderr P \r2%\r3%", "01.3 stderr F "}, []string{"3%"}},
		{"one that returns after it has written", []string{"01.1 stderr P 1%\r", "01.2 stderr P 2%\r", "01.3 stderr F "}, []string{"2%"}},
		{"a line of a terminal", []string{"01.1 stdout F one\r"}, []string{"one"}},
		{"a progress bar is interrupted", []string{"01.1 stderr P \r1%", "01.2 stderr F ", "01.3 stdout F one", "01.4 stderr F \r2%"}, []string{"1%", "one", "2%"}},
		{"the last line is not ended", []string{"01.1 stdout F one", "01.2 stderr P \r1%", "01.3 stderr P \r2%"}, []string{"one", "2%"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := &stream{}
			got := emittedBy(s)
			if err := s.lines(iotest.OneByteReader(strings.NewReader(logOf(t, row.entries...).read(s)))); err != nil {
				t.Fatal(err)
			}
			s.endOpen()
			if diff := cmp.Diff(row.want, *got); diff != "" {
				t.Errorf("emitted (-want +got):\n%s", diff)
			}
		})
	}
}

// A log that breaks off twice, at any two places, is emitted as if it had not: its lines begin and end in other seconds, and kubelet
// takes whole seconds only.
func TestALogThatBreaksOff(t *testing.T) {
	log := logOf(t,
		"00.1 stdout F zero", "00.9 stdout P o", "01.1 stdout P n", "01.2 stdout F e", "01.3 stderr P \r1%", "01.999999999 stderr P \r2%",
		"02.1 stderr P \r3%", "02.2 stderr F ", "02.3 stdout F two", "02.300000001 stdout F 2026-01-02T03:04:59Z three", "02.4 stderr P \r4%", "03.1 stderr P \r5%")
	want := []string{"zero", "one", "3%", "two", "2026-01-02T03:04:59Z three", "5%"}
	broken := errors.New("broken off")
	part := func(s *stream, cut int) bool {
		text := log.read(s)
		if cut > len(text) {
			return false
		}
		if err := s.lines(io.MultiReader(strings.NewReader(text[:cut]), iotest.ErrReader(broken))); !errors.Is(err, broken) {
			t.Fatal(err)
		}
		return true
	}
	cases := 0
	for first := 0; ; first++ {
		if !part(&stream{emit: func(Line) {}}, first) {
			break
		}
		for second := 0; ; second++ {
			s := &stream{partial: true}
			got := emittedBy(s)
			part(s, first)
			if !part(s, second) {
				break
			}
			if err := s.lines(strings.NewReader(log.read(s))); err != nil {
				t.Fatal(err)
			}
			s.endOpen()
			ended := slices.DeleteFunc(*got, func(line string) bool { return strings.HasSuffix(line, "…") })
			if diff := cmp.Diff(want, ended); diff != "" {
				t.Fatalf("broken off after %d bytes, then after %d, it emits (-want +got):\n%s", first, second, diff)
			}
			cases++
		}
	}
	if cases < 10_000 {
		t.Errorf("it broke off in %d ways only", cases)
	}
}

func TestOpenLinesAreTold(t *testing.T) {
	log := logOf(t, "01.1 stdout F one", "01.2 stderr P \r1%", "01.3 stderr P \r2%")
	for _, row := range []struct {
		name    string
		partial bool
		want    []string
	}{
		{"if the query asks for them", true, []string{"one", "2%…", "2%"}},
		{"to nobody else", false, []string{"one", "2%"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := &stream{partial: row.partial}
			got := emittedBy(s)
			if err := s.lines(strings.NewReader(log.read(s))); err != nil {
				t.Fatal(err)
			}
			s.endOpen()
			s.endOpen()
			if diff := cmp.Diff(row.want, *got); diff != "" {
				t.Errorf("emitted (-want +got):\n%s", diff)
			}
		})
	}
}

// The first line began before those that are wanted.
func TestSinceTheMiddleOfALine(t *testing.T) {
	for _, row := range []struct {
		name    string
		entries []string
		want    []string
	}{
		{"a progress bar is emitted as it is now", []string{"00.9 stderr P \r10 %", "01.1 stderr P 0 %\r11 %", "01.2 stderr P \r12 %"}, []string{"12 %"}},
		{"also when it is ended", []string{"00.9 stderr P \r1%", "01.1 stderr P \r2%", "01.2 stderr F ", "01.3 stdout F one"}, []string{"2%", "one"}},
		{"not with half its words", []string{"00.9 stderr P \r1", "01.1 stderr P 0%\r", "01.2 stderr F ", "01.3 stdout F one"}, []string{"one"}},
		{"the rest of another line is not wanted", []string{"00.9 stdout P ze", "01.1 stdout F ro", "01.2 stdout F one"}, []string{"one"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := &stream{since: &metav1.Time{Time: second(1)}}
			got := emittedBy(s)
			log := logOf(t, row.entries...)
			for range 2 { // nothing is emitted twice
				if err := s.lines(strings.NewReader(log.read(s))); err != nil {
					t.Fatal(err)
				}
				s.endOpen()
			}
			if diff := cmp.Diff(row.want, *got); diff != "" {
				t.Errorf("emitted (-want +got):\n%s", diff)
			}
		})
	}
}

// Days of a progress bar take no more room than its last state.
func TestAnOpenLineStaysSmall(t *testing.T) {
	var o openLine
	o.add([]byte("2026-01-02T03:04:05.000000000Z "))
	for i := range 100_000 {
		o.add(fmt.Appendf(nil, "\r%d of 100000", i))
	}
	if len(o.text) > 100 {
		t.Errorf("it has %d bytes", len(o.text))
	}
	if got := terminal.Visible(o.take()); got != "99999 of 100000" {
		t.Errorf("it shows %q", got)
	}
}
