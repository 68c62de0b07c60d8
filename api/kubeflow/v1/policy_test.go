package v1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/trainyard/trainyard/api/kubeflow/v1"
)

func TestEffectivePolicy(t *testing.T) {
	for _, row := range []struct {
		name                  string
		runPolicy, flat, want v1.LifecyclePolicy
	}{
		{
			name: "nothing is set: finished jobs hold nothing that runs, and there are no limits",
			want: v1.LifecyclePolicy{CleanPodPolicy: new(v1.CleanPodPolicyRunning)},
		},
		{
			name: "today's place",
			runPolicy: v1.LifecyclePolicy{CleanPodPolicy: new(v1.CleanPodPolicyAll), TTLSecondsAfterFinished: new(int32(1)),
				ActiveDeadlineSeconds: new(int64(2)), BackoffLimit: new(int32(3))},
			want: v1.LifecyclePolicy{CleanPodPolicy: new(v1.CleanPodPolicyAll), TTLSecondsAfterFinished: new(int32(1)),
				ActiveDeadlineSeconds: new(int64(2)), BackoffLimit: new(int32(3))},
		},
		{
			name: "the older place",
			flat: v1.LifecyclePolicy{CleanPodPolicy: new(v1.CleanPodPolicyNone), TTLSecondsAfterFinished: new(int32(1)),
				ActiveDeadlineSeconds: new(int64(2)), BackoffLimit: new(int32(3))},
			want: v1.LifecyclePolicy{CleanPodPolicy: new(v1.CleanPodPolicyNone), TTLSecondsAfterFinished: new(int32(1)),
				ActiveDeadlineSeconds: new(int64(2)), BackoffLimit: new(int32(3))},
		},
		{
			name:      "each field for itself: today's place first, a zero included",
			runPolicy: v1.LifecyclePolicy{BackoffLimit: new(int32(0)), TTLSecondsAfterFinished: new(int32(0))},
			flat:      v1.LifecyclePolicy{BackoffLimit: new(int32(5)), ActiveDeadlineSeconds: new(int64(9))},
			want: v1.LifecyclePolicy{CleanPodPolicy: new(v1.CleanPodPolicyRunning), TTLSecondsAfterFinished: new(int32(0)),
				ActiveDeadlineSeconds: new(int64(9)), BackoffLimit: new(int32(0))},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			if diff := cmp.Diff(row.want, v1.EffectivePolicy(row.runPolicy, row.flat)); diff != "" {
				t.Errorf("policy (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEffectivePolicySharesNothingWithTheJob(t *testing.T) {
	flat := v1.LifecyclePolicy{BackoffLimit: new(int32(5))}
	*v1.EffectivePolicy(v1.LifecyclePolicy{}, flat).BackoffLimit = 6
	if *flat.BackoffLimit != 5 {
		t.Error("a change of the answer changed the job")
	}
}
