package pytorch

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/job"
)

func aJob(master, workers int32, changes ...func(*kubeflowv1.PyTorchJob)) *kubeflowv1.PyTorchJob {
	role := func(n int32) *kubeflowv1.ReplicaSpec {
		return &kubeflowv1.ReplicaSpec{Replicas: &n, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "pytorch"}}}}}
	}
	pj := &kubeflowv1.PyTorchJob{}
	pj.Name, pj.UID = "demo", "5d9d"
	pj.Spec.PyTorchReplicaSpecs = map[kubeflowv1.ReplicaType]*kubeflowv1.ReplicaSpec{"Master": role(master), "Worker": role(workers)}
	for _, change := range changes {
		change(pj)
	}
	return pj
}

func elasticJob(pj *kubeflowv1.PyTorchJob) {
	pj.Spec.ElasticPolicy = &kubeflowv1.ElasticPolicy{MinReplicas: new(int32(1)), MaxReplicas: new(int32(8))}
}

func etcd(pj *kubeflowv1.PyTorchJob) {
	pj.Spec.ElasticPolicy.RDZVHost, pj.Spec.ElasticPolicy.RDZVBackend = new("etcd"), new(kubeflowv1.RDZVBackendETCDV2)
}

func perNode(n string) func(*kubeflowv1.PyTorchJob) {
	return func(pj *kubeflowv1.PyTorchJob) { pj.Spec.NprocPerNode = &n }
}

func setEnv(role kubeflowv1.ReplicaType, name, value string) func(*kubeflowv1.PyTorchJob) {
	return func(pj *kubeflowv1.PyTorchJob) {
		container := &pj.Spec.PyTorchReplicaSpecs[role].Template.Spec.Containers[0]
		container.Env = append(container.Env, corev1.EnvVar{Name: name, Value: value})
	}
}

func TestEnvironment(t *testing.T) {
	for _, row := range []struct {
		sentence string
		job      *kubeflowv1.PyTorchJob
		replica  job.Replica
		want     map[string]string // "-" for a variable that is not set
	}{
		{"the Master is rank 0", aJob(1, 3), job.Replica{Role: "Master"},
			map[string]string{"RANK": "0", "WORLD_SIZE": "4", "MASTER_ADDR": "demo-master-0", "MASTER_PORT": "23456", "PET_NNODES": "4", "PET_NPROC_PER_NODE": "auto"}},
		{"a Worker comes after the Master", aJob(1, 3), job.Replica{Role: "Worker", Index: 2},
			map[string]string{"RANK": "3", "PET_NODE_RANK": "3", "PET_MASTER_ADDR": "demo-master-0"}},
		{"processes per node make the world larger, not the rank", aJob(1, 3, perNode("8")), job.Replica{Role: "Worker", Index: 2},
			map[string]string{"RANK": "3", "WORLD_SIZE": "32", "PET_NNODES": "4", "PET_NPROC_PER_NODE": "8"}},
		{"a number that only torch knows counts as one", aJob(1, 3, perNode("gpu")), job.Replica{Role: "Master"},
			map[string]string{"WORLD_SIZE": "4", "PET_NPROC_PER_NODE": "gpu"}},
		{"without a Master the first Worker acts as one", aJob(0, 3), job.Replica{Role: "Worker", Index: 2},
			map[string]string{"RANK": "2", "WORLD_SIZE": "3", "MASTER_ADDR": "demo-worker-0"}},
		{"the port that the Master sets is every Worker's", aJob(1, 3, setEnv("Master", "MASTER_PORT", "29500")), job.Replica{Role: "Worker"},
			map[string]string{"MASTER_PORT": "29500", "PET_MASTER_PORT": "29500"}},
		{"the port that the Workers set is the Master's", aJob(1, 3, setEnv("Worker", "PET_MASTER_PORT", "29500")), job.Replica{Role: "Master"},
			map[string]string{"MASTER_PORT": "29500", "PET_MASTER_PORT": "29500"}},
		{"where they disagree, the Master's counts", aJob(1, 3, setEnv("Worker", "MASTER_PORT", "1"), setEnv("Master", "MASTER_PORT", "2")), job.Replica{Role: "Worker"},
			map[string]string{"PET_MASTER_PORT": "2"}},
		{"a Master that does not run sets no port", aJob(0, 3, setEnv("Master", "MASTER_PORT", "2")), job.Replica{Role: "Worker"},
			map[string]string{"MASTER_PORT": "23456"}},
		{"what is no port sets none", aJob(1, 3, setEnv("Master", "MASTER_PORT", "$(PORT)")), job.Replica{Role: "Worker"},
			map[string]string{"MASTER_PORT": "23456"}},
		{"an elastic Worker is told the bounds and where to meet", aJob(0, 3, elasticJob), job.Replica{Role: "Worker", Index: 2},
			map[string]string{"PET_NNODES": "1:8", "PET_RDZV_ENDPOINT": "demo-worker-0:23456", "PET_RDZV_BACKEND": "c10d", "PET_RDZV_ID": "5d9d",
				"RANK": "-", "WORLD_SIZE": "-", "MASTER_ADDR": "-", "PET_RDZV_CONF": "last_call_timeout=10", "PET_MAX_RESTARTS": "30", "PET_STANDALONE": "-"}},
		{"what the policy says of restarts and the rendezvous is passed on", aJob(0, 3, elasticJob, func(pj *kubeflowv1.PyTorchJob) {
			pj.Spec.ElasticPolicy.MaxRestarts = new(int32(0))
			pj.Spec.ElasticPolicy.RDZVConf = []kubeflowv1.RDZVConf{{Key: "join_timeout", Value: "60"}, {Key: "last_call_timeout", Value: "1"}}
		}), job.Replica{Role: "Worker"},
			map[string]string{"PET_RDZV_CONF": "join_timeout=60,last_call_timeout=1", "PET_MAX_RESTARTS": "0"}},
		{"an etcd is left its own configuration", aJob(0, 3, elasticJob, etcd), job.Replica{Role: "Worker"},
			map[string]string{"PET_RDZV_BACKEND": "etcd-v2", "PET_RDZV_ENDPOINT": "etcd:23456", "PET_RDZV_CONF": "-"}},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			got := map[string]string{}
			for _, v := range Kind.Read(row.job).Env(row.replica, 0).Everywhere {
				got[v.Name] = v.Value
			}
			for name, want := range row.want {
				if value, set := got[name]; value != want && set || !set && want != "-" {
					t.Errorf("%s is %q, want %q", name, value, want)
				}
			}
		})
	}
}

