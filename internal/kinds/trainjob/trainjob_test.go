package trainjob

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	trainer "github.com/trainyard/trainyard/api/trainer/v1alpha1"
	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/manifest"
)

// step is a step of a runtime with one container.
func step(name, ancestor, container string, after ...string) jobsetv1alpha2.ReplicatedJob {
	s := jobsetv1alpha2.ReplicatedJob{Name: name, Template: batchv1.JobTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{trainer.LabelAncestorStep: ancestor}},
	}}
	s.Template.Spec.Template.Spec.Containers = []corev1.Container{{Name: container}}
	for _, name := range after {
		s.DependsOn = append(s.DependsOn, jobsetv1alpha2.DependsOn{Name: name, Status: jobsetv1alpha2.DependencyComplete})
	}
	return s
}

// read is a TrainJob, changed, as it is made from a runtime of one step that trains, changed.
func read(t *testing.T, change func(*trainer.TrainJob, *trainer.TrainingRuntimeSpec)) *manifest.Manifest {
	t.Helper()
	tj := &trainer.TrainJob{ObjectMeta: metav1.ObjectMeta{Name: "demo", Namespace: "team", UID: "5d9d"}}
	tj.Spec.RuntimeRef.Name = "torch"
	base := &trainer.ClusterTrainingRuntime{ObjectMeta: metav1.ObjectMeta{Name: "torch"}}
	base.Spec.Template.Spec.ReplicatedJobs = []jobsetv1alpha2.ReplicatedJob{step("node", "trainer", "node")}
	change(tj, &base.Spec)
	if err := (Kind{}).Take(tj, base); err != nil {
		t.Fatal(err)
	}
	return Kind{}.Read(tj)
}

func patch(step string, containers ...trainer.ContainerPatch) []trainer.RuntimePatch {
	spec := &trainer.JobSpecPatch{Template: &trainer.PodTemplatePatch{Spec: &trainer.PodSpecPatch{Containers: containers}}}
	return []trainer.RuntimePatch{{Manager: "a.b/c", TrainingRuntimeSpec: &trainer.TrainingRuntimeSpecPatch{Template: &trainer.JobSetTemplatePatch{
		Spec: &trainer.JobSetSpecPatch{ReplicatedJobs: []trainer.ReplicatedJobPatch{{Name: step, Template: &trainer.JobTemplatePatch{Spec: spec}}}},
	}}}}
}

// succeeds gives the runtime a success policy.
func succeeds(operator jobsetv1alpha2.Operator, targets ...string) func(*trainer.TrainJob, *trainer.TrainingRuntimeSpec) {
	return func(_ *trainer.TrainJob, r *trainer.TrainingRuntimeSpec) {
		r.Template.Spec.SuccessPolicy = &jobsetv1alpha2.SuccessPolicy{Operator: operator, TargetReplicatedJobs: targets}
	}
}

