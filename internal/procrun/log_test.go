package procrun

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	v1 "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-client/pkg/logs"
)

// entries returns stream, tag and content of a log's entries.
func entries(log string) []string {
	var all []string
	for line := range strings.Lines(log) {
		_, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		all = append(all, rest)
	}
	return all
}

// joined returns the entries of a container's log with the parts of a line joined: how long a program takes from one piece of
// a line to the next is nothing to rely on.
func joined(w *world, id string) []string {
	w.Helper()
	c, err := w.container(id)
	w.must(err)
	text, err := os.ReadFile(c.logPath)
	w.must(err)
	var all []string
	open := ""
	for _, e := range entries(string(text)) {
		head, content := e[:len("stdout F ")], e[len("stdout F "):]
		if open != "" {
			all[len(all)-1] = head + strings.TrimPrefix(all[len(all)-1], open) + content
		} else {
			all = append(all, e)
		}
		open = ""
		if strings.HasSuffix(head, "P ") {
			open = head
		}
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
		"streams are distinguished":           {"echo no >&2", []string{"stderr F no"}},
		"an empty line":                       {"echo", []string{"stdout F "}},
		"spaces are kept":                     {"echo '  a  '", []string{"stdout F   a  "}},
		"an unfinished line is a part":        {"printf one", []string{"stdout P one"}},
		"a line written in pieces is one":     {"printf o; sleep 0.05; echo ne", []string{"stdout F one"}},
		"any byte is kept":                    {`printf '\000\377\r\033\n'`, []string{"stdout F \x00\xff\r\x1b"}},
		"a long line":                         {"printf '%016385d\n' 0 | tr 0 x", []string{"stdout F " + long + "x"}},
		"nothing written":                     {"true", nil},
		"what a child says at the end counts": {"(sleep 0.1; echo late) & wait", []string{"stdout F late"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			id := w.start(pod, tt.script)
			w.ended(id)
			if diff := cmp.Diff(tt.want, joined(w, id)); diff != "" {
				t.Errorf("log differs (-want +got):\n%s", diff)
			}
		})
	}
}

// What a program writes is passed on as lines, and after a while as the parts of one; kubelet makes of that what it wrote.
func TestPartsOfLines(t *testing.T) {
	long := strings.Repeat("x", maxLogLine)
	for name, tt := range map[string]struct {
		does  string // "out " and "err " write, "wait" lets time pass
		want  []string
		shown string // of both streams, by kubelet
	}{
		"pieces that follow each other quickly are one entry": {"out o|out ne\n", []string{"stdout F one"}, "one\n"},
		"the beginning of a line is passed on after a while":  {"out o|wait", []string{"stdout P o"}, "o"},
		"the rest comes in an entry of its own":               {"out o|wait|out ne\n", []string{"stdout P o", "stdout F ne"}, "one\n"},
		"a line that ends after its beginning was passed on":  {"out one|wait|out \n|wait", []string{"stdout P one", "stdout F "}, "one\n"},
		"each line starts the wait again":                     {"out o|half|out ne\ntwo|half|out \n", []string{"stdout F one", "stdout F two"}, "one\ntwo\n"},
		"a progress bar is passed on as it moves": {"err \r1%|wait|err \r2%|half|err \r3%|wait|err \n",
			[]string{"stderr P \r1%", "stderr P \r2%\r3%", "stderr F "}, "\r1%\r2%\r3%\n"},
		"a stream that interrupts the other ends its line": {"err 1%|wait|out one\n|err 2%|wait|out two\n",
			[]string{"stderr P 1%", "stderr F ", "stdout F one", "stderr P 2%", "stderr F ", "stdout F two"}, "1%\none\n2%\ntwo\n"},
		"two parts are two lines": {"err 1%|half|out o|wait|err 2%|wait",
			[]string{"stderr P 1%", "stderr F ", "stdout P o", "stdout F ", "stderr P 2%"}, "1%\no\n2%"},
		"what is not passed on is not interrupted": {"err 1|out one\n|err 2\n", []string{"stdout F one", "stderr F 12"}, "one\n12\n"},
		"the longest line":                         {"out " + long + "\n", []string{"stdout F " + long}, long + "\n"},
		"a longer line is cut":                     {"out " + long + "x\n", []string{"stdout P " + long, "stdout F x"}, long + "x\n"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := newLog(t, 0)
				out, err := &logStream{log: log, name: "stdout"}, &logStream{log: log, name: "stderr"}
				for step := range strings.SplitSeq(tt.does, "|") {
					switch what, text, _ := strings.Cut(step, " "); what {
					case "out":
						out.write([]byte(text))
					case "err":
						err.write([]byte(text))
					case "wait":
						time.Sleep(partialLineDelay)
						synctest.Wait()
					case "half":
						time.Sleep(partialLineDelay * 3 / 5)
						synctest.Wait()
					}
				}
				if diff := cmp.Diff(tt.want, entries(readLog(t, log))); diff != "" {
					t.Errorf("log differs (-want +got):\n%s", diff)
				}
				if got := kubeletShows(t, log); got != tt.shown {
					t.Errorf("kubelet shows %q, want %q", got, tt.shown)
				}
				timesRise(t, log)
			})
		})
	}
}

