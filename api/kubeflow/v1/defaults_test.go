package v1_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	v1 "github.com/trainyard/trainyard/api/kubeflow/v1"
)

// role is one training container of a given name, and further ones after it.
func role(names ...string) *v1.ReplicaSpec {
	spec := &v1.ReplicaSpec{}
	for _, name := range names {
		spec.Template.Spec.Containers = append(spec.Template.Spec.Containers, corev1.Container{Name: name})
	}
	return spec
}

func pytorchJob(roles map[v1.ReplicaType]*v1.ReplicaSpec, changes ...func(*v1.PyTorchJob)) *v1.PyTorchJob {
	job := &v1.PyTorchJob{Spec: v1.PyTorchJobSpec{PyTorchReplicaSpecs: roles}}
	for _, change := range changes {
		change(job)
	}
	job.SetDefaults()
	return job
}

func tfJob(roles map[v1.ReplicaType]*v1.ReplicaSpec) *v1.TFJob {
	job := &v1.TFJob{Spec: v1.TFJobSpec{TFReplicaSpecs: roles}}
	job.SetDefaults()
	return job
}

func TestDefaultsOfARole(t *testing.T) {
	pytorch := pytorchJob(map[v1.ReplicaType]*v1.ReplicaSpec{"Worker": role("pytorch")}).Spec.PyTorchReplicaSpecs["Worker"]
	if *pytorch.Replicas != 1 || pytorch.RestartPolicy != v1.RestartPolicyOnFailure {
		t.Errorf("PyTorch: %d replicas, restartPolicy %s; want 1 and OnFailure", *pytorch.Replicas, pytorch.RestartPolicy)
	}
	tf := tfJob(map[v1.ReplicaType]*v1.ReplicaSpec{"Worker": role("tensorflow")}).Spec.TFReplicaSpecs["Worker"]
	if *tf.Replicas != 1 || tf.RestartPolicy != v1.RestartPolicyNever {
		t.Errorf("TF: %d replicas, restartPolicy %s; want 1 and Never", *tf.Replicas, tf.RestartPolicy)
	}
}

func TestWhatARoleSaysIsKept(t *testing.T) {
	spec := role("pytorch")
	spec.Replicas, spec.RestartPolicy = new(int32(0)), v1.RestartPolicyExitCode
	got := pytorchJob(map[v1.ReplicaType]*v1.ReplicaSpec{"Worker": spec}).Spec.PyTorchReplicaSpecs["Worker"]
	if *got.Replicas != 0 || got.RestartPolicy != v1.RestartPolicyExitCode {
		t.Errorf("%d replicas, restartPolicy %s; want 0 and ExitCode", *got.Replicas, got.RestartPolicy)
	}
}

func TestThePortOfTheTrainingContainer(t *testing.T) {
	usual := corev1.ContainerPort{Name: "pytorchjob-port", ContainerPort: 23456}
	given := corev1.ContainerPort{Name: "pytorchjob-port", ContainerPort: 1000}
	unnamed := corev1.ContainerPort{ContainerPort: 8080}
	for _, row := range []struct {
		name       string
		containers []corev1.Container
		want       [][]corev1.ContainerPort
	}{
		{"the named container gets it", []corev1.Container{{Name: "sidecar"}, {Name: "pytorch"}}, [][]corev1.ContainerPort{nil, {usual}}},
		{"without a named one, the first gets it", []corev1.Container{{Name: "trainer"}, {Name: "sidecar"}}, [][]corev1.ContainerPort{{usual}, nil}},
		{"a port of that name is kept", []corev1.Container{{Name: "pytorch", Ports: []corev1.ContainerPort{given}}}, [][]corev1.ContainerPort{{given}}},
		{"it is added to unnamed ports", []corev1.Container{{Name: "pytorch", Ports: []corev1.ContainerPort{unnamed}}}, [][]corev1.ContainerPort{{unnamed, usual}}},
		{"no container, no port", nil, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			spec := &v1.ReplicaSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: row.containers}}}
			pytorchJob(map[v1.ReplicaType]*v1.ReplicaSpec{"Master": spec})
			var got [][]corev1.ContainerPort
			for _, container := range spec.Template.Spec.Containers {
				got = append(got, container.Ports)
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("ports (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRoleNamesInAnyLetterCase(t *testing.T) {
	for _, row := range []struct {
		name    string
		written []v1.ReplicaType
		want    []v1.ReplicaType
	}{
		{"as documented", []v1.ReplicaType{"Chief", "PS", "Worker", "Evaluator"}, []v1.ReplicaType{"Chief", "Evaluator", "PS", "Worker"}},
		{"lower case", []v1.ReplicaType{"master", "ps", "worker"}, []v1.ReplicaType{"Master", "PS", "Worker"}},
		{"anything", []v1.ReplicaType{"Ps", "wORKER", "EVALUATOR"}, []v1.ReplicaType{"Evaluator", "PS", "Worker"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			roles := map[v1.ReplicaType]*v1.ReplicaSpec{}
			for _, name := range row.written {
				roles[name] = role("tensorflow")
			}
			got := slices.Sorted(maps.Keys(tfJob(roles).Spec.TFReplicaSpecs))
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("roles (-want +got):\n%s", diff)
			}
		})
	}
}