func TestWhatDoesNotFitIsSaid(t *testing.T) {
	for _, row := range []struct {
		invalid string
		change  func(*trainer.TrainJob, *trainer.TrainingRuntimeSpec)
	}{
		{"", func(*trainer.TrainJob, *trainer.TrainingRuntimeSpec) {}},
		{"the ClusterTrainingRuntime torch has mlPolicy.mpi, for which it needs a step node besides the one that trains: add it",
			func(_ *trainer.TrainJob, r *trainer.TrainingRuntimeSpec) {
				r.MLPolicy = &trainer.MLPolicy{MLPolicySource: trainer.MLPolicySource{MPI: &trainer.MPIMLPolicySource{}}}
			}},
		{"the ClusterTrainingRuntime torch asks for mlPolicy.flux, which is not supported yet: use another runtime",
			func(_ *trainer.TrainJob, r *trainer.TrainingRuntimeSpec) {
				r.MLPolicy = &trainer.MLPolicy{MLPolicySource: trainer.MLPolicySource{Flux: &trainer.FluxMLPolicySource{}}}
			}},
		{"the command is tune run alone, to which Kubeflow Trainer adds a recipe of torchtune and its configuration, which is not supported: write the whole command",
			func(tj *trainer.TrainJob, r *trainer.TrainingRuntimeSpec) {
				r.MLPolicy = &trainer.MLPolicy{MLPolicySource: trainer.MLPolicySource{Torch: &trainer.TorchMLPolicySource{}}}
				tj.Spec.Trainer = &trainer.Trainer{Command: []string{"tune", "run"}}
			}},
		{"the ClusterTrainingRuntime torch asks for the podFailurePolicy of step node, which is not supported yet: use another runtime",
			func(_ *trainer.TrainJob, r *trainer.TrainingRuntimeSpec) {
				r.Template.Spec.ReplicatedJobs[0].Template.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{}
			}},
		{"the ClusterTrainingRuntime torch asks for volumeClaimPolicies (create the claim, and name it among the volumes), which is not supported yet: use another runtime",
			func(_ *trainer.TrainJob, r *trainer.TrainingRuntimeSpec) {
				r.Template.Spec.VolumeClaimPolicies = []jobsetv1alpha2.VolumeClaimPolicy{{}}
			}},
		{"the ClusterTrainingRuntime torch asks for a successPolicy of several steps, which is not supported yet: use another runtime",
			succeeds(jobsetv1alpha2.OperatorAll, "node", "evaluate")},
		{"the ClusterTrainingRuntime torch asks for a successPolicy of any step (name one in its targetReplicatedJobs), which is not supported yet: use another runtime",
			succeeds(jobsetv1alpha2.OperatorAny)},
		{"the ClusterTrainingRuntime torch has no step evaluate, with which its successPolicy ends the job: it has node",
			succeeds(jobsetv1alpha2.OperatorAll, "evaluate")},
		{"", succeeds(jobsetv1alpha2.OperatorAll)},
		{"", succeeds(jobsetv1alpha2.OperatorAny, "node")},
		{"the ClusterTrainingRuntime torch has no step with the label trainer.kubeflow.org/trainjob-ancestor-step: trainer: use another runtime",
			func(_ *trainer.TrainJob, r *trainer.TrainingRuntimeSpec) { r.Template.Spec.ReplicatedJobs = nil }},
		{"the ClusterTrainingRuntime torch has no container node in its step node: use another runtime",
			func(_ *trainer.TrainJob, r *trainer.TrainingRuntimeSpec) {
				r.Template.Spec.ReplicatedJobs[0] = step("node", "trainer", "main")
			}},
		{"the ClusterTrainingRuntime torch has no step with the label trainer.kubeflow.org/trainjob-ancestor-step: model-initializer: use another runtime",
			func(tj *trainer.TrainJob, _ *trainer.TrainingRuntimeSpec) {
				tj.Spec.Initializer = &trainer.Initializer{Model: &trainer.ModelInitializer{}}
			}},
		{"the ClusterTrainingRuntime torch has a step node that waits for data, which it does not have",
			func(_ *trainer.TrainJob, r *trainer.TrainingRuntimeSpec) {
				r.Template.Spec.ReplicatedJobs[0] = step("node", "trainer", "node", "data")
			}},
		{"the ClusterTrainingRuntime torch has a step node that waits for node, which is no step before it: let it wait for earlier ones only",
			func(_ *trainer.TrainJob, r *trainer.TrainingRuntimeSpec) {
				r.Template.Spec.ReplicatedJobs[0] = step("node", "trainer", "node", "node")
			}},
		{"the ClusterTrainingRuntime torch has a step data that waits for node, which is no step before it: let it wait for earlier ones only",
			func(_ *trainer.TrainJob, r *trainer.TrainingRuntimeSpec) {
				r.Template.Spec.ReplicatedJobs = slices.Insert(r.Template.Spec.ReplicatedJobs, 0, step("data", "", "node", "node"))
			}},
		{"", func(_ *trainer.TrainJob, r *trainer.TrainingRuntimeSpec) {
			r.Template.Spec.ReplicatedJobs = append(r.Template.Spec.ReplicatedJobs, step("evaluate", "", "node", "node"))
		}},
		{"the ClusterTrainingRuntime torch has a step evaluate that waits for node, with whose elastic nodes the job ends: remove the step or mlPolicy.torch.elasticPolicy",
			func(_ *trainer.TrainJob, r *trainer.TrainingRuntimeSpec) {
				r.Template.Spec.ReplicatedJobs = append(r.Template.Spec.ReplicatedJobs, step("evaluate", "", "node", "node"))
				r.MLPolicy = &trainer.MLPolicy{MLPolicySource: trainer.MLPolicySource{Torch: &trainer.TorchMLPolicySource{
					ElasticPolicy: &trainer.TorchElasticPolicy{},
				}}}
			}},
		{"the ClusterTrainingRuntime torch has a successPolicy of step data, but the job ends with the elastic nodes of node: name that step there, or remove mlPolicy.torch.elasticPolicy",
			func(tj *trainer.TrainJob, r *trainer.TrainingRuntimeSpec) {
				r.Template.Spec.ReplicatedJobs = slices.Insert(r.Template.Spec.ReplicatedJobs, 0, step("data", "", "node"))
				r.MLPolicy = &trainer.MLPolicy{MLPolicySource: trainer.MLPolicySource{Torch: &trainer.TorchMLPolicySource{
					ElasticPolicy: &trainer.TorchElasticPolicy{},
				}}}
				succeeds(jobsetv1alpha2.OperatorAll, "data")(tj, r)
			}},
		{"the ClusterTrainingRuntime torch has no step launcher, which the patch of a.b/c changes: it has node",
			func(tj *trainer.TrainJob, _ *trainer.TrainingRuntimeSpec) { tj.Spec.RuntimePatches = patch("launcher") }},
		{"the ClusterTrainingRuntime torch has no container side in step node, which the patch of a.b/c changes",
			func(tj *trainer.TrainJob, _ *trainer.TrainingRuntimeSpec) {
				tj.Spec.RuntimePatches = patch("node", trainer.ContainerPatch{Name: "side"})
			}},
		{"the pod name a-name-of-forty-six-characters-is-quite-enough-dataset-initializer-0 has 68 characters, and 63 are the most: use a shorter name for the job",
			func(tj *trainer.TrainJob, r *trainer.TrainingRuntimeSpec) {
				tj.Name = "a-name-of-forty-six-characters-is-quite-enough"
				r.Template.Spec.ReplicatedJobs = append(r.Template.Spec.ReplicatedJobs, step("dataset-initializer", "dataset-initializer", "a"))
			}},
	} {
		t.Run(row.invalid, func(t *testing.T) {
			if got := read(t, row.change).Job.Invalid; got != row.invalid {
				t.Errorf("it says %q", got)
			}
		})
	}
}

