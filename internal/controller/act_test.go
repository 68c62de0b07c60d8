package controller

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestBatchesDouble(t *testing.T) {
	for _, row := range []struct {
		sentence string
		n        int
		fails    int // from this call on; -1 for never
		calls    int
	}{
		{"nothing to do", 0, -1, 0},
		{"all goes well", 10, -1, 10},
		{"an answer that is the same for all costs one call", 100, 0, 1},
		{"the batch in which something fails is the last", 100, 5, 7},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			var mu sync.Mutex
			var done []int
			err := inBatches(row.n, func(i int) error {
				mu.Lock()
				defer mu.Unlock()
				done = append(done, i)
				if row.fails >= 0 && i >= row.fails {
					return errors.New("no")
				}
				return nil
			})
			slices.Sort(done)
			if len(done) != row.calls || len(slices.Compact(done)) != row.calls || (err != nil) != (row.fails >= 0) {
				t.Errorf("%d calls, want %d; error %v", len(done), row.calls, err)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	terminating := apierrors.NewForbidden(pods, "demo-worker-0", errors.New("the namespace is terminating"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for _, row := range []struct {
		sentence          string
		answer            error
		told, good, error bool
	}{
		{"422 is for good", apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "demo-worker-0", nil), true, true, false},
		{"a quota may pass", apierrors.NewForbidden(pods, "demo-worker-0", errors.New("exceeded quota")), true, false, false},
		{"a name may become free", apierrors.NewAlreadyExists(pods, "demo-worker-0"), true, false, false},
		{"a namespace that goes takes the job with it", terminating, false, false, false},
		{"trouble of the API server is not the job's", apierrors.NewInternalError(errors.New("etcd")), false, false, true},
		{"nor is a time-out", apierrors.NewTimeoutError("slow", 1), false, false, true},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			p := &pass{memory: &memory{}, at: time.Unix(100, 0)}
			told, err := p.refused(errors.Join(&refusal{object: "pod demo-worker-0", error: row.answer}))
			if told != row.told || (err != nil) != row.error {
				t.Fatalf("told %v, error %v", told, err)
			}
			if told && (p.refusal.Invalid != row.good || p.refusal.Object != "pod demo-worker-0" || p.refusal.Times != 1) {
				t.Errorf("%+v", p.refusal)
			}
		})
	}
}
