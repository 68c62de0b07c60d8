package jax

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/job"
)

func aJob(workers int32, ports ...corev1.ContainerPort) *kubeflowv1.JAXJob {
	jj := &kubeflowv1.JAXJob{}
	jj.Name = "demo"
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "jax", Ports: ports}}}}
	jj.Spec.JAXReplicaSpecs = map[kubeflowv1.ReplicaType]*kubeflowv1.ReplicaSpec{"worker": {Replicas: &workers, Template: template}}
	return jj
}

func TestEnvironment(t *testing.T) {
	for _, row := range []struct {
		sentence string
		job      *kubeflowv1.JAXJob
		index    int32
		want     map[string]string
	}{
		{"the first Worker is the coordinator and process 0", aJob(4), 0, map[string]string{
			"PYTHONUNBUFFERED": "1", "COORDINATOR_ADDRESS": "demo-worker-0", "COORDINATOR_PORT": "6666", "NUM_PROCESSES": "4", "PROCESS_ID": "0",
			"JAX_COORDINATOR_ADDRESS": "demo-worker-0:6666", "JAX_NUM_PROCESSES": "4", "JAX_PROCESS_ID": "0"}},
		{"the others have the same coordinator, at the port that the template names", aJob(2, corev1.ContainerPort{Name: "jaxjob-port", ContainerPort: 1234}), 1, map[string]string{
			"PYTHONUNBUFFERED": "1", "COORDINATOR_ADDRESS": "demo-worker-0", "COORDINATOR_PORT": "1234", "NUM_PROCESSES": "2", "PROCESS_ID": "1",
			"JAX_COORDINATOR_ADDRESS": "demo-worker-0:1234", "JAX_NUM_PROCESSES": "2", "JAX_PROCESS_ID": "1"}},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			got := map[string]string{}
			for _, v := range Kind.Read(row.job).Env(job.Replica{Role: "Worker", Index: row.index}, 0).Everywhere {
				got[v.Name] = v.Value
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRules(t *testing.T) {
	m := Kind.Read(aJob(3))
	if want := (job.Success{Role: "Worker", Rule: job.SuccessAll}); m.Job.Success != want {
		t.Errorf("the job succeeds by %+v, want %+v", m.Job.Success, want)
	}
	if scope := m.Job.RestartScope(); scope != job.ScopeJob {
		t.Errorf("a failure restarts the %s, want all", scope)
	}
	if policy := m.Job.Roles[0].RestartPolicy; policy != job.RestartNever {
		t.Errorf("the default restart policy is %s, want that of Training Operator", policy)
	}
}