func TestPolicyIsTheJobsElseTheRuntimes(t *testing.T) {
	limit := func(m *manifest.Manifest) int64 { return int64(*m.Job.Policy.BackoffLimit) }
	for _, row := range []struct {
		sentence string
		change   func(*trainer.TrainJob, *trainer.TrainingRuntimeSpec)
		got      func(*manifest.Manifest) int64
		want     int64
	}{
		{"six retries as Jobs have", func(*trainer.TrainJob, *trainer.TrainingRuntimeSpec) {}, limit, 6},
		{"those of the step that trains", func(_ *trainer.TrainJob, r *trainer.TrainingRuntimeSpec) {
			r.Template.Spec.ReplicatedJobs[0].Template.Spec.BackoffLimit = new(int32(5))
		}, limit, 5},
		{"before that, those of the JobSet", func(_ *trainer.TrainJob, r *trainer.TrainingRuntimeSpec) {
			r.Template.Spec.ReplicatedJobs[0].Template.Spec.BackoffLimit = new(int32(5))
			r.Template.Spec.FailurePolicy = &jobsetv1alpha2.FailurePolicy{MaxRestarts: 4}
		}, limit, 4},
		{"before that, the run policy's", func(_ *trainer.TrainJob, r *trainer.TrainingRuntimeSpec) {
			r.Template.Spec.FailurePolicy = &jobsetv1alpha2.FailurePolicy{MaxRestarts: 4}
			r.RunPolicy = &trainer.RuntimeRunPolicy{BackoffLimit: new(int32(3))}
		}, limit, 3},
		{"before all, torch's", func(_ *trainer.TrainJob, r *trainer.TrainingRuntimeSpec) {
			r.RunPolicy = &trainer.RuntimeRunPolicy{BackoffLimit: new(int32(3))}
			r.MLPolicy = &trainer.MLPolicy{MLPolicySource: trainer.MLPolicySource{Torch: &trainer.TorchMLPolicySource{
				ElasticPolicy: &trainer.TorchElasticPolicy{MinNodes: new(int32(1)), MaxRestarts: new(int32(2))},
			}}}
		}, limit, 2},
		{"the job's deadline", func(tj *trainer.TrainJob, r *trainer.TrainingRuntimeSpec) {
			tj.Spec.ActiveDeadlineSeconds = new(int64(7))
			r.RunPolicy = &trainer.RuntimeRunPolicy{ActiveDeadlineSeconds: new(int64(8))}
		}, func(m *manifest.Manifest) int64 { return *m.Job.Policy.ActiveDeadlineSeconds }, 7},
		{"the runtime's deadline", func(_ *trainer.TrainJob, r *trainer.TrainingRuntimeSpec) {
			r.RunPolicy = &trainer.RuntimeRunPolicy{ActiveDeadlineSeconds: new(int64(8))}
		}, func(m *manifest.Manifest) int64 { return *m.Job.Policy.ActiveDeadlineSeconds }, 8},
		{"the job's time to live", func(tj *trainer.TrainJob, r *trainer.TrainingRuntimeSpec) {
			tj.Spec.TTLSecondsAfterFinished = new(int32(0))
			r.RunPolicy = &trainer.RuntimeRunPolicy{TTLSecondsAfterFinished: new(int32(9))}
		}, func(m *manifest.Manifest) int64 { return int64(*m.Job.Policy.TTLSecondsAfterFinished) }, 0},
		{"the runtime's number of nodes", func(_ *trainer.TrainJob, r *trainer.TrainingRuntimeSpec) {
			r.MLPolicy = &trainer.MLPolicy{NumNodes: new(int32(4))}
		}, func(m *manifest.Manifest) int64 { return int64(m.Job.Roles[0].Replicas) }, 4},
		{"the job's number of nodes", func(tj *trainer.TrainJob, r *trainer.TrainingRuntimeSpec) {
			tj.Spec.Trainer = &trainer.Trainer{NumNodes: new(int32(3))}
			r.MLPolicy = &trainer.MLPolicy{NumNodes: new(int32(4))}
		}, func(m *manifest.Manifest) int64 { return int64(m.Job.Roles[0].Replicas) }, 3},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			if got := row.got(read(t, row.change)); got != row.want {
				t.Errorf("it is %d, want %d", got, row.want)
			}
		})
	}
}

