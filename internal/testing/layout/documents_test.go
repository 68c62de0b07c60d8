package layout

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestEveryKnownFaultHasTests reads the table of docs/differences.md: all faults are there, in order, and each names tests
// and stories that exist, or says why it does not concern us.
func TestEveryKnownFaultHasTests(t *testing.T) {
	tests := declared(t)
	text, err := os.ReadFile("../../../docs/differences.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| B\d+ \|.*$`).FindAllString(string(text), -1)
	if len(rows) != 51 {
		t.Fatalf("there are %d faults, want 51", len(rows))
	}
	named := regexp.MustCompile("`(Test\\w+)`")
	for i, row := range rows {
		cells := strings.Split(row, "|")
		if want := fmt.Sprintf(" B%d ", i+1); cells[1] != want || len(cells) != 6 {
			t.Errorf("row %d is %q", i+1, row)
			continue
		}
		names := named.FindAllStringSubmatch(cells[4], -1)
		if len(names) == 0 && !strings.Contains(cells[3], "Does not concern") {
			t.Errorf("no test for%s", cells[1])
		}
		for _, name := range names {
			if !tests[name[1]] {
				t.Errorf("there is no %s, which is to test%s", name[1], cells[1])
			}
		}
	}
	for _, story := range regexp.MustCompile("story `([^`]+)`").FindAllStringSubmatch(string(text), -1) {
		if _, err := os.Stat(filepath.Join("../../job/testdata", story[1])); err != nil {
			t.Error(err)
		}
	}
}

// TestWhatFlyteNeedsHasTests reads the tables of docs/flyte.md: all points and all requests are there, in order, and each names
// tests that exist, or says who has to do it.
func TestWhatFlyteNeedsHasTests(t *testing.T) {
	tests := declared(t)
	text, err := os.ReadFile("../../../docs/flyte.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| M?\d+ \|.*$`).FindAllString(string(text), -1)
	if len(rows) != 11+23 {
		t.Fatalf("there are %d points and requests, want 11 and 23", len(rows))
	}
	for i, row := range rows {
		cells := strings.Split(strings.Trim(row, "|"), "|")
		want := fmt.Sprintf(" M%d ", i+1)
		if i >= 11 {
			want = fmt.Sprintf(" %d ", i-10)
		}
		if cells[0] != want {
			t.Errorf("row %d is %q", i+1, row)
		}
		names := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(cells[len(cells)-1], -1)
		if len(names) == 0 && !strings.Contains(row, "'s to do") {
			t.Errorf("no test for%s", cells[0])
		}
		for _, name := range names {
			if !tests[name[1]] {
				t.Errorf("there is no %s, which is to test%s", name[1], cells[0])
			}
		}
	}
}

// declared are the names of all tests of the module.
func declared(t *testing.T) map[string]bool {
	t.Helper()
	names, declaration := map[string]bool{}, regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	err := filepath.WalkDir("../../..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, found := range declaration.FindAllStringSubmatch(string(text), -1) {
			names[found[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
