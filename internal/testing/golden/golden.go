// Package golden holds what programs print against files that people have read and found right. `go test -update` writes the files
// anew, to be read again as a diff.
package golden

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files as they would be now")

// Check holds a text against a golden file.
func Check(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is otherwise now (-then +now); `go test -update` writes it anew:\n%s", file, diff)
	}
}
