// Package paddle answers what is particular to PaddleJobs. Without a Master the Workers are one collective that meets at the first of
// them. With Masters, which are parameter servers, all meet at the first Master, and the job ends with the Masters.
package paddle

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/api/naming"
	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/kinds/kubeflow"
	"github.com/trainyard/trainyard/internal/manifest"
)

const (
	master = string(kubeflowv1.PaddleMaster)
	worker = string(kubeflowv1.PaddleWorker)
)

// Kind is the adapter of PaddleJobs.
var Kind = kubeflow.Kind{
	Layout:     kubeflowv1.PaddleLayout,
	Empty:      func() kubeflowv1.Job { return &kubeflowv1.PaddleJob{} },
	Label:      "paddle",
	Scope:      job.ScopeJob,
	Leaders:    []kubeflowv1.ReplicaType{kubeflowv1.PaddleMaster, kubeflowv1.PaddleWorker},
	Rendezvous: true,
	PerReplica: []string{"PADDLE_MASTER"},
	Complete: func(m *manifest.Manifest, obj kubeflowv1.Job) {
		elastic(m, obj.(*kubeflowv1.PaddleJob).Spec.ElasticPolicy)
	},
	Environment: func(m *manifest.Manifest, obj kubeflowv1.Job, r job.Replica, _ int32) manifest.Env {
		return environment(m, obj.(*kubeflowv1.PaddleJob), r)
	},
}

// elastic lets the number of Workers change, and sets their autoscaler. Paddle's launcher is elastic only where an etcd is its master:
// with any other it waits for maxReplicas.
func elastic(m *manifest.Manifest, policy *kubeflowv1.PaddleElasticPolicy) {
	if policy == nil || policy.MinReplicas == nil || m.Leader.Role == master || !meetsInEtcd(m.Templates[worker]) {
		return
	}
	m.Job.Scope, m.Job.Success.Rule = job.ScopeReplica, job.SuccessAny
	m.Job.Elastic = &job.Elastic{Role: worker, Min: *policy.MinReplicas, Max: *policy.MaxReplicas}
	m.Metrics = policy.Metrics
}

func meetsInEtcd(template *corev1.PodTemplateSpec) bool {
	container := naming.TrainingContainer(&template.Spec, kubeflowv1.PaddleContainer)
	return container != nil && slices.ContainsFunc(container.Env, func(e corev1.EnvVar) bool {
		return e.Name == "PADDLE_MASTER" && strings.HasPrefix(e.Value, "etcd://")
	})
}

// environment is what paddle.distributed.launch reads. The leader has its own address as a number, because it serves there.
func environment(m *manifest.Manifest, pj *kubeflowv1.PaddleJob, r job.Replica) manifest.Env {
	var v kubeflow.Variables
	v.Set("1", "PYTHONUNBUFFERED")
	v.Set(m.Job.Name, "PADDLE_JOB_ID")
	if m.Job.Elastic == nil {
		v.SetNumber(m.Total(), "PADDLE_NNODES")
	} else {
		v.Set(m.Job.Elastic.Bounds(), "PADDLE_NNODES")
		if n := pj.Spec.ElasticPolicy.MaxRestarts; n != nil {
			v.SetNumber(*n, "PADDLE_MAX_RESTART")
		}
	}
	host := m.Job.PodName(m.Leader)
	if r == m.Leader {
		host = "$(POD_IP_DUMMY)"
		v = append(v, corev1.EnvVar{Name: "POD_IP_DUMMY", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}})
	}
	v.Set(fmt.Sprintf("%s:%d", host, kubeflow.Port(m, kubeflowv1.PaddleLayout, m.Leader.Role)), "PADDLE_MASTER")
	switch {
	case r.Role == master:
		v.Set("1", "PADDLE_SERVER_NUM")
	case m.Leader.Role == master:
		v.Set("1", "PADDLE_TRAINER_NUM")
	}
	return manifest.Env{Everywhere: v}
}
