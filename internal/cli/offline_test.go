package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/trainyard/trainyard/internal/testing/golden"
)

// TestTranscripts: in testdata/*.txt a line that begins with "$ trainyard" is typed, and below stands what is printed, with
// "2> " before each line of standard error and the exit code, if it is not 0, at the end.
func TestTranscripts(t *testing.T) {
	t.Chdir("testdata")
	hideClusters(t)
	files, err := filepath.Glob("*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(file, ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got, comments := "", ""
			for line := range strings.Lines(string(want)) {
				if typed, ok := strings.CutPrefix(line, "$ trainyard "); ok {
					got += comments + line + transcript(typed)
					comments = ""
				} else if strings.HasPrefix(line, "#") {
					comments += line
				} else {
					comments = "" // it was printed
				}
			}
			got = strings.TrimSuffix(got, "\n")
			golden.Check(t, file, got)
		})
	}
}

func TestTheVersionIsAFlagToo(t *testing.T) {
	want, _, _ := typed("", "version")
	if got, stderr, code := typed("", "--version"); got != want || code != 0 {
		t.Errorf("exit code %d, printed %q and %q, want %q", code, got, stderr, want)
	}
}

// hideClusters hides all configured clusters from a test.
func hideClusters(t *testing.T) {
	t.Helper()
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("TRAINYARD_DATA_DIR", t.TempDir())
	home := clientcmd.RecommendedHomeFile
	t.Cleanup(func() { clientcmd.RecommendedHomeFile = home })
	clientcmd.RecommendedHomeFile = filepath.Join(t.TempDir(), "config")
}

func transcript(typed string) string {
	var out, errOut bytes.Buffer
	code := run("trainyard", words(typed), strings.NewReader(""), &out, &errOut)
	text := out.String()
	for line := range strings.Lines(errOut.String()) {
		text += "2> " + line
	}
	if code != 0 {
		text += fmt.Sprintf("exit code %d\n", code)
	}
	return text + "\n"
}

// words are what a shell makes of a line with single quotes.
func words(line string) []string {
	var all []string
	for i, part := range strings.Split(strings.TrimSpace(line), "'") {
		if i%2 == 1 {
			all = append(all, part)
		} else {
			all = append(all, strings.Fields(part)...)
		}
	}
	return all
}
