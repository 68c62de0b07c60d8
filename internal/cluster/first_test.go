package cluster_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/internal/testing/local"
)

func TestPodRunsToItsEnd(t *testing.T) {
	w := local.New(t)
	w.Create(local.Pod("hello", "echo hello from $(hostname)"))
	w.UntilPhase("hello", corev1.PodSucceeded)
	if got := w.Logs("hello"); got != "hello from hello\n" {
		t.Errorf("the log is %q", got)
	}
}
