package tensorflow

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/job"
)

func aJob(replicas map[kubeflowv1.ReplicaType]int32, policy kubeflowv1.SuccessPolicy) *kubeflowv1.TFJob {
	tf := &kubeflowv1.TFJob{}
	tf.Name, tf.Namespace = "demo", "team"
	tf.Spec.SuccessPolicy = &policy
	tf.Spec.TFReplicaSpecs = map[kubeflowv1.ReplicaType]*kubeflowv1.ReplicaSpec{}
	for role, n := range replicas {
		template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "tensorflow"}}}}
		tf.Spec.TFReplicaSpecs[role] = &kubeflowv1.ReplicaSpec{Replicas: &n, Template: template}
	}
	return tf
}

func TestRules(t *testing.T) {
	type roles = map[kubeflowv1.ReplicaType]int32
	for _, row := range []struct {
		sentence string
		job      *kubeflowv1.TFJob
		success  job.Success
	}{
		{"the Chief decides", aJob(roles{"Chief": 1, "Worker": 2}, ""), job.Success{Role: "Chief", Rule: job.SuccessAll}},
		{"so it does by its older name", aJob(roles{"Master": 1, "Worker": 2}, ""), job.Success{Role: "Master", Rule: job.SuccessAll}},
		{"a Chief with no replicas is none", aJob(roles{"Chief": 0, "Worker": 2}, ""), job.Success{Role: "Worker", Rule: job.SuccessFirst}},
		{"without one the first Worker does", aJob(roles{"PS": 1, "Worker": 2}, ""), job.Success{Role: "Worker", Rule: job.SuccessFirst}},
		{"or all of them, if asked for", aJob(roles{"PS": 1, "Worker": 2}, "AllWorkers"), job.Success{Role: "Worker", Rule: job.SuccessAll}},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			m := Kind.Read(row.job)
			if m.Job.Success != row.success || m.Job.RestartScope() != job.ScopeReplica || len(m.Job.Children) != 1 {
				t.Errorf("success %+v, scope %s, services %v", m.Job.Success, m.Job.RestartScope(), m.Job.Children)
			}
		})
	}
}

func TestTFConfigIsForTheTrainingContainerAlone(t *testing.T) {
	m := Kind.Read(aJob(map[kubeflowv1.ReplicaType]int32{"PS": 1, "Worker": 1}, ""))
	env := m.Env(job.Replica{Role: "Worker"}, 0)
	want := `{"cluster":{"ps":["demo-ps-0.demo.team.svc:2222"],"worker":["demo-worker-0.demo.team.svc:2222"]},"task":{"type":"worker","index":0},"environment":"cloud"}`
	if len(env.Everywhere) != 0 || len(env.Training) != 1 || env.Training[0].Value != want {
		t.Errorf("%+v", env)
	}
}

// A cluster whose pods do not search its domain has its operator name it, by the variable Training Operator has for that.
func TestHostsInADomainOfTheirOwn(t *testing.T) {
	t.Setenv("CUSTOM_CLUSTER_DOMAIN", "cluster.example")
	m := Kind.Read(aJob(map[kubeflowv1.ReplicaType]int32{"Worker": 2}, ""))
	env := m.Env(job.Replica{Role: "Worker", Index: 1}, 0)
	want := `{"cluster":{"worker":["demo-worker-0.demo.team.svc.cluster.example:2222","demo-worker-1.demo.team.svc.cluster.example:2222"]},"task":{"type":"worker","index":1},"environment":"cloud"}`
	if len(env.Training) != 1 || env.Training[0].Value != want {
		t.Errorf("%+v", env)
	}
}
