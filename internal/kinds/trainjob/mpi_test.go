package trainjob

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	trainer "github.com/trainyard/trainyard/api/trainer/v1alpha1"
	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/manifest"
	"github.com/trainyard/trainyard/internal/manifest/mpiplan"
)

// mpiRuntime is a runtime as Trainer ships it for DeepSpeed, with changes to its policy.
func mpiRuntime(t *testing.T, policy string) *trainer.ClusterTrainingRuntime {
	t.Helper()
	r := &trainer.ClusterTrainingRuntime{}
	if err := yaml.Unmarshal([]byte(`
metadata: {name: deepspeed-distributed}
spec:
  mlPolicy: {numNodes: 1, mpi: {`+policy+`}}
  template:
    spec:
      successPolicy: {operator: All, targetReplicatedJobs: [launcher]}
      replicatedJobs:
        - name: node
          template:
            spec:
              template:
                spec:
                  containers: [{name: node, image: deepspeed, command: [/usr/sbin/sshd, -De], readinessProbe: {tcpSocket: {port: 2222}}}]
        - name: launcher
          dependsOn: [{name: node, status: Ready}]
          template:
            metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
            spec:
              template:
                spec: {containers: [{name: node, image: deepspeed}]}
`), r); err != nil {
		t.Fatal(err)
	}
	return r
}

func mpiTrainJob(t *testing.T, policy string, change func(*trainer.Trainer)) *manifest.Manifest {
	t.Helper()
	tj := &trainer.TrainJob{}
	tj.Name, tj.Namespace, tj.UID = "demo", "team", "0123456789"
	tj.Spec.Trainer = &trainer.Trainer{NumNodes: new(int32(3)), Image: new("mine"), Command: []string{"mpirun", "./train"}}
	if change != nil {
		change(tj.Spec.Trainer)
	}
	if err := (Kind{}).Take(tj, mpiRuntime(t, policy)); err != nil {
		t.Fatal(err)
	}
	m := Kind{}.Read(tj)
	if m.Job.Invalid != "" {
		t.Fatal(m.Job.Invalid)
	}
	return m
}

func TestTheHostsOfAnMPIRuntime(t *testing.T) {
	for _, row := range []struct {
		sentence, policy string
		change           func(*trainer.Trainer)
		nodes            int32
		hosts            string
	}{
		{"numNodes are the nodes", "", nil, 3, "demo-node-0.demo.team.svc slots=1|demo-node-1.demo.team.svc slots=1|demo-node-2.demo.team.svc slots=1|"},
		{"a launcher that trains is one of them", "runLauncherAsNode: true, numProcPerNode: 2", nil, 2,
			"demo-launcher-0.demo.team.svc slots=2|demo-node-0.demo.team.svc slots=2|demo-node-1.demo.team.svc slots=2|"},
		{"alone it needs no other", "runLauncherAsNode: true", func(t *trainer.Trainer) { t.NumNodes = new(int32(1)) }, 0, "demo-launcher-0.demo.team.svc slots=1|"},
		{"the job says how many processes", "numProcPerNode: 2", func(t *trainer.Trainer) { t.NumNodes, t.NumProcPerNode = new(int32(1)), new(int32(4)) }, 1, "demo-node-0.demo.team.svc slots=4|"},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			m := mpiTrainJob(t, row.policy, row.change)
			if got := m.Size("node"); got != row.nodes || m.Size("launcher") != 1 {
				t.Errorf("%d nodes and %d launchers, want %d and 1", got, m.Size("launcher"), row.nodes)
			}
			launcher := m.Pod(m.Leader, 0)
			init := launcher.Spec.InitContainers[0].Command
			plan, err := mpiplan.Parse(init[2:])
			if got := strings.ReplaceAll(plan.HostFile(), "\n", "|"); err != nil || got != row.hosts {
				t.Errorf("the hosts are %s (%v), want %s", got, err, row.hosts)
			}
		})
	}
}

func TestThePodsOfAnMPIRuntime(t *testing.T) {
	m := mpiTrainJob(t, "sshAuthMountPath: /home/mpiuser/.ssh", nil)
	launcher, node := m.Pod(m.Leader, 0).Spec.Containers[0], m.Pod(job.Replica{Role: "node"}, 0).Spec.Containers[0]
	if launcher.Command[0] != "mpirun" || strings.Join(node.Command, " ") != "/etc/mpi/trainyard-agent serve" || node.Image != "mine" {
		t.Errorf("the launcher runs %q, a node runs %q in %s", launcher.Command, node.Command, node.Image)
	}
	paths := ""
	for _, mount := range node.VolumeMounts {
		paths += mount.MountPath + " "
	}
	if paths != "/etc/mpi /etc/mpi-keys /home/mpiuser/.ssh " {
		t.Errorf("a node has %s", paths)
	}
	if want := (job.Success{Role: "launcher", Rule: job.SuccessAll}); m.Job.Success != want || m.KeySecret != "demo-ssh-01234567" {
		t.Errorf("it succeeds by %+v, and has the keys %s", m.Job.Success, m.KeySecret)
	}
	shell := false
	for _, v := range launcher.Env {
		shell = shell || v.Name == "PRTE_MCA_plm_ssh_agent"
	}
	if !shell {
		t.Errorf("the launcher's environment is %v", launcher.Env)
	}
}
