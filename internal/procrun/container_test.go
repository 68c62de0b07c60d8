package procrun

import (
	"strings"
	"testing"

	v1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestExitCodes(t *testing.T) {
	w := newWorld(t)
	pod := w.pod("codes")
	for name, tt := range map[string]struct {
		script string
		code   int32
		reason string
	}{
		"success is completed":                 {"exit 0", 0, "Completed"},
		"a failure keeps its code":             {"exit 3", 3, "Error"},
		"the largest code":                     {"exit 255", 255, "Error"},
		"SIGKILL is 137":                       {"kill -KILL $$", 137, "Error"},
		"SIGTERM is 143":                       {"kill -TERM $$", 143, "Error"},
		"SIGSEGV is 139":                       {"kill -SEGV $$", 139, "Error"},
		"a command the shell does not know":    {"no-such-command", 127, "Error"},
		"the end of a child is not the end":    {"(exit 7) & wait; exit 0", 0, "Completed"},
		"background children do not hold it":   {"sleep 1000 & exit 4", 4, "Error"},
		"daemons do not hold it":               {"setsid sleep 1000 >/dev/null 2>&1 & exit 5", 5, "Error"},
		"a daemon with the output in its hand": {"setsid sleep 1000 & exit 6", 6, "Error"},
	} {
		t.Run(name, func(t *testing.T) {
			status := w.ended(w.start(pod, tt.script))
			if status.GetExitCode() != tt.code || status.GetReason() != tt.reason {
				t.Errorf("got %d %s, want %d %s", status.GetExitCode(), status.GetReason(), tt.code, tt.reason)
			}
		})
	}
}

func TestWhatAContainerSees(t *testing.T) {
	w := newWorld(t)
	pod := w.pod("seer")
	out, code := w.run(pod, `echo pid $$ parent $PPID; hostname; cat /proc/1/comm; id -u; ls /sys/class/net; pwd; echo $FOO`,
		func(c *v1.ContainerConfig) { c.Envs = []*v1.KeyValue{{Key: "FOO", Value: []byte("bar baz")}} })
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{"parent 1\n", "seer\n", "eth0\nlo\n", "/tmp\n", "bar baz\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("missing %q in %q", want, out)
		}
	}
}