// A template that declares no port of the name has the one that a variable sets.
func TestThePortOfAVariableIsTheServices(t *testing.T) {
	for _, child := range Kind.Read(aJob(1, 3, setEnv("Master", "MASTER_PORT", "29500"))).Children() {
		ports := child.Object.(*corev1.Service).Spec.Ports
		if len(ports) != 1 || ports[0].Port != 29500 {
			t.Errorf("Service %s has %v", child.Object.GetName(), ports)
		}
	}
}

func TestRules(t *testing.T) {
	for _, row := range []struct {
		sentence string
		job      *kubeflowv1.PyTorchJob
		success  job.Success
		scope    job.Scope
		services int
		kubelet  corev1.RestartPolicy // of the first Worker
	}{
		{"the Master's end is the job's, and all restart as one", aJob(1, 3), job.Success{Role: "Master", Rule: job.SuccessAll}, job.ScopeJob, 2, "Never"},
		{"a Master alone restarts in place", aJob(1, 0), job.Success{Role: "Master", Rule: job.SuccessAll}, job.ScopeReplica, 2, "OnFailure"},
		{"Workers alone must all succeed", aJob(0, 3), job.Success{Role: "Worker", Rule: job.SuccessAll}, job.ScopeJob, 2, "Never"},
		{"of elastic Workers one is enough, and each restarts alone, but for the first, which holds the rendezvous", aJob(0, 3, elasticJob),
			job.Success{Role: "Worker", Rule: job.SuccessAny}, job.ScopeReplica, 2, "Never"},
		{"where elastic Workers meet elsewhere, the first is as any", aJob(0, 3, elasticJob, etcd),
			job.Success{Role: "Worker", Rule: job.SuccessAny}, job.ScopeReplica, 2, "OnFailure"},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			m := Kind.Read(row.job)
			if m.Job.Success != row.success || m.Job.RestartScope() != row.scope || len(m.Job.Children) != row.services {
				t.Errorf("success %+v, scope %s, services %v", m.Job.Success, m.Job.RestartScope(), m.Job.Children)
			}
			if got := m.Job.PodRestartPolicy(job.Replica{Role: "Worker"}); got != row.kubelet {
				t.Errorf("the kubelet is told %s about the first Worker, want %s", got, row.kubelet)
			}
		})
	}
}
