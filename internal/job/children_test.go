package job

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A child that the operator may not read is created before the first pods of an attempt, and at no other time.
func TestUnseenChildrenAreCreatedWithEachAttempt(t *testing.T) {
	j := demo(2, func(j *Job) {
		j.Children = append(j.Children, Child{ChildKind: Keys, Object: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "demo-ssh"}}})
	})
	creates := func(d Decision) bool {
		return slices.ContainsFunc(d.CreateChildren, func(c Child) bool { return c.ChildKind == Keys })
	}
	first := Decide(Observed{Now: epoch, Job: j, Fresh: true})
	if len(first.CreatePods) != 3 || !creates(first) {
		t.Errorf("with the first pods: %+v", first)
	}
	if d := decide(started(t, j)); creates(d) {
		t.Error("it is created while the pods are there")
	}
	next := first.Status
	next.Attempt = 1
	if d := Decide(Observed{Now: epoch, Job: j, Status: next, Fresh: true, Live: true}); len(d.CreatePods) != 3 || !creates(d) {
		t.Errorf("with the pods of another attempt: %+v", d)
	}
}