func TestARoleWithoutASpecIsLeftOut(t *testing.T) {
	job := pytorchJob(map[v1.ReplicaType]*v1.ReplicaSpec{"Master": role("pytorch"), "Worker": nil})
	if _, there := job.Spec.PyTorchReplicaSpecs["Worker"]; there {
		t.Error("a Worker without a spec is still there")
	}
}

func TestTheRangeOfAnElasticJob(t *testing.T) {
	for _, row := range []struct {
		name             string
		min, max         *int32
		wantMin, wantMax int32
	}{
		{"both given: kept", new(int32(1)), new(int32(8)), 1, 8},
		{"none given: the Workers it starts with", nil, nil, 4, 4},
		{"a smaller min alone: up to the Workers it starts with", new(int32(2)), nil, 2, 4},
		{"a larger min alone: max follows", new(int32(6)), nil, 6, 6},
		{"a larger max alone: from the Workers it starts with", nil, new(int32(8)), 4, 8},
		{"a smaller max alone: min follows", nil, new(int32(3)), 3, 3},
	} {
		t.Run(row.name, func(t *testing.T) {
			workers := role("pytorch")
			workers.Replicas = new(int32(4))
			job := pytorchJob(map[v1.ReplicaType]*v1.ReplicaSpec{"worker": workers}, func(job *v1.PyTorchJob) {
				job.Spec.ElasticPolicy = &v1.ElasticPolicy{MinReplicas: row.min, MaxReplicas: row.max}
			})
			if got := job.Spec.ElasticPolicy; *got.MinReplicas != row.wantMin || *got.MaxReplicas != row.wantMax {
				t.Errorf("%d…%d, want %d…%d", *got.MinReplicas, *got.MaxReplicas, row.wantMin, row.wantMax)
			}
		})
	}
}

func TestProcessesPerNode(t *testing.T) {
	worker := map[v1.ReplicaType]*v1.ReplicaSpec{"Worker": role("pytorch")}
	if got := pytorchJob(worker).Spec.NprocPerNode; got == nil || *got != "auto" {
		t.Errorf("nprocPerNode is %v, want auto", got)
	}
	older := pytorchJob(worker, func(job *v1.PyTorchJob) { job.Spec.ElasticPolicy = &v1.ElasticPolicy{NProcPerNode: new(int32(2))} })
	if got := older.Spec.NprocPerNode; got != nil {
		t.Errorf("nprocPerNode is %s beside the older field, want none", *got)
	}
}

func TestThePolicyStandsInRunPolicyAfterwards(t *testing.T) {
	job := pytorchJob(map[v1.ReplicaType]*v1.ReplicaSpec{"Worker": role("pytorch")}, func(job *v1.PyTorchJob) { job.Spec.BackoffLimit = new(int32(2)) })
	want := v1.LifecyclePolicy{BackoffLimit: new(int32(2)), CleanPodPolicy: new(v1.CleanPodPolicyRunning)}
	if diff := cmp.Diff(want, job.Spec.RunPolicy.LifecyclePolicy); diff != "" {
		t.Errorf("runPolicy (-want +got):\n%s", diff)
	}
}

func TestASecondCallChangesNothing(t *testing.T) {
	once := pytorchJob(map[v1.ReplicaType]*v1.ReplicaSpec{"master": role("pytorch"), "worker": role("a", "b")}, func(job *v1.PyTorchJob) {
		job.Spec.ElasticPolicy = &v1.ElasticPolicy{MinReplicas: new(int32(2))}
		job.Spec.CleanPodPolicy = new(v1.CleanPodPolicyAll)
	})
	twice := once.DeepCopy()
	twice.SetDefaults()
	if diff := cmp.Diff(once, twice); diff != "" {
		t.Errorf("second call (-once +twice):\n%s", diff)
	}
}

func TestReasons(t *testing.T) {
	if got := v1.ConditionReason(v1.PyTorchJobKind, v1.JobRunning); got != "PyTorchJobRunning" {
		t.Errorf("the reason of Running is %s", got)
	}
	if got := v1.ConditionReason(v1.TFJobKind, v1.JobResumed); got != "TFJobResumed" {
		t.Errorf("the reason of a resumed job is %s", got)
	}
}