func TestAStepAfterTheTrainingLeavesItAGang(t *testing.T) {
	m := read(t, func(_ *trainer.TrainJob, r *trainer.TrainingRuntimeSpec) {
		r.MLPolicy = &trainer.MLPolicy{NumNodes: new(int32(4))}
		r.Template.Spec.ReplicatedJobs = append(r.Template.Spec.ReplicatedJobs, step("evaluate", "", "node", "node"))
	})
	if scope := m.Job.RestartScope(); scope != job.ScopeJob {
		t.Errorf("a failure restarts the %s", scope)
	}
}

// A job that waits or runs has no condition, since clients of Trainer take any other than the last ones for not running.
func TestConditionsAreTrainers(t *testing.T) {
	day := time.Date(2026, 11, 15, 8, 0, 0, 0, time.UTC)
	state := func(types ...job.ConditionType) job.Status {
		var s job.Status
		for _, name := range types {
			s.Conditions = append(s.Conditions, job.Condition{Type: name, Status: true, Message: "so it is", LastTransition: day})
		}
		return s
	}
	for _, row := range []struct {
		sentence string
		status   job.Status
		ended    string
		want     string // type and reason
	}{
		{"created", state(job.Created), "", ""},
		{"running", state(job.Created, job.Running), "", ""},
		{"restarting", state(job.Created, job.Restarting), "", ""},
		{"suspended", state(job.Created, job.Suspended), "", "Suspended Suspended"},
		{"complete", state(job.Created, job.Succeeded), job.ReasonSucceeded, "Complete AllJobsCompleted"},
		{"failed", state(job.Created, job.Failed), job.ReasonFailed, "Failed FailedJobs"},
		{"failed too often", state(job.Created, job.Failed), job.ReasonBackoffLimit, "Failed ReachedMaxRestarts"},
		{"too late", state(job.Created, job.Failed), job.ReasonDeadlineExceeded, "Failed DeadlineExceeded"},
		{"never fits", state(job.Created, job.Failed), job.ReasonRefused, "Failed TrainingRuntimeNotSupported"},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			row.status.Attempts = []job.Attempt{{Reason: row.ended}}
			var got string
			for _, c := range conditions(row.status) {
				got += c.Type + " " + c.Reason
			}
			if got != row.want {
				t.Errorf("it is %q, want %q", got, row.want)
			}
		})
	}
	if c := conditions(state(job.Created, job.Succeeded)); c[0].Message != "jobset completed successfully" {
		t.Errorf("Trainer's clients compare the message, and it is %q", c[0].Message)
	}
}

