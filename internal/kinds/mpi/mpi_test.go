package mpi

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/manifest"
	"github.com/trainyard/trainyard/internal/manifest/mpiplan"
)

// aJob is a job of v1 with two Workers, changed. v2beta1 makes it one of mpi-operator.
func aJob(changes ...func(*kubeflowv1.MPIJob)) *manifest.Manifest {
	mj := &kubeflowv1.MPIJob{}
	mj.Name, mj.Namespace, mj.UID = "demo", "team", "0123456789"
	mj.Spec.MPIReplicaSpecs = map[kubeflowv1.ReplicaType]*kubeflowv1.ReplicaSpec{
		"launcher": {Template: pod("mpirun", "./train")}, "worker": {Replicas: new(int32(2)), Template: pod()},
	}
	for _, change := range changes {
		change(mj)
	}
	return Kind.Read(mj)
}

func pod(command ...string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "mpi", Image: "train", Command: command}}}}
}

func v2beta1(mj *kubeflowv1.MPIJob) { mj.Spec.SSHAuthMountPath = "/root/.ssh" }

func worksWith(command ...string) func(*kubeflowv1.MPIJob) {
	return func(mj *kubeflowv1.MPIJob) { mj.Spec.MPIReplicaSpecs["worker"].Template = pod(command...) }
}

func podOf(m *manifest.Manifest, role string) *corev1.Pod { return m.Pod(job.Replica{Role: role}, 0) }

func variable(p *corev1.Pod, name string) string {
	for _, v := range p.Spec.Containers[0].Env {
		if v.Name == name {
			return v.Value
		}
	}
	return ""
}

func TestWhatAWorkerRuns(t *testing.T) {
	serve := []string{"/etc/mpi/trainyard-agent", "serve"}
	argsOnly := func(args ...string) func(*kubeflowv1.MPIJob) {
		return func(mj *kubeflowv1.MPIJob) { mj.Spec.MPIReplicaSpecs["worker"].Template.Spec.Containers[0].Args = args }
	}
	for _, row := range []struct {
		sentence string
		manifest *manifest.Manifest
		command  []string
		agent    bool
	}{
		{"v1 without a command: the server", aJob(), serve, true},
		{"v1 with args alone, as Flyte writes it: the server", aJob(argsOnly("python", "train.py")), serve, true},
		{"v1 with a command: the server beside it", aJob(worksWith("sleep", "365d")), append(slices.Clone(serve), "sleep", "365d"), true},
		{"v2beta1 without a command: the server", aJob(v2beta1), serve, true},
		{"v2beta1 with sshd: the server", aJob(v2beta1, worksWith("/usr/sbin/sshd", "-De")), serve, true},
		{"v2beta1 with sshd as args: the server", aJob(v2beta1, argsOnly("/usr/sbin/sshd", "-De")), serve, true},
		{"v2beta1 with another command: that, which serves by itself", aJob(v2beta1, worksWith("./start-sshd.sh")), []string{"./start-sshd.sh"}, false},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			if got := podOf(row.manifest, worker).Spec.Containers[0].Command; !slices.Equal(got, row.command) {
				t.Errorf("it runs %q, want %q", got, row.command)
			}
			shell := variable(podOf(row.manifest, launcher), "OMPI_MCA_plm_rsh_agent")
			if got := shell == "/etc/mpi/kubexec.sh"; got != row.agent {
				t.Errorf("the launcher's remote shell is %q", shell)
			}
		})
	}
}

