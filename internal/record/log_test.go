package record

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var day = time.Date(2026, 11, 15, 8, 0, 0, 0, time.UTC)

var worker = Log{Attempt: 1, Replica: "worker-0", Container: "pytorch", Restart: 2, Pod: "0e4f"}

// entries are those of lines from one number to another, a second apart.
func entries(from, to int) []byte {
	var out []byte
	for i := from; i < to; i++ {
		out = fmt.Appendf(out, "%s stdout F line %d %s\n", day.Add(time.Duration(i)*time.Second).Format(time.RFC3339Nano), i, strings.Repeat("x", 80))
	}
	return out
}

func write(t *testing.T, s *Store, batches ...[]byte) *LogWriter {
	t.Helper()
	w, err := s.WriteLog("default", "j1", worker)
	if err != nil {
		t.Fatal(err)
	}
	for _, batch := range batches {
		if err := w.Write(batch); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// numbers are the numbers of the lines that are read, and the texts of gaps.
func numbers(t *testing.T, s *Store, q Query) (lines []int, gaps []string) {
	t.Helper()
	err := s.ReadLog("default", "j1", worker, q, func(e Entry) error {
		n := 0
		if e.IsGap() {
			gaps = append(gaps, string(e.Text))
		} else if _, err := fmt.Sscanf(string(e.Text), "line %d", &n); err != nil {
			t.Errorf("a line that nobody wrote: %q", e.Text)
		} else {
			lines = append(lines, n)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines, gaps
}

// isRange checks that all lines were read once, in their order.
func isRange(t *testing.T, lines []int, from, to int) {
	t.Helper()
	if len(lines) != to-from {
		t.Errorf("%d lines were read, want %d", len(lines), to-from)
	}
	for i, n := range lines {
		if n != from+i {
			t.Fatalf("line %d is read where line %d should be", n, from+i)
		}
	}
}

// thousands of lines: about nine thousand fill a part.
const thousands = 30_000

func TestALogIsReadAsItWasWritten(t *testing.T) {
	s := Open(t.TempDir())
	w := write(t, s)
	for i := 0; i < thousands; i += 500 {
		if err := w.Write(entries(i, i+500)); err != nil {
			t.Fatal(err)
		}
	}
	lines, gaps := numbers(t, s, Query{}) // while it grows
	isRange(t, lines, 0, thousands)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	lines, more := numbers(t, s, Query{})
	isRange(t, lines, 0, thousands)
	if len(gaps)+len(more) > 0 {
		t.Errorf("gaps: %q, %q", gaps, more)
	}
	if logs, err := s.Logs("default", "j1"); err != nil || len(logs) != 1 || logs[0] != worker {
		t.Errorf("the logs are %v, %v", logs, err)
	}
	lines, _ = numbers(t, s, Query{Tail: 10})
	if len(lines) > thousands/2 || lines[len(lines)-1] != thousands-1 {
		t.Errorf("for the last ten lines %d were read, up to %d", len(lines), lines[len(lines)-1])
	}
	if late, _ := numbers(t, s, Query{Since: day.Add((thousands - 5) * time.Second)}); len(late) > thousands/2 || len(late) < 5 {
		t.Errorf("for the last five seconds %d lines were read", len(late))
	}
}

func TestAKilledWriterIsContinued(t *testing.T) {
	dir := func(s *Store) string { return filepath.Join(s.jobDir("default", "j1"), worker.path()) }
	for sentence, damage := range map[string]func(t *testing.T, s *Store){
		"it was killed between two writes": func(*testing.T, *Store) {},
		"it was killed in the middle of an entry": func(t *testing.T, s *Store) {
			file, err := os.OpenFile(filepath.Join(dir(s), "1.log"), os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprint(file, "2026-11-15T09:00:00Z stdout F half of")
			_ = file.Close()
		},
		"it was killed after it sealed a part": func(t *testing.T, s *Store) {
			if err := os.WriteFile(filepath.Join(dir(s), "0.log"), entries(0, 3), 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"it was killed while it sealed a part": func(t *testing.T, s *Store) {
			if err := os.WriteFile(filepath.Join(dir(s), "1.gz.new"), []byte("half"), 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := Open(t.TempDir())
			write(t, s, entries(0, 12_000), entries(12_000, 15_000))
			damage(t, s)
			w := write(t, s)
			if last, same := w.Last(); !last.Equal(day.Add(14_999*time.Second)) || same != 1 {
				t.Errorf("the last entry is of %s, %d times", last, same)
			}
			if err := w.Write(entries(15_000, 16_000)); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			lines, gaps := numbers(t, s, Query{})
			isRange(t, lines, 0, 16_000)
			if len(gaps) > 0 {
				t.Errorf("gaps: %q", gaps)
			}
		})
	}
}

func TestALongLogKeepsItsBeginningAndItsEnd(t *testing.T) {
	s := Open(t.TempDir())
	s.Limits.Log = 4 * partSize
	w := write(t, s)
	const all = 200_000
	for i := 0; i < all; i += 1000 {
		if err := w.Write(entries(i, i+1000)); err != nil {
			t.Fatal(err)
		}
	}
	lines, gaps := numbers(t, s, Query{})
	if lines[0] != 0 || lines[len(lines)-1] != all-1 || len(gaps) != 1 {
		t.Fatalf("kept are lines %d to %d, and the gaps %q", lines[0], lines[len(lines)-1], gaps)
	}
	if want := fmt.Sprintf("%d lines were not kept, because the log is too long", all-len(lines)); gaps[0] != want {
		t.Errorf("the gap is %q, want %q", gaps[0], want)
	}
	if size := s.Size(); size > 4*partSize {
		t.Errorf("%d bytes are kept", size)
	}
}

func TestADamagedPartIsAGap(t *testing.T) {
	s := Open(t.TempDir())
	w := write(t, s, entries(0, 12_000), entries(12_000, 24_000), entries(24_000, 25_000))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(s.jobDir("default", "j1"), worker.path(), "1.gz")
	if err := os.Truncate(name, 0); err != nil {
		t.Fatal(err)
	}
	lines, gaps := numbers(t, s, Query{})
	if len(lines) != 13_000 || len(gaps) != 1 || gaps[0] != "a part of the log is damaged on disk" {
		t.Errorf("%d lines and the gaps %q", len(lines), gaps)
	}
	w = write(t, s, entries(25_000, 25_001))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if lines, _ := numbers(t, s, Query{}); lines[len(lines)-1] != 25_000 {
		t.Error("the log was not continued")
	}

	// A part that grows does not say its place.
	s = Open(t.TempDir())
	write(t, s, entries(0, 12_000), entries(12_000, 12_001))
	if err := os.Truncate(filepath.Join(s.jobDir("default", "j1"), worker.path(), "0.gz"), 0); err != nil {
		t.Fatal(err)
	}
	var got []string
	err := s.Lines("default", "j1", worker, 0, func(l Line) bool {
		got = append(got, fmt.Sprintf("%d %.10s", l.Number, l.Text))
		return true
	})
	if count, _ := s.Count("default", "j1", worker); err != nil || strings.Join(got, ", ") != "0 a part of , 1 line 12000" || count != 2 {
		t.Errorf("%d lines: %q, %v", count, got, err)
	}
}

// entry is one with a text.
func entry(tag, text string) []byte {
	return fmt.Appendf(nil, "%s stdout %s %s\n", day.Format(time.RFC3339Nano), tag, text)
}

func TestLinesAreCountedAndKeptAsATerminalShowsThem(t *testing.T) {
	long := strings.Repeat("x", 16<<10)
	for _, row := range []struct {
		sentence string
		entries  [][]byte
		want     []string
		open     bool
		more     int
	}{
		{"lines", [][]byte{entry("F", "one"), entry("F", "")}, []string{"one", ""}, false, 0},
		{"a line without an end", [][]byte{entry("F", "one"), entry("P", "tw"), entry("P", "o")}, []string{"one", "two"}, true, 0},
		{"a progress bar", [][]byte{entry("P", "\r1%"), entry("P", "\r2%\r3%"), entry("P", "\r")}, []string{"3%\r"}, true, 0},
		{"one that returns after it has written", [][]byte{entry("P", "1%\r"), entry("P", "2%\r"), entry("F", "")}, []string{"2%\r"}, false, 0},
		{"one whose rest is lost", [][]byte{entry("P", "1%"), GapEntry(day, "lost"), entry("F", "two")}, []string{"1% (lost)", "two"}, false, 0},
		{"a long line keeps its beginning", append([][]byte{entry("P", "begin")}, slices.Repeat([][]byte{entry("P", long)}, 100)...), []string{("begin" + strings.Repeat(long, 100))[:lineKept]}, true, 5 + 100*16<<10 - lineKept},
		{"one that is overwritten", append(slices.Repeat([][]byte{entry("P", long)}, 100), entry("P", "x\r"), entry("F", "end")), []string{"end"}, false, 0},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			s := Open(t.TempDir())
			w := write(t, s, row.entries...)
			for range 2 { // while it grows, and sealed
				var got []string
				var last Line
				err := s.Lines("default", "j1", worker, 0, func(l Line) bool {
					got, last = append(got, string(l.Text)), l
					return true
				})
				count, countErr := s.Count("default", "j1", worker)
				if err != nil || countErr != nil || !slices.Equal(got, row.want) || last.Open != row.open || last.More != row.more || count != int64(len(row.want)) {
					t.Errorf("%d lines: %.100q, open %t, %d more, %v, %v", count, got, last.Open, last.More, err, countErr)
				}
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
