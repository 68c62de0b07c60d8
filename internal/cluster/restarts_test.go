package cluster_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/internal/testing/local"
)

func TestRestartPolicy(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	// On its nth life a container ends with the nth exit code; the last life does not end.
	lives := func(name string, policy corev1.RestartPolicy, codes string) *corev1.Pod {
		pod := local.Pod(name, `date +%s >> /scratch/lives; n=$(wc -l < /scratch/lives); set -- `+codes+`; shift $((n-1)); echo life $n; [ $# = 0 ] && sleep 1000; exit $1`)
		pod.Spec.RestartPolicy = policy
		return pod
	}
	folder := local.Folder(t)
	w.Create(
		withScratch(lives("never", corev1.RestartPolicyNever, "3")),
		withScratch(lives("on-failure", corev1.RestartPolicyOnFailure, "3 0")),
		withScratch(lives("always", corev1.RestartPolicyAlways, "0")),
		withFolder(lives("crashes", corev1.RestartPolicyAlways, "3 4 5 6 7 8 9"), folder),
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
		w.Await("CrashLoopBackOff", "get", "pod", "crashes")
		w.Await("Back-off restarting failed container main", "describe", "pod", "crashes")
		w.Until("crashes", "told to wait", func(p *corev1.Pod) bool {
			waiting := local.Container(p, "main").State.Waiting
			return waiting != nil && strings.Contains(waiting.Message, "restarting failed container=main")
		})
		w.Until("crashes", "in its third life or later", func(p *corev1.Pod) bool { return local.Container(p, "main").RestartCount >= 2 })
		var births [3]int
		if _, err := fmt.Sscan(read(t, folder+"/lives"), &births[0], &births[1], &births[2]); err != nil {
			t.Fatal(err)
		}
		if waited := births[2] - births[1]; waited < 9 { // of ten seconds, in whole ones
			t.Errorf("its third life began %d s after its second", waited)
		}
	})
}
