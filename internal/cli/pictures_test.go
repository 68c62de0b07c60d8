package cli

import (
	"os"
	"regexp"
	"testing"

	"github.com/trainyard/trainyard/internal/testing/golden"
)

// drawing is a line of a page that says how a picture was made.
var drawing = regexp.MustCompile(`(?m)^    \$ trainyard (simulate .* -o svg) > (docs/pictures/\w+\.svg)$`)

// The pictures of docs/run-policies.md are what the commands there draw.
func TestPictures(t *testing.T) {
	t.Chdir("../..")
	page, err := os.ReadFile("docs/run-policies.md")
	if err != nil {
		t.Fatal(err)
	}
	drawings := drawing.FindAllStringSubmatch(string(page), -1)
	for _, d := range drawings {
		out, errOut, code := typed("", words(d[1])...)
		if code != 0 {
			t.Fatalf("%s: exit code %d: %s", d[1], code, errOut)
		}
		golden.Check(t, d[2], out)
	}
	if files, err := os.ReadDir("docs/pictures"); err != nil || len(drawings) != countSVG(files) {
		t.Errorf("the page draws %d pictures, and there are %d, %v", len(drawings), countSVG(files), err)
	}
}

func countSVG(files []os.DirEntry) (n int) {
	for _, file := range files {
		if regexp.MustCompile(`\.svg$`).MatchString(file.Name()) {
			n++
		}
	}
	return n
}
