package xgboost

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/job"
)

func aJob(workers int32) *kubeflowv1.XGBoostJob {
	xj := &kubeflowv1.XGBoostJob{}
	xj.Name = "demo"
	role := func(n int32, port int32) *kubeflowv1.ReplicaSpec {
		container := corev1.Container{Name: "xgboost", Ports: []corev1.ContainerPort{{Name: "xgboostjob-port", ContainerPort: port}}}
		return &kubeflowv1.ReplicaSpec{Replicas: &n, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{container}}}}
	}
	xj.Spec.XGBReplicaSpecs = map[kubeflowv1.ReplicaType]*kubeflowv1.ReplicaSpec{"Master": role(1, 9991), "Worker": role(workers, 9992)}
	return xj
}

func TestEnvironment(t *testing.T) {
	for _, row := range []struct {
		sentence string
		job      *kubeflowv1.XGBoostJob
		replica  job.Replica
		want     map[string]string
	}{
		{"the Master is rank 0, and names all Workers", aJob(2), job.Replica{Role: "Master"}, map[string]string{
			"MASTER_PORT": "9991", "MASTER_ADDR": "demo-master-0", "WORLD_SIZE": "3", "RANK": "0", "PYTHONUNBUFFERED": "1",
			"WORKER_PORT": "9992", "WORKER_ADDRS": "demo-worker-0.demo,demo-worker-1.demo",
			"DMLC_TRACKER_PORT": "9991", "DMLC_TRACKER_URI": "demo-master-0", "DMLC_NUM_WORKER": "3", "DMLC_TASK_ID": "0"}},
		{"a Worker comes after the Master", aJob(2), job.Replica{Role: "Worker", Index: 1}, map[string]string{
			"MASTER_PORT": "9991", "MASTER_ADDR": "demo-master-0", "WORLD_SIZE": "3", "RANK": "2", "PYTHONUNBUFFERED": "1",
			"WORKER_PORT": "9992", "WORKER_ADDRS": "demo-worker-0.demo,demo-worker-1.demo",
			"DMLC_TRACKER_PORT": "9991", "DMLC_TRACKER_URI": "demo-master-0", "DMLC_NUM_WORKER": "3", "DMLC_TASK_ID": "2"}},
		{"a Master alone names no Workers", aJob(0), job.Replica{Role: "Master"}, map[string]string{
			"MASTER_PORT": "9991", "MASTER_ADDR": "demo-master-0", "WORLD_SIZE": "1", "RANK": "0", "PYTHONUNBUFFERED": "1",
			"DMLC_TRACKER_PORT": "9991", "DMLC_TRACKER_URI": "demo-master-0", "DMLC_NUM_WORKER": "1", "DMLC_TASK_ID": "0"}},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			got := map[string]string{}
			for _, v := range Kind.Read(row.job).Env(row.replica, 0).Everywhere {
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
	if want := (job.Success{Role: "Master", Rule: job.SuccessAll}); m.Job.Success != want {
		t.Errorf("the job succeeds by %+v, want %+v", m.Job.Success, want)
	}
	if scope := m.Job.RestartScope(); scope != job.ScopeJob {
		t.Errorf("a failure restarts the %s, want all", scope)
	}
	if policy := m.Job.Roles[0].RestartPolicy; policy != job.RestartNever {
		t.Errorf("the default restart policy is %s, want that of Training Operator", policy)
	}
}
