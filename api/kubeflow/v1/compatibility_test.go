package v1_test

import (
	"encoding/json"
	"math/rand"
	"testing"

	"github.com/google/go-cmp/cmp"
	theirs "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/equality"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/api/naming"
)

// Whatever a client of Training Operator 1.9 writes, it reads the same after it went through our types.
func TestNothingOfTrainingOperatorsTypesIsLost(t *testing.T) {
	codecs := serializer.NewCodecFactory(runtime.NewScheme())
	for seed := range int64(500) {
		fill := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(seed), codecs)

		pytorch := theirs.PyTorchJob{}
		fill.Fill(&pytorch)
		through[kubeflowv1.PyTorchJob](t, seed, pytorch)

		tf := theirs.TFJob{}
		fill.Fill(&tf)
		through[kubeflowv1.TFJob](t, seed, tf)

		jax := theirs.JAXJob{}
		fill.Fill(&jax)
		through[kubeflowv1.JAXJob](t, seed, jax)

		xgboost := theirs.XGBoostJob{}
		fill.Fill(&xgboost)
		through[kubeflowv1.XGBoostJob](t, seed, xgboost)

		paddle := theirs.PaddleJob{}
		fill.Fill(&paddle)
		through[kubeflowv1.PaddleJob](t, seed, paddle)

		mpi := theirs.MPIJob{}
		fill.Fill(&mpi)
		through[kubeflowv1.MPIJob](t, seed, mpi)
	}
}

// through sends their object through our type, and wants it back unchanged.
func through[Ours, Theirs any](t *testing.T, seed int64, want Theirs) {
	t.Helper()
	ours := recode[Ours](t, recode[Theirs](t, want))
	got := recode[Theirs](t, ours)
	if want = recode[Theirs](t, want); !equality.Semantic.DeepEqual(want, got) {
		t.Fatalf("seed %d: %T (-want +got):\n%s", seed, want, cmp.Diff(want, got))
	}
}

// recode turns a value into JSON and that into another type.
func recode[To any](t *testing.T, from any) To {
	t.Helper()
	data, err := json.Marshal(from)
	if err != nil {
		t.Fatal(err)
	}
	var to To
	if err := json.Unmarshal(data, &to); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	return to
}

// A client of Training Operator 1.9 reads a job that has all we add: it sees what it knows and stumbles over nothing.
func TestTrainingOperatorsTypesReadOurJobs(t *testing.T) {
	now := metav1.Now().Rfc3339Copy()
	ours := kubeflowv1.TFJob{
		Spec: kubeflowv1.TFJobSpec{
			FlatPolicy: kubeflowv1.FlatPolicy{LifecyclePolicy: kubeflowv1.LifecyclePolicy{BackoffLimit: new(int32(3))}},
			RunPolicy:  kubeflowv1.RunPolicy{LifecyclePolicy: kubeflowv1.LifecyclePolicy{CleanPodPolicy: new(kubeflowv1.CleanPodPolicyAll)}},
		},
		Status: kubeflowv1.JobStatus{
			Conditions:      []kubeflowv1.JobCondition{{Type: kubeflowv1.JobRunning, Status: "True", Reason: "TFJobRunning", LastTransitionTime: now}},
			ReplicaStatuses: map[kubeflowv1.ReplicaType]*kubeflowv1.ReplicaStatus{kubeflowv1.TFWorker: {Active: 2, Selector: "a=b", CompletedIndexes: "0"}},
			StartTime:       &now,
			RunStatus: kubeflowv1.RunStatus{
				ObservedGeneration: 3,
				Ready:              "2/3",
				Message:            "waiting for worker-2",
				Attempt:            1,
				LastFailure:        &kubeflowv1.ReplicaFailure{Replica: "worker-2", ExitCode: new(int32(1)), Class: kubeflowv1.FailureApplication},
				Attempts:           []kubeflowv1.Attempt{{Number: 0, EndTime: &now, Why: "worker-2 failed"}},
				Records:            []kubeflowv1.ReplicaRecord{{Role: "Worker", Pod: "u", Failures: 1}},
			},
		},
	}
	want := theirs.TFJob{
		Spec: theirs.TFJobSpec{RunPolicy: theirs.RunPolicy{CleanPodPolicy: new(theirs.CleanPodPolicyAll)}},
		Status: theirs.JobStatus{
			Conditions:      []theirs.JobCondition{{Type: theirs.JobRunning, Status: "True", Reason: "TFJobRunning", LastTransitionTime: now}},
			ReplicaStatuses: map[theirs.ReplicaType]*theirs.ReplicaStatus{theirs.TFJobReplicaTypeWorker: {Active: 2, Selector: "a=b"}},
			StartTime:       &now,
		},
	}
	if diff := cmp.Diff(want, recode[theirs.TFJob](t, ours)); diff != "" {
		t.Errorf("what their client reads (-want +got):\n%s", diff)
	}
}

