package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// loggingTest is the variable that makes the test binary write to a log of 100 bytes, which it names.
const loggingTest = "TRAINYARD_TEST_LOG_FILE"

func TestLogsDoNotGrowForEver(t *testing.T) {
	if path := os.Getenv(loggingTest); path != "" {
		log := &logFile{path: path, limit: 100}
		for i := range 30 {
			_, _ = log.Write([]byte(strings.Repeat(string(rune('a'+i%26)), 49) + "\n"))
		}
		return
	}
	path := filepath.Join(t.TempDir(), "cluster.log")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // only the process writes to it
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestLogsDoNotGrowForEver$")
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), loggingTest+"="+path), file, file
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{path: "c", path + ".1": "a"} {
		content, err := os.ReadFile(name)
		if err != nil || len(content) > 200 || !strings.HasPrefix(string(content), strings.Repeat(want, 49)+"\n") {
			t.Errorf("%s has %q (%v)", filepath.Base(name), content, err)
		}
	}
}