func newLog(t *testing.T, limit int64) *logFile {
	t.Helper()
	log, err := openLog(filepath.Join(t.TempDir(), "0.log"), limit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(log.close)
	return log
}

func readLog(t *testing.T, log *logFile) string {
	t.Helper()
	text, err := os.ReadFile(log.path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// kubeletShows is what kubelet's own reader makes of a log.
func kubeletShows(t *testing.T, log *logFile) string {
	t.Helper()
	var both strings.Builder
	if err := logs.ReadLogs(t.Context(), log.path, "", &logs.LogOptions{}, nil, &both, &both); err != nil {
		t.Fatal(err)
	}
	return both.String()
}

// timesRise checks that each entry is later than the one before, though no time passes here while a program writes.
func timesRise(t *testing.T, log *logFile) {
	t.Helper()
	var last time.Time
	for line := range strings.Lines(readLog(t, log)) {
		stamp, _, _ := strings.Cut(line, " ")
		at, err := time.Parse(time.RFC3339Nano, stamp)
		if err != nil || !at.After(last) {
			t.Errorf("%q comes after an entry of %s (%v)", line, last, err)
		}
		last = at
	}
}

// Ten minutes of a byte each millisecond are a few entries a second.
func TestBytesAreBatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newLog(t, 0)
		out := &logStream{log: log, name: "stdout"}
		const bytes = 600_000
		for range bytes {
			out.write([]byte("."))
			time.Sleep(time.Millisecond)
		}
		out.pass()
		if n := len(entries(readLog(t, log))); n > 3001 {
			t.Errorf("there are %d entries", n)
		}
		if got := kubeletShows(t, log); got != strings.Repeat(".", bytes) {
			t.Errorf("%d bytes come back of %d", len(got), bytes)
		}
	})
}

// A line's beginning waits for room in a full log like any other entry, and goes on in the next file.
func TestPartsAreHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newLog(t, 10)
		out := &logStream{log: log, name: "stdout"}
		out.write([]byte("full\n50%"))
		time.Sleep(partialLineDelay)
		synctest.Wait()
		if got := entries(readLog(t, log)); !cmp.Equal(got, []string{"stdout F full"}) {
			t.Errorf("the full log is %q", got)
		}
		if err := os.Rename(log.path, log.path+".old"); err != nil {
			t.Fatal(err)
		}
		if err := log.reopen(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := entries(readLog(t, log)); !cmp.Equal(got, []string{"stdout P 50%"}) {
			t.Errorf("the next log is %q", got)
		}
	})
}

// What is lost on a full disk does not change what line the log is in.
func TestPartsOnAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newLog(t, 0)
		out := &logStream{log: log, name: "stdout"}
		out.write([]byte("50%"))
		time.Sleep(partialLineDelay)
		synctest.Wait()
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer full.Close() //nolint:errcheck // nothing is ever written to it
		disk := log.file
		log.file = full
		out.write([]byte("\n"))
		log.file = disk
		out.write([]byte("one\n"))
		want := []string{"stdout P 50%", "stdout F ", "stderr F [42 bytes of log were lost: the disk was full]", "stdout F one"}
		got := entries(readLog(t, log))
		if len(got) == 4 {
			got[2] = regexp.MustCompile(`\d+`).ReplaceAllString(got[2], "42")
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("log differs (-want +got):\n%s", diff)
		}
	})
}

// A program with a progress bar on one stream says something on the other.
func TestProgressIsLogged(t *testing.T) {
	w := newWorld(t)
	sign := filepath.Join(w.dir, "sign")
	id := w.start(w.pod("bar"), `printf '\r10%%' >&2; while [ ! -e `+sign+` ]; do sleep 0.02; done; echo one`)
	w.logged(id, "\r10%")
	w.file("sign", "")
	w.ended(id)
	if diff := cmp.Diff([]string{"stderr F \r10%", "stdout F one"}, joined(w, id)); diff != "" {
		t.Errorf("log differs (-want +got):\n%s", diff)
	}
}

func TestTerminalOutput(t *testing.T) {
	w := newWorld(t)
	id := w.start(w.pod("tty"), "tty; echo err >&2", func(c *v1.ContainerConfig) { c.Tty = true })
	w.ended(id)
	got := joined(w, id)
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
