package kinds

import (
	"testing"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	trainer "github.com/trainyard/trainyard/api/trainer/v1alpha1"
	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/manifest"
)

// A client whose types lack a field that we added drops it from the spec when it writes the job, as Kueue does. What the first record kept
// still counts, in every kind; a later value in the spec comes before it. In a job that Kueue does not write, what is gone was removed.
func TestAddedFieldsSurviveOtherClients(t *testing.T) {
	for _, kind := range All {
		t.Run(kind.Name(), func(t *testing.T) {
			obj := kind.New()
			obj.SetName("demo")
			obj.SetLabels(map[string]string{manifest.LabelQueue: "team"})
			setTTL(obj, new(int32(60)))
			record := func() {
				m := kind.Read(obj)
				kind.Write(obj, m, job.Status{})
			}
			record()
			setTTL(obj, nil)
			record()
			if ttl := ttlOf(kind, obj); ttl == nil || *ttl != 60 {
				t.Errorf("after another client's write the TTL is %v", ttl)
			}
			setTTL(obj, new(int32(90)))
			record()
			setTTL(obj, nil)
			if ttl := ttlOf(kind, obj); ttl == nil || *ttl != 90 {
				t.Errorf("after an edit and another client's write the TTL is %v", ttl)
			}
			obj.SetLabels(nil)
			if ttl := ttlOf(kind, obj); ttl != nil {
				t.Errorf("removed from a job without a queue, the TTL is %d", *ttl)
			}
			plain := kind.New()
			plain.SetAnnotations(map[string]string{kubeflowv1.AnnotationTTL: "30"})
			if ttl := ttlOf(kind, plain); ttl == nil || *ttl != 30 {
				t.Errorf("by its annotation the TTL is %v", ttl)
			}
		})
	}
}

func ttlOf(kind Adapter, obj manifest.Object) *int32 {
	return kind.Read(obj).Job.Policy.TTLSecondsAfterFinished
}

// setTTL writes the field that we added: where the first kubeflow.org jobs had it, and in a TrainJob.
func setTTL(obj manifest.Object, ttl *int32) {
	if tj, ok := obj.(*trainer.TrainJob); ok {
		tj.Spec.TTLSecondsAfterFinished = ttl
		return
	}
	obj.(kubeflowv1.Job).Parts().FlatPolicy.TTLSecondsAfterFinished = ttl
}