// A job without a status is sent without one, so that a typed client that creates it says nothing it does not mean.
func TestAnEmptyStatusIsNotSent(t *testing.T) {
	data, err := json.Marshal(kubeflowv1.PyTorchJob{Spec: kubeflowv1.PyTorchJobSpec{
		PyTorchReplicaSpecs: map[kubeflowv1.ReplicaType]*kubeflowv1.ReplicaSpec{kubeflowv1.PyTorchWorker: {}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"spec":{"pytorchReplicaSpecs":{"Worker":{}}}}`; string(data) != want {
		t.Errorf("sent %s, want %s", data, want)
	}
}

// Our words are theirs.
func TestConstantsAreTrainingOperators(t *testing.T) {
	for ours, theirs := range map[string]string{
		naming.LabelOperatorName:              theirs.OperatorNameLabel,
		naming.LabelJobName:                   theirs.JobNameLabel,
		naming.LabelReplicaType:               theirs.ReplicaTypeLabel,
		naming.LabelReplicaIndex:              theirs.ReplicaIndexLabel,
		naming.LabelJobRole:                   theirs.JobRoleLabel,
		kubeflowv1.ManagedByTrainingOperator:  theirs.KubeflowJobsController,
		kubeflowv1.ManagedByMultiKueue:        theirs.MultiKueueController,
		kubeflowv1.PyTorchContainer:           theirs.PyTorchJobDefaultContainerName,
		kubeflowv1.PyTorchPortName:            theirs.PyTorchJobDefaultPortName,
		kubeflowv1.TFContainer:                theirs.TFJobDefaultContainerName,
		kubeflowv1.TFPortName:                 theirs.TFJobDefaultPortName,
		kubeflowv1.JAXContainer:               theirs.JAXJobDefaultContainerName,
		kubeflowv1.JAXPortName:                theirs.JAXJobDefaultPortName,
		kubeflowv1.XGBoostContainer:           theirs.XGBoostJobDefaultContainerName,
		kubeflowv1.XGBoostPortName:            theirs.XGBoostJobDefaultPortName,
		kubeflowv1.PaddleContainer:            theirs.PaddleJobDefaultContainerName,
		kubeflowv1.PaddlePortName:             theirs.PaddleJobDefaultPortName,
		kubeflowv1.MPIContainer:               theirs.MPIJobDefaultContainerName,
		string(kubeflowv1.MPILauncher):        string(theirs.MPIJobReplicaTypeLauncher),
		string(kubeflowv1.JobCreated):         string(theirs.JobCreated),
		string(kubeflowv1.JobRunning):         string(theirs.JobRunning),
		string(kubeflowv1.JobRestarting):      string(theirs.JobRestarting),
		string(kubeflowv1.JobSuspended):       string(theirs.JobSuspended),
		string(kubeflowv1.JobSucceeded):       string(theirs.JobSucceeded),
		string(kubeflowv1.JobFailed):          string(theirs.JobFailed),
		string(kubeflowv1.TFEvaluator):        string(theirs.TFJobReplicaTypeEval),
		string(kubeflowv1.RDZVBackendETCDV2):  string(theirs.BackendETCDV2),
		kubeflowv1.GroupVersion.String():      theirs.GroupVersion.String(),
		string(kubeflowv1.TFPS):               string(theirs.TFJobReplicaTypePS),
		string(kubeflowv1.CleanPodPolicyNone): string(theirs.CleanPodPolicyNone),
	} {
		if ours != theirs {
			t.Errorf("ours is %q, theirs is %q", ours, theirs)
		}
	}
	if kubeflowv1.PyTorchPort != theirs.PyTorchJobDefaultPort || kubeflowv1.TFPort != theirs.TFJobDefaultPort ||
		kubeflowv1.JAXPort != theirs.JAXJobDefaultPort || kubeflowv1.XGBoostPort != theirs.XGBoostJobDefaultPort ||
		kubeflowv1.PaddlePort != theirs.PaddleJobDefaultPort {
		t.Error("the default ports differ")
	}
}
