package cluster_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/trainyard/trainyard/internal/testing/local"
)

const (
	// obeys ends when it is asked to, and notes that.
	obeys = `trap 'echo SIGTERM >> /scratch/story; exit 5' TERM; echo started >> /scratch/story; while :; do sleep 0.1; done`
	// ignores does not.
	ignores = `trap '' TERM; echo started >> /scratch/story; while :; do sleep 0.1; done`
)

// A pod past its active deadline is stopped as a deleted one is, and stays to be looked at.
func TestStoppedContainersReportHowTheyEnded(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	cases := []struct {
		what, script string
		code         int32
	}{
		{"ended by SIGTERM", `sleep 1000`, 143},
		{"ended by itself on SIGTERM", `trap 'exit 5' TERM; while :; do sleep 0.1; done`, 5},
		{"ended well on SIGTERM", `trap 'exit 0' TERM; while :; do sleep 0.1; done`, 0},
		{"ignored SIGTERM and ended by SIGKILL after the grace", `trap '' TERM; while :; do sleep 0.1; done`, 137},
	}
	for i, c := range cases {
		pod := local.Pod(fmt.Sprintf("stops-%d", i), c.script)
		pod.Spec.ActiveDeadlineSeconds, pod.Spec.TerminationGracePeriodSeconds = ptr.To(int64(2)), ptr.To(int64(2))
		w.Create(pod)
	}
	for i, c := range cases {
		w.Run(t, c.what, func(t *testing.T, w *local.World) {
			pod := w.Until(fmt.Sprintf("stops-%d", i), "stopped", func(p *corev1.Pod) bool {
				return p.Status.Phase == corev1.PodFailed && local.Container(p, "main").State.Terminated != nil
			})
			if pod.Status.Reason != "DeadlineExceeded" {
				t.Errorf("the pod failed for %s: %s", pod.Status.Reason, pod.Status.Message)
			}
			if got := local.Container(pod, "main").State.Terminated.ExitCode; got != c.code {
				t.Errorf("the exit code is %d, want %d", got, c.code)
			}
		})
	}
}

func TestDeletingAPod(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	type deletion struct {
		what   string
		pod    *corev1.Pod
		args   []string
		story  string
		atMost time.Duration
	}
	hooked := func(name, script string, hook corev1.LifecycleHandler) *corev1.Pod {
		pod := local.Pod(name, script)
		pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &hook}
		return pod
	}
	sh := func(text string) corev1.LifecycleHandler {
		return corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", text}}}
	}
	cases := []deletion{
		{"asks the container to end", local.Pod("obeys", obeys), nil, "started\nSIGTERM\n", 20 * time.Second},
		{"kills one that does not listen when its grace is over", local.Pod("ignores", ignores), []string{"--grace-period=1"}, "started\n", 20 * time.Second},
		{"by force does not wait", local.Pod("forced", ignores), []string{"--force", "--grace-period=0"}, "started\n", 20 * time.Second},
		{"runs a command of a preStop hook first", hooked("exec", obeys, sh(`sleep 0.5; echo preStop >> /scratch/story`)), nil, "started\npreStop\nSIGTERM\n", 20 * time.Second},
		{"stops although the preStop hook fails", hooked("fails", obeys, sh(`echo preStop >> /scratch/story; exit 1`)), nil, "started\npreStop\nSIGTERM\n", 20 * time.Second},
		{"does not wait for a preStop hook beyond the grace", hooked("endless", ignores, sh(`sleep 1000`)), []string{"--grace-period=1"}, "started\n", 25 * time.Second},
		{"sleeps for a preStop hook", hooked("sleeps", obeys, corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 1}}), nil, "started\nSIGTERM\n", 20 * time.Second},
		{"asks a preStop hook's server", hooked("http", `cd /scratch; /usr/bin/python3 -u -m http.server 8080 2>&1 | tee -a served & `+obeys,
			corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/bye", Port: intstr.FromInt32(8080)}}), nil, "started\nSIGTERM\n", 20 * time.Second},
	}
	folders := map[string]string{}
	for _, c := range cases {
		folders[c.pod.Name] = t.TempDir()
		w.Create(withMark(withFolder(c.pod, folders[c.pod.Name]), w.Namespace+"/"+c.pod.Name))
	}
	for _, c := range cases {
		w.Run(t, c.what, func(t *testing.T, w *local.World) {
			story := folders[c.pod.Name] + "/story"
			w.Eventually("the container runs", func() error { _, err := os.Stat(story); return err })
			begin := time.Now()
			w.Kubectl(append([]string{"delete", "pod", c.pod.Name}, c.args...)...)
			if took := time.Since(begin); took > c.atMost {
				t.Errorf("kubectl delete took %s", took)
			}
			w.Eventually("no process is left", func() error { return left(w.Namespace + "/" + c.pod.Name) })
			if got := read(t, story); got != c.story {
				t.Errorf("what happened is %q, want %q", got, c.story)
			}
		})
	}
	w.Eventually("the hook's request", func() error {
		return contains(read(t, folders["http"]+"/served"), "GET /bye")
	})
}

func TestPostStartHook(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	hooked := func(name, command string) *corev1.Pod {
		pod := local.Pod(name, `until [ -e /scratch/hook ]; do sleep 0.1; done; cat /scratch/hook`)
		pod.Spec.TerminationGracePeriodSeconds = ptr.To(int64(1))
		pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{
			PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", command}}},
		}
		return withScratch(pod)
	}
	w.Create(hooked("works", `echo "hook in $(hostname)" > /scratch/hook`), hooked("fails", `echo sorry >&2; exit 3`))
	w.Run(t, "runs in the container", func(t *testing.T, w *local.World) {
		w.UntilPhase("works", corev1.PodSucceeded)
		if got := w.Logs("works"); got != "hook in works\n" {
			t.Errorf("the log is %q", got)
		}
	})
	w.Run(t, "that fails ends the container and says why", func(t *testing.T, w *local.World) {
		w.UntilPhase("fails", corev1.PodFailed)
		w.Await("FailedPostStartHook", "events", "--for", "pod/fails")
	})
}

// A shorter grace period, or none, applies to the processes of a pod that is already being deleted.
func TestShorterGracePeriodKillsThePod(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	for name, args := range map[string][]string{
		"shorter": {"--grace-period=1", "--wait=false"},
		"forced":  {"--force", "--grace-period=0"},
	} {
		w.Run(t, name, func(t *testing.T, w *local.World) {
			pod, mark := local.Pod(name, `trap 'echo asked' TERM; echo up; while :; do sleep 0.1; done`), w.Namespace+"/"+name
			pod.Spec.TerminationGracePeriodSeconds = ptr.To(int64(3600))
			w.Create(withMark(pod, mark))
			w.Await("up", "logs", name)
			w.Kubectl("delete", "pod", name, "--wait=false")
			w.Await("asked", "logs", name)
			w.Kubectl(append([]string{"delete", "pod", name}, args...)...)
			w.Eventually("its processes are gone", func() error { return left(mark) })
		})
	}
}