// A job that Trainer itself has ended is ended, and wants no runtime any more.
func TestAJobThatTrainerEndedIsEnded(t *testing.T) {
	tj := &trainer.TrainJob{}
	if (Kind{}).Wants(tj) == nil {
		t.Fatal("a new job wants no runtime")
	}
	tj.Status.Conditions = []metav1.Condition{{Type: "Complete", Status: metav1.ConditionTrue, Reason: "AllJobsCompleted"}}
	if s := (Kind{}).Read(tj).Status; !s.Finished() {
		t.Errorf("its conditions are %+v", s.Conditions)
	}
	if base := (Kind{}).Wants(tj); base != nil {
		t.Errorf("it wants %s", base.GetName())
	}
}

// The step whose failure ended the job has failed, whatever its pods show, and no other has.
func TestTheStepThatEndedTheJobHasFailed(t *testing.T) {
	for _, row := range []struct {
		sentence string
		ended    string // why the last attempt did
		failure  *job.Failure
		want     map[string]int32
	}{
		{"a failure in place that was one too many", job.ReasonBackoffLimit, &job.Failure{Replica: job.Replica{Role: "node"}}, map[string]int32{"data": 0, "node": 1}},
		{"a failure that may not be retried", job.ReasonFailed, &job.Failure{Replica: job.Replica{Role: "data"}}, map[string]int32{"data": 1, "node": 0}},
		{"a deadline after a failure that was retried", job.ReasonDeadlineExceeded, &job.Failure{Replica: job.Replica{Role: "node"}}, map[string]int32{"data": 0, "node": 0}},
		{"a job that never fits", job.ReasonRefused, nil, map[string]int32{"data": 0, "node": 0}},
		{"a failure that is retried", "", &job.Failure{Replica: job.Replica{Role: "node"}}, map[string]int32{"data": 0, "node": 0}},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			s := job.Status{
				Roles:       []job.RoleStatus{{Role: "data", Size: 1, Done: []int32{0}}, {Role: "node", Size: 1}},
				Attempts:    []job.Attempt{{Reason: row.ended}},
				LastFailure: row.failure,
			}
			got := map[string]int32{}
			for _, role := range s.Roles {
				got[role.Role] = jobStatus(s, role, job.Job{}).Failed
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Whoever made the job by a controller wants to see how it ends.
func TestAJobThatAControllerMadeIsOwned(t *testing.T) {
	for _, row := range []struct {
		sentence string
		owners   []metav1.OwnerReference
		owned    bool
	}{
		{"a person's", nil, false},
		{"in the keeping of something that does not control it", []metav1.OwnerReference{{Kind: "ConfigMap", Name: "a"}}, false},
		{"a controller's", []metav1.OwnerReference{{Kind: "FlyteWorkflow", Name: "a", Controller: new(true)}}, true},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			m := read(t, func(tj *trainer.TrainJob, _ *trainer.TrainingRuntimeSpec) { tj.OwnerReferences = row.owners })
			if m.Job.Owned != row.owned {
				t.Errorf("owned is %v", m.Job.Owned)
			}
		})
	}
}

func TestAJobOfAnotherManagerWantsNothing(t *testing.T) {
	tj := &trainer.TrainJob{}
	tj.Spec.ManagedBy = new(kubeflowv1.ManagedByMultiKueue)
	if base := (Kind{}).Wants(tj); base != nil {
		t.Errorf("it wants %s", base.GetName())
	}
}

// A Job is active while it has pods, also if they wait for a node. A step that waits for another has no Job yet.
func TestAStepIsActiveFromItsFirstPodToItsEnd(t *testing.T) {
	j := job.Job{Roles: []job.Role{
		{Name: "data"}, {Name: "node", After: []job.Dependency{{Role: "data", Until: job.MilestoneComplete}}},
		{Name: "side", After: []job.Dependency{{Role: "node", Until: job.MilestoneReady}}},
	}}
	status := func(data, node job.RoleStatus, conditions ...job.ConditionType) job.Status {
		s := job.Status{Roles: []job.RoleStatus{data, node, {Role: "side", Size: 1}}}
		for _, c := range conditions {
			s.Conditions = append(s.Conditions, job.Condition{Type: c, Status: true})
		}
		return s
	}
	waits, runs := job.RoleStatus{Role: "node", Size: 2, Active: 1}, job.RoleStatus{Role: "node", Size: 2, Active: 2}
	for _, row := range []struct {
		sentence string
		status   job.Status
		want     string // the steps that are active
	}{
		{"the first step waits for a node", status(job.RoleStatus{Role: "data", Size: 1}, job.RoleStatus{Role: "node", Size: 2}, job.Created), "data"},
		{"the second follows when it has ended", status(job.RoleStatus{Role: "data", Size: 1, Done: []int32{0}}, waits, job.Created), "node"},
		{"and the third when all of the second are ready", status(job.RoleStatus{Role: "data", Size: 1, Done: []int32{0}}, runs, job.Created), "node side"},
		{"none while the job is suspended", status(job.RoleStatus{Role: "data", Size: 1}, job.RoleStatus{Role: "node", Size: 2}, job.Suspended), ""},
		{"none after the end", status(job.RoleStatus{Role: "data", Size: 1}, job.RoleStatus{Role: "node", Size: 2}, job.Failed), ""},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			var active []string
			for _, role := range row.status.Roles {
				if jobStatus(row.status, role, j).Active == 1 {
					active = append(active, role.Role)
				}
			}
			if got := strings.Join(active, " "); got != row.want {
				t.Errorf("active are %q, want %q", got, row.want)
			}
		})
	}
}

// Each step counts as one Job, whatever its pods.
func TestStepsCountAsJobs(t *testing.T) {
	s := job.Status{Roles: []job.RoleStatus{
		{Role: "data", Size: 1, Done: []int32{0}}, {Role: "node", Size: 3, Active: 2, Done: []int32{1}}, {Role: "late", Size: 2},
	}}
	m := &manifest.Manifest{Leader: job.Replica{Role: "node"}}
	var status trainer.TrainJobStatus
	writeStatus(&status, m, s)
	want := []trainer.JobStatus{{Name: "data", Succeeded: 1}, {Name: "node", Active: 1, Ready: 1}, {Name: "late", Active: 1}}
	if diff := cmp.Diff(want, status.JobsStatus); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if status.Nodes != 2 || status.Selector == "" {
		t.Errorf("%d nodes, found by %q", status.Nodes, status.Selector)
	}
}
