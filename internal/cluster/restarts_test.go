package cluster_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/internal/testing/local"
)

func TestRestartPolicy(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	// On its nth life a container ends with the nth exit code; the last life does not end.
	lives := func(name string, policy corev1.RestartPolicy, codes string) *corev1.Pod {
		pod := local.Pod(name, `echo life >> /scratch/lives; n=$(wc -l < /scratch/lives); set -- `+codes+`; shift $((n-1)); echo life $n; [ $# = 0 ] && sleep 1000; exit $1`)
		pod.Spec.RestartPolicy = policy
		return withScratch(pod)
	}
	w.Create(
		lives("never", corev1.RestartPolicyNever, "3"),
		lives("on-failure", corev1.RestartPolicyOnFailure, "3 0"),
		lives("always", corev1.RestartPolicyAlways, "0"),
		lives("crashes", corev1.RestartPolicyAlways, "3 4"),
	)

	w.Run(t, "Never: one life, whatever its end", func(t *testing.T, w *local.World) {
		pod := w.UntilPhase("never", corev1.PodFailed)
		if main := local.Container(pod, "main"); main.RestartCount != 0 || main.State.Terminated.ExitCode != 3 {
			t.Errorf("main is %+v", main)
		}
		w.Await("Error", "get", "pod", "never")
	})
	w.Run(t, "OnFailure: restarted until it succeeds, with the failure remembered", func(t *testing.T, w *local.World) {
		pod := w.UntilPhase("on-failure", corev1.PodSucceeded)
		main := local.Container(pod, "main")
		if main.RestartCount != 1 || main.LastTerminationState.Terminated.ExitCode != 3 {
			t.Errorf("main is %+v", main)
		}
		if now, before := w.Logs("on-failure"), w.Logs("on-failure", "--previous"); now != "life 2\n" || before != "life 1\n" {
			t.Errorf("the logs are %q and before %q", now, before)
		}
	})
	w.Run(t, "Always: restarted although it succeeded", func(t *testing.T, w *local.World) {
		pod := w.Until("always", "in its second life", func(p *corev1.Pod) bool {
			return local.Container(p, "main").RestartCount == 1 && local.Container(p, "main").State.Running != nil
		})
		if end := local.Container(pod, "main").LastTerminationState.Terminated; end.ExitCode != 0 || end.Reason != "Completed" {
			t.Errorf("the first life ended as %+v", end)
		}
	})
	w.Run(t, "a container that keeps failing waits longer and longer: CrashLoopBackOff", func(t *testing.T, w *local.World) {
		pod := w.Until("crashes", "backing off", func(p *corev1.Pod) bool {
			waiting := local.Container(p, "main").State.Waiting
			return waiting != nil && waiting.Reason == "CrashLoopBackOff" && local.Container(p, "main").RestartCount == 1
		})
		main := local.Container(pod, "main")
		if main.LastTerminationState.Terminated.ExitCode != 4 || !strings.Contains(main.State.Waiting.Message, "back-off 10s restarting failed container=main") {
			t.Errorf("main is %+v", main)
		}
		w.Await("CrashLoopBackOff", "get", "pod", "crashes")
		w.Await("Back-off restarting failed container main", "describe", "pod", "crashes")
		second := main.LastTerminationState.Terminated.FinishedAt
		pod = w.Until("crashes", "in its third life", func(p *corev1.Pod) bool { return local.Container(p, "main").State.Running != nil })
		third := local.Container(pod, "main").State.Running.StartedAt
		if waited := third.Sub(second.Time); waited < 9*time.Second || waited > time.Minute { // whole seconds are recorded
			t.Errorf("it waited %s", waited)
		}
	})
}
