package paddle

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/job"
)

func aJob(masters, workers int32, changes ...func(*kubeflowv1.PaddleJob)) *kubeflowv1.PaddleJob {
	role := func(n int32) *kubeflowv1.ReplicaSpec {
		return &kubeflowv1.ReplicaSpec{Replicas: &n, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "paddle"}}}}}
	}
	pj := &kubeflowv1.PaddleJob{}
	pj.Name = "demo"
	pj.Spec.PaddleReplicaSpecs = map[kubeflowv1.ReplicaType]*kubeflowv1.ReplicaSpec{"Worker": role(workers)}
	if masters > 0 {
		pj.Spec.PaddleReplicaSpecs["Master"] = role(masters)
	}
	for _, change := range changes {
		change(pj)
	}
	return pj
}

func elasticJob(pj *kubeflowv1.PaddleJob) {
	pj.Spec.ElasticPolicy = &kubeflowv1.PaddleElasticPolicy{MinReplicas: new(int32(1)), MaxReplicas: new(int32(8)), MaxRestarts: new(int32(5))}
}

func etcd(pj *kubeflowv1.PaddleJob) {
	container := &pj.Spec.PaddleReplicaSpecs["Worker"].Template.Spec.Containers[0]
	container.Env = append(container.Env, corev1.EnvVar{Name: "PADDLE_MASTER", Value: "etcd://etcd:2379"})
}

func TestEnvironment(t *testing.T) {
	for _, row := range []struct {
		sentence string
		job      *kubeflowv1.PaddleJob
		replica  job.Replica
		want     map[string]string // without PYTHONUNBUFFERED and PADDLE_JOB_ID, which all have
	}{
		{"the first Worker of a collective serves at its own address", aJob(0, 3), job.Replica{Role: "Worker"}, map[string]string{
			"PADDLE_NNODES": "3", "POD_IP_DUMMY": "status.podIP", "PADDLE_MASTER": "$(POD_IP_DUMMY):36543"}},
		{"the others connect to the first", aJob(0, 3), job.Replica{Role: "Worker", Index: 2}, map[string]string{
			"PADDLE_NNODES": "3", "PADDLE_MASTER": "demo-worker-0:36543"}},
		{"the first Master serves at its own address", aJob(2, 3), job.Replica{Role: "Master"}, map[string]string{
			"PADDLE_NNODES": "5", "POD_IP_DUMMY": "status.podIP", "PADDLE_MASTER": "$(POD_IP_DUMMY):36543", "PADDLE_SERVER_NUM": "1"}},
		{"a further Master connects to the first", aJob(2, 3), job.Replica{Role: "Master", Index: 1}, map[string]string{
			"PADDLE_NNODES": "5", "PADDLE_MASTER": "demo-master-0:36543", "PADDLE_SERVER_NUM": "1"}},
		{"a Worker of a job with Masters is a trainer", aJob(2, 3), job.Replica{Role: "Worker"}, map[string]string{
			"PADDLE_NNODES": "5", "PADDLE_MASTER": "demo-master-0:36543", "PADDLE_TRAINER_NUM": "1"}},
		{"an elastic Worker has the bounds; the template's PADDLE_MASTER counts", aJob(0, 3, elasticJob, etcd), job.Replica{Role: "Worker", Index: 1}, map[string]string{
			"PADDLE_NNODES": "1:8", "PADDLE_MAX_RESTART": "5", "PADDLE_MASTER": "demo-worker-0:36543"}},
		{"without an etcd the launcher would wait for the maximum, so it has the number", aJob(0, 3, elasticJob), job.Replica{Role: "Worker", Index: 1}, map[string]string{
			"PADDLE_NNODES": "3", "PADDLE_MASTER": "demo-worker-0:36543"}},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			got := map[string]string{}
			for _, v := range Kind.Read(row.job).Env(row.replica, 0).Everywhere {
				if got[v.Name] = v.Value; v.ValueFrom != nil {
					got[v.Name] = v.ValueFrom.FieldRef.FieldPath
				}
			}
			row.want["PYTHONUNBUFFERED"], row.want["PADDLE_JOB_ID"] = "1", "demo"
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRules(t *testing.T) {
	for _, row := range []struct {
		sentence string
		job      *kubeflowv1.PaddleJob
		success  job.Success
		scope    job.Scope
	}{
		{"a collective succeeds when all Workers have", aJob(0, 3), job.Success{Role: "Worker", Rule: job.SuccessAll}, job.ScopeJob},
		{"with Masters all of them must", aJob(2, 3), job.Success{Role: "Master", Rule: job.SuccessAll}, job.ScopeJob},
		{"elastic Workers restart alone", aJob(0, 3, elasticJob, etcd), job.Success{Role: "Worker", Rule: job.SuccessAny}, job.ScopeReplica},
		{"without an etcd they are a collective", aJob(0, 3, elasticJob), job.Success{Role: "Worker", Rule: job.SuccessAll}, job.ScopeJob},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			m := Kind.Read(row.job)
			if m.Job.Success != row.success || m.Job.RestartScope() != row.scope || m.Job.Roles[0].RestartPolicy != job.RestartOnFailure {
				t.Errorf("success %+v, scope %s, restart policy %s", m.Job.Success, m.Job.RestartScope(), m.Job.Roles[0].RestartPolicy)
			}
		})
	}
}
