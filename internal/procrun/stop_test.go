package procrun

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/trainyard/trainyard/internal/procrun/proc"
)

func TestStop(t *testing.T) {
	w := newWorld(t)
	pod := w.pod("stopped")
	signal := func(s v1.Signal) func(*v1.ContainerConfig) {
		return func(c *v1.ContainerConfig) { c.StopSignal = s }
	}
	for name, tt := range map[string]struct {
		script string
		grace  int64
		change func(*v1.ContainerConfig)
		code   int32
	}{
		"SIGTERM ends it":                         {"echo ready; exec sleep 1000", 30, nil, 143},
		"it ends well in its own time":            {"trap 'sleep 0.2; exit 0' TERM; echo ready; while :; do sleep 0.05; done", 30, nil, 0},
		"it ignores SIGTERM and is killed":        {"trap '' TERM; echo ready; while :; do sleep 1; done", 1, nil, 137},
		"no grace is SIGKILL at once":             {"trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done", 0, nil, 137},
		"its own stop signal":                     {"trap 'exit 9' USR1; echo ready; while :; do sleep 0.05; done", 30, signal(v1.Signal_SIGNAL_SIGUSR1), 9},
		"a stop signal nobody waits for kills it": {"echo ready; exec sleep 1000", 30, signal(v1.Signal_SIGNAL_SIGHUP), 129},
	} {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			var changes []func(*v1.ContainerConfig)
			if tt.change != nil {
				changes = append(changes, tt.change)
			}
			id := w.start(pod, tt.script, changes...)
			w.logged(id, "ready")
			begun := time.Now()
			w.must(w.StopContainer(context.Background(), id, tt.grace))
			if took := time.Since(begun); took > time.Duration(tt.grace)*time.Second+5*time.Second {
				t.Errorf("stopping took %s", took)
			}
			if status := w.ended(id); status.GetExitCode() != tt.code {
				t.Errorf("exit code %d, want %d", status.GetExitCode(), tt.code)
			}
		})
	}
}

func TestStoppingTwiceOrAtOnceIsStoppingOnce(t *testing.T) {
	w := newWorld(t)
	id := w.start(w.pod("twice"), "echo ready; exec sleep 1000")
	w.logged(id, "ready")
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if err := w.StopContainer(context.Background(), id, 10); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	w.must(w.StopContainer(context.Background(), id, 10))
	if status := w.ended(id); status.GetExitCode() != 143 {
		t.Errorf("exit code %d", status.GetExitCode())
	}
	w.must(w.StopContainer(context.Background(), "no such container", 10))
}

// Whatever a container forks, daemonizes or lets become an orphan dies with it, and is reaped while it lives.
func TestEverythingDiesWithTheContainer(t *testing.T) {
	w := newWorld(t)
	mark := strconv.Itoa(100000 + os.Getpid())
	script := `setsid sh -c 'sleep ` + mark + ` & sleep ` + mark + `' & (sleep ` + mark + ` &) ; echo ready; sleep ` + mark
	for name, mode := range map[string]v1.NamespaceMode{
		"own PID namespace": v1.NamespaceMode_CONTAINER, "the pod's": v1.NamespaceMode_POD, "the node's": v1.NamespaceMode_NODE,
	} {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			pod := w.pod("orphans", func(c *v1.PodSandboxConfig) { c.Linux.SecurityContext.NamespaceOptions.Pid = mode })
			id := w.start(pod, script)
			w.logged(id, "ready")
			w.eventually(func() bool { return running("sleep "+mark) == 4 }, "four sleepers")
			w.must(w.StopContainer(context.Background(), id, 1))
			w.ended(id)
			w.eventually(func() bool { return running("sleep "+mark) == 0 }, "no sleeper")
		})
	}
}

// running counts the processes of the enclave with a command line.
func running(command string) int {
	count := 0
	for pid := range proc.ReadAll().ByPid {
		line, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		if strings.TrimRight(strings.ReplaceAll(string(line), "\x00", " "), " ") == command {
			count++
		}
	}
	return count
}

func TestOrphansAreReaped(t *testing.T) {
	w := newWorld(t)
	out, _ := w.run(w.pod("zombies"), `
		for i in 1 2 3 4 5; do (sh -c 'exit 0' & ) ; done
		(sh -c 'sleep 0.1' &)
		tries=0
		while grep -l 'State:.Z' /proc/[0-9]*/status 2>/dev/null && [ $tries -lt 200 ]; do sleep 0.05; tries=$((tries+1)); done >/dev/null
		echo after $(grep -l 'State:.Z' /proc/[0-9]*/status 2>/dev/null | wc -l)`)
	if out != "after 0\n" {
		t.Errorf("zombies: %q", out)
	}
}

func TestCloseEndsEverything(t *testing.T) {
	w := newWorld(t)
	pod := w.pod("closing")
	polite := w.start(pod, "echo ready; exec sleep 1000")
	rude := w.start(pod, "trap '' TERM; echo ready; while :; do sleep 1; done")
	w.logged(polite, "ready")
	w.logged(rude, "ready")
	w.must(w.Close(context.Background()))
	if status := w.ended(polite); status.GetExitCode() != 143 {
		t.Errorf("exit code %d, want 143", status.GetExitCode())
	}
	if status := w.ended(rude); status.GetExitCode() != 137 {
		t.Errorf("exit code %d, want 137", status.GetExitCode())
	}
	if _, err := w.RunPodSandbox(context.Background(), podConfig(w, "late"), ""); !errors.Is(err, errClosing) {
		t.Errorf("a late pod: %v", err)
	}
}