func TestHosts(t *testing.T) {
	works := func(mj *kubeflowv1.MPIJob) { mj.Spec.RunLauncherAsWorker = new(true) }
	withGPU := func(mj *kubeflowv1.MPIJob) {
		mj.Spec.MPIReplicaSpecs["launcher"].Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": {}}
	}
	noSlots := func(mj *kubeflowv1.MPIJob) { mj.Spec.SlotsPerWorker = new(int32(0)) }
	implementation := func(name kubeflowv1.MPIImplementation) func(*kubeflowv1.MPIJob) {
		return func(mj *kubeflowv1.MPIJob) { mj.Spec.MPIImplementation = name }
	}
	for _, row := range []struct {
		sentence string
		manifest *manifest.Manifest
		want     string
		variable string
	}{
		{"v1 has bare names", aJob(noSlots), "demo-worker-0 slots=1|demo-worker-1 slots=1|", "OMPI_MCA_orte_default_hostfile"},
		{"Open MPI 5 has variables of its own", aJob(noSlots), "demo-worker-0 slots=1|demo-worker-1 slots=1|", "PRTE_MCA_prte_default_hostfile"},
		{"v1 with a GPU in the Launcher uses it", aJob(withGPU), "demo-launcher slots=1|demo-worker-0 slots=1|demo-worker-1 slots=1|", "OMPI_MCA_orte_default_hostfile"},
		{"v2beta1 has names in the Service", aJob(v2beta1), "demo-worker-0.demo.team.svc slots=1|demo-worker-1.demo.team.svc slots=1|", "OMPI_MCA_orte_default_hostfile"},
		{"Intel MPI has a format of its own", aJob(v2beta1, implementation("Intel")), "demo-worker-0.demo.team.svc:1|demo-worker-1.demo.team.svc:1|", "I_MPI_HYDRA_HOST_FILE"},
		{"MPICH has that of Intel, and the Launcher is first", aJob(v2beta1, works, implementation("MPICH")),
			"demo-launcher.demo.team.svc:1|demo-worker-0.demo.team.svc:1|demo-worker-1.demo.team.svc:1|", "HYDRA_HOST_FILE"},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			mj := row.manifest
			p := podOf(mj, launcher)
			if got := variable(p, row.variable); got != "/etc/mpi/hostfile" {
				t.Errorf("%s is %q", row.variable, got)
			}
			if got := hostfile(t, p); got != row.want {
				t.Errorf("the hosts are %s, want %s", got, row.want)
			}
		})
	}
}

func TestRules(t *testing.T) {
	waits := func(mj *kubeflowv1.MPIJob) { mj.Spec.LauncherCreationPolicy = kubeflowv1.LauncherWaitForWorkersReady }
	managed := func(mj *kubeflowv1.MPIJob) { mj.Spec.RunPolicy.ManagedBy = new(kubeflowv1.ManagedByMPIOperator) }
	never := func(mj *kubeflowv1.MPIJob) {
		mj.Spec.MPIReplicaSpecs["worker"].RestartPolicy = kubeflowv1.RestartPolicyNever
	}
	onFailure := func(mj *kubeflowv1.MPIJob) {
		mj.Spec.MPIReplicaSpecs["launcher"].RestartPolicy = kubeflowv1.RestartPolicyOnFailure
	}
	m := aJob()
	if want := (job.Success{Role: launcher, Rule: job.SuccessAll}); m.Job.Success != want || m.Job.RestartScope() != job.ScopeJob {
		t.Errorf("the job succeeds by %+v, and a failure restarts the %s", m.Job.Success, m.Job.RestartScope())
	}
	if name := podOf(m, launcher).Name; name != "demo-launcher" {
		t.Errorf("the Launcher is called %s, want its name in Training Operator", name)
	}
	if aJob(managed).Job.ManagedElsewhere() {
		t.Error("a job of mpi-operator is left alone")
	}
	for _, row := range []struct {
		sentence         string
		manifest         *manifest.Manifest
		launcher, worker job.RestartPolicy
		retries          int32
	}{
		{"v1 never restarts by default", m, job.RestartNever, job.RestartNever, -1},
		{"Workers of v1 follow the Launcher", aJob(onFailure), job.RestartOnFailure, job.RestartOnFailure, -1},
		{"Workers of v1 may have their own", aJob(onFailure, never), job.RestartOnFailure, job.RestartNever, -1},
		{"v2beta1 restarts six times by default", aJob(v2beta1), job.RestartOnFailure, job.RestartOnFailure, 6},
		{"Never of v2beta1's Workers is about their containers", aJob(v2beta1, never), job.RestartOnFailure, job.RestartOnFailure, 6},
	} {
		roles, limit := row.manifest.Job.Roles, row.manifest.Job.Policy.BackoffLimit
		if roles[0].RestartPolicy != row.launcher || roles[1].RestartPolicy != row.worker || limit != nil && *limit != row.retries || limit == nil && row.retries >= 0 {
			t.Errorf("%s: %s, %s, limit %v", row.sentence, roles[0].RestartPolicy, roles[1].RestartPolicy, limit)
		}
	}
	waiting := aJob(waits)
	if after := waiting.Job.Roles[0].After; len(after) != 1 || after[0] != (job.Dependency{Role: worker, Until: job.MilestoneReady}) {
		t.Errorf("the Launcher waits for %v", after)
	}
	if podOf(waiting, worker).Spec.Containers[0].ReadinessProbe == nil {
		t.Error("a Worker that is waited for has no readiness probe")
	}
}

// hostfile is the host file that the Launcher's init container writes, with | for the ends of lines.
func hostfile(t *testing.T, p *corev1.Pod) string {
	t.Helper()
	command := p.Spec.InitContainers[len(p.Spec.InitContainers)-1].Command
	plan, err := mpiplan.Parse(command[2:])
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(plan.HostFile(), "\n", "|")
}
