package cluster_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/trainyard/trainyard/internal/testing/local"
)

// checkup is a way to ask a container how it is, with a script that makes it answer well from some moment on, and then badly.
// The moments are when somebody creates and when he removes /scratch/well.
type checkup struct {
	handler corev1.ProbeHandler
	script  string
}

var checkups = map[string]checkup{
	"exec": {
		corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"test", "-e", "/scratch/well"}}},
		`sleep 1000`,
	},
	"httpGet": {
		corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/well", Port: intstr.FromInt32(8080)}},
		`cd /scratch; exec /usr/bin/python3 -m http.server 8080`,
	},
	"tcpSocket": {
		corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(8080)}},
		`while :; do
			until [ -e /scratch/well ]; do sleep 0.1; done; /usr/bin/python3 -m http.server 8080 & 
			while [ -e /scratch/well ]; do sleep 0.1; done; kill $!; wait
		done`,
	},
	"grpc": {
		corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 8080}},
		`exec env ` + healthServer + `=/scratch/well $(TEST_BINARY)`,
	},
}

// probed is a pod whose container is asked in one of the ways; ask says what for.
func probed(name string, h checkup, ask func(*corev1.Container, *corev1.Probe)) *corev1.Pod {
	pod := local.Pod(name, h.script)
	pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	pod.Spec.TerminationGracePeriodSeconds = ptr.To(int64(1))
	main := &pod.Spec.Containers[0]
	main.Env = []corev1.EnvVar{{Name: "TEST_BINARY", Value: executable}}
	ask(main, &corev1.Probe{ProbeHandler: h.handler, PeriodSeconds: 1, FailureThreshold: 1, TimeoutSeconds: 10})
	return pod
}

func mainReady(p *corev1.Pod) bool { return local.Container(p, "main").Ready }

func TestReadinessProbe(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	folders := map[string]string{}
	for kind, h := range checkups {
		folders[kind] = local.Folder(t)
		w.Create(withFolder(probed(strings.ToLower(kind), h, func(c *corev1.Container, p *corev1.Probe) { c.ReadinessProbe = p }), folders[kind]))
	}
	for kind := range checkups {
		w.Run(t, kind, func(t *testing.T, w *local.World) {
			t.Parallel()
			name, well := strings.ToLower(kind), folders[kind]+"/well"
			w.UntilPhase(name, corev1.PodRunning)
			w.Await("Readiness probe failed", "events", "--for", "pod/"+name)
			if mainReady(w.Get(name)) {
				t.Error("it is ready before it is well")
			}
			write(t, well, "")
			w.Until(name, "ready", mainReady)
			remove(t, well)
			pod := w.Until(name, "no longer ready", func(p *corev1.Pod) bool { return !mainReady(p) })
			if n := local.Container(pod, "main").RestartCount; n != 0 {
				t.Errorf("it was restarted %d times, which is not a readiness probe's to do", n)
			}
		})
	}
}

func TestLivenessProbe(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	folders := map[string]string{}
	for kind, h := range checkups {
		folders[kind] = local.Folder(t)
		write(t, folders[kind]+"/well", "")
		w.Create(withFolder(probed(strings.ToLower(kind), h, func(c *corev1.Container, p *corev1.Probe) {
			p.FailureThreshold = 5 // a server needs its time to start
			c.LivenessProbe = p
			c.ReadinessProbe = p.DeepCopy()
		}), folders[kind]))
	}
	for kind := range checkups {
		w.Run(t, kind, func(t *testing.T, w *local.World) {
			t.Parallel()
			name, well := strings.ToLower(kind), folders[kind]+"/well"
			pod := w.Until(name, "ready", mainReady)
			if n := local.Container(pod, "main").RestartCount; n != 0 {
				t.Errorf("it was restarted %d times while it was well", n)
			}
			remove(t, well)
			pod = w.Until(name, "restarted", func(p *corev1.Pod) bool { return local.Container(p, "main").RestartCount > 0 })
			write(t, well, "")
			if end := local.Container(pod, "main").LastTerminationState.Terminated; end == nil || end.ExitCode == 0 {
				t.Errorf("it ended as %+v", end)
			}
		})
	}
}

func TestStartupProbe(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	folders := map[string]string{}
	for kind, h := range checkups {
		folders[kind] = local.Folder(t)
		w.Create(withFolder(probed(strings.ToLower(kind), h, func(c *corev1.Container, p *corev1.Probe) {
			c.StartupProbe, c.LivenessProbe = p, p.DeepCopy()
			p.FailureThreshold = 1000 // the test may have to wait for its turn
		}), folders[kind]))
	}
	late := probed("late", checkups["exec"], func(c *corev1.Container, p *corev1.Probe) {
		c.StartupProbe = p
		p.FailureThreshold = 2
	})
	w.Create(late)
	for kind := range checkups {
		w.Run(t, kind+" holds off the liveness probe until the container has started", func(t *testing.T, w *local.World) {
			t.Parallel()
			name := strings.ToLower(kind)
			w.UntilPhase(name, corev1.PodRunning)
			w.Await("Startup probe failed", "events", "--for", "pod/"+name)
			if started := local.Container(w.Get(name), "main").Started; ptr.Deref(started, true) {
				t.Error("it has started before it is well")
			}
			write(t, folders[kind]+"/well", "")
			pod := w.Until(name, "started", func(p *corev1.Pod) bool { return ptr.Deref(local.Container(p, "main").Started, false) })
			if n := local.Container(pod, "main").RestartCount; n != 0 {
				t.Errorf("it was restarted %d times", n)
			}
		})
	}
	w.Run(t, "ends a container that does not start in time", func(t *testing.T, w *local.World) {
		pod := w.Until("late", "restarted", func(p *corev1.Pod) bool { return local.Container(p, "main").RestartCount > 0 })
		if end := local.Container(pod, "main").LastTerminationState.Terminated; end == nil || end.ExitCode != 143 {
			t.Errorf("it ended as %+v", end)
		}
	})
}

func TestProbeThatHangs(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	pod := local.Pod("hangs", `exec sleep 1000`)
	pod.Spec.Containers[0].ReadinessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", `trap '' TERM; sleep 1000 & sleep 1000`}}},
		PeriodSeconds: 5, TimeoutSeconds: 1, // so that none runs for four of five seconds
	}
	w.Create(withMark(pod, w.Namespace))
	w.Await(`timed out after 1s`, "events", "--for", "pod/hangs")
	w.Eventually("its processes are gone", func() error {
		if n := count(w.Namespace); n != 1 {
			return fmt.Errorf("%d processes run, want the container's own", n)
		}
		return nil
	})
}
