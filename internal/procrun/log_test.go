package procrun

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	v1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// entries returns stream, tag and content of a log's entries.
func entries(w *world, id string) []string {
	w.Helper()
	c, err := w.container(id)
	w.must(err)
	text, err := os.ReadFile(c.logPath)
	w.must(err)
	var all []string
	for line := range strings.Lines(string(text)) {
		_, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		all = append(all, rest)
	}
	return all
}

func TestLogFormat(t *testing.T) {
	w := newWorld(t)
	pod := w.pod("log")
	long := strings.Repeat("x", maxLogLine)
	for name, tt := range map[string]struct {
		script string
		want   []string
	}{
		"a line is an entry":                  {"echo one; echo two", []string{"stdout F one", "stdout F two"}},
		"streams are told apart":              {"echo no >&2", []string{"stderr F no"}},
		"an empty line":                       {"echo", []string{"stdout F "}},
		"spaces are kept":                     {"echo '  a  '", []string{"stdout F   a  "}},
		"an unfinished line is a part":        {"printf one", []string{"stdout P one"}},
		"a line written in pieces is one":     {"printf o; sleep 0.05; echo ne", []string{"stdout F one"}},
		"any byte is kept":                    {`printf '\000\377\r\033\n'`, []string{"stdout F \x00\xff\r\x1b"}},
		"the longest line":                    {"printf '%016384d\n' 0 | tr 0 x", []string{"stdout F " + long}},
		"a longer line is cut":                {"printf '%016385d\n' 0 | tr 0 x", []string{"stdout P " + long, "stdout F x"}},
		"nothing written":                     {"true", nil},
		"what a child says at the end counts": {"(sleep 0.1; echo late) & wait", []string{"stdout F late"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			id := w.start(pod, tt.script)
			w.ended(id)
			if diff := cmp.Diff(tt.want, entries(w, id)); diff != "" {
				t.Errorf("log differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTerminalOutput(t *testing.T) {
	w := newWorld(t)
	id := w.start(w.pod("tty"), "tty; echo err >&2", func(c *v1.ContainerConfig) { c.Tty = true })
	w.ended(id)
	got := entries(w, id)
	if len(got) != 2 || !strings.HasPrefix(got[0], "stdout F /dev/pts/") || got[1] != "stdout F err\r" {
		t.Errorf("log is %q", got)
	}
}

// A hundred megabytes are all in the log when the container is reported to have ended.
func TestFlood(t *testing.T) {
	w := newWorld(t)
	id := w.start(w.pod("flood"), "head -c 100000000 /dev/zero | tr '\\0' 'y' | fold -w 1000; echo; echo end")
	w.ended(id)
	c, err := w.container(id)
	w.must(err)
	text, err := os.ReadFile(c.logPath)
	w.must(err)
	if got := strings.Count(string(text), "y"); got != 100_000_000 {
		t.Errorf("%d bytes of 100000000 are in the log", got)
	}
	if !strings.HasSuffix(string(text), "stdout F end\n") {
		t.Error("the last line is missing")
	}
}

func TestLogRotation(t *testing.T) {
	w := newWorld(t)
	pod := w.pod("rotation")
	sign := filepath.Join(w.dir, "sign")
	id := w.start(pod, "echo before; while [ ! -e "+sign+" ]; do sleep 0.02; done; echo after")
	w.logged(id, "before")
	c, err := w.container(id)
	w.must(err)
	w.must(os.Rename(c.logPath, c.logPath+".old"))
	w.must(w.ReopenContainerLog(context.Background(), id))
	w.file("sign", "")
	w.ended(id)
	old, err := os.ReadFile(c.logPath + ".old")
	w.must(err)
	if got := content(w, string(old)) + "|" + w.log(id); got != "before\n|after\n" {
		t.Errorf("logs are %q", got)
	}
	if err := w.ReopenContainerLog(context.Background(), id); err == nil {
		t.Error("a container that has ended has no log to reopen")
	}
}

// Two containers write more than their logs may hold before somebody moves them away.
func TestLogLimit(t *testing.T) {
	const limit = 1 << 20
	w := newWorld(t, func(c *Config) { c.LogLimit = limit })
	pod := w.pod("chatty")
	full := func(log string) {
		w.eventually(func() bool {
			info, err := os.Stat(log)
			return err == nil && info.Size() >= limit
		}, "the log is full")
	}
	start := func(script string) (id, log string) {
		id = w.start(pod, script)
		c, err := w.container(id)
		w.must(err)
		full(c.logPath)
		return id, c.logPath
	}
	t.Run("it is held back until its log is reopened, and nothing is lost", func(t *testing.T) {
		id, log := start("head -c 2500000 /dev/zero | tr '\\0' y | fold -w 1000")
		var text []byte
		for range 2 {
			full(log)
			w.must(os.Rename(log, log+".old"))
			w.must(w.ReopenContainerLog(context.Background(), id))
			old, err := os.ReadFile(log + ".old")
			w.must(err)
			if len(old) > 2*limit {
				t.Errorf("the log grew to %d bytes", len(old))
			}
			text = append(text, old...)
		}
		w.ended(id)
		last, err := os.ReadFile(log)
		w.must(err)
		if got := strings.Count(string(append(text, last...)), "y"); got != 2_500_000 {
			t.Errorf("%d bytes of 2500000 are in the logs", got)
		}
	})
	t.Run("it can be killed all the same", func(t *testing.T) {
		id, _ := start("yes")
		w.must(w.StopContainer(context.Background(), id, 0))
	})
}

// A full disk costs log entries, not the container, and the log says so.
func TestFullDisk(t *testing.T) {
	w := newWorld(t)
	disk := smallDisk(w, "256k")
	pod := w.pod("full", func(c *v1.PodSandboxConfig) { c.LogDirectory = disk })
	sign := filepath.Join(w.dir, "sign")
	id := w.start(pod, "head -c 1000000 /dev/zero | tr '\\0' 'y' | fold -w 1000; echo; while [ ! -e "+sign+" ]; do sleep 0.02; done; echo end; exit 7",
		func(c *v1.ContainerConfig) { c.LogPath = "log" })
	c, err := w.container(id)
	w.must(err)
	w.eventually(func() bool {
		c.console.log.mu.Lock()
		defer c.console.log.mu.Unlock()
		return c.console.log.lost > 0 || strings.Contains(w.log(id), "were lost")
	}, "the disk is full")
	w.must(unix.Mount("", disk, "", unix.MS_REMOUNT, "size=4m"))
	w.file("sign", "")
	if status := w.ended(id); status.GetExitCode() != 7 {
		t.Errorf("exit code %d", status.GetExitCode())
	}
	if got := w.log(id); !strings.Contains(got, "bytes of log were lost") || !strings.HasSuffix(got, "end\n") {
		t.Errorf("log is %q", got)
	}
}
