// Package mpirun is what every kind of job needs whose processes are started by mpirun: a host file, a way to start processes in
// other pods, and the variables by which an implementation of MPI finds both. The way is package mpiplan.
package mpirun

import (
	"path/filepath"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/manifest"
	"github.com/trainyard/trainyard/internal/manifest/mpiplan"
)

// Gang is the launcher of a job and the replicas on which it starts processes.
type Gang struct {
	Manifest *manifest.Manifest
	// Launcher runs mpirun, Workers is the role on whose replicas the processes run.
	Launcher job.Replica
	Workers  string
	// Slots is how many processes a replica may have. LauncherWorks says that the launcher has processes, too.
	Slots         int32
	LauncherWorks bool
	// Implementation is whose mpirun it is.
	Implementation kubeflowv1.MPIImplementation
	// LongNames writes hosts with the job's Service, as every resolver finds them, and not as bare names of pods.
	LongNames bool
	// KeysAt is where programs of the image find the keys, as OpenSSH names them; empty for nowhere.
	KeysAt string
	// Awaited says that the launcher is created only when the workers are ready.
	Awaited bool
	// OwnServer says that the workers run a command that serves connections itself.
	OwnServer bool
}

// service is the domain of the job's pods.
func (g Gang) service() string {
	return g.Manifest.Job.Name + "." + g.Manifest.Job.Namespace + ".svc"
}

func (g Gang) host(pod string) string {
	if g.LongNames {
		return pod + "." + g.service()
	}
	return pod
}

// plan is what the init container of a replica prepares.
func (g Gang) plan(r job.Replica) mpiplan.Plan {
	m := g.Manifest
	first := m.Job.PodName(job.Replica{Role: g.Workers})
	p := mpiplan.Plan{
		Workers: m.Size(g.Workers), Slots: g.Slots, Host: g.host(first[:len(first)-1] + "%d"), Service: g.service(),
		Colon: g.Implementation != kubeflowv1.MPIImplementationOpenMPI,
		Wait:  r == g.Launcher, Agent: r == g.Launcher && !g.OwnServer,
	}
	if g.LauncherWorks {
		p.Launcher = g.host(m.Job.PodName(g.Launcher))
	}
	return p
}

const (
	filesVolume = "mpi-job-config"
	keysVolume  = "mpi-job-keys"
	sshVolume   = "ssh-auth"
)

// Equip adds the folder with the agent and the host file, and the keys, to the pod of a replica.
func (g Gang) Equip(pod *corev1.Pod, r job.Replica, container *corev1.Container) {
	m, spec := g.Manifest, &pod.Spec
	spec.InitContainers = append(spec.InitContainers, corev1.Container{
		Name: "mpi-agent", Image: m.Agent.Image, ImagePullPolicy: corev1.PullIfNotPresent,
		Command:      append(slices.Clone(m.Agent.Command), g.plan(r).Args()...),
		Env:          m.Agent.Env,
		VolumeMounts: []corev1.VolumeMount{{Name: filesVolume, MountPath: mpiplan.Dir}},
		// Requests equal to limits: one container in which they differ takes the QoS class Guaranteed, and with it exclusive cores, from
		// its pod. An init container does not add to what the pod asks for.
		Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")},
		},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	})
	spec.Volumes = append(spec.Volumes,
		corev1.Volume{Name: filesVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		keys(keysVolume, m.KeySecret, 0o444, nil))
	manifest.AddEnv(container, m.Agent.Env)
	container.VolumeMounts = append(container.VolumeMounts,
		corev1.VolumeMount{Name: filesVolume, MountPath: mpiplan.Dir}, corev1.VolumeMount{Name: keysVolume, MountPath: mpiplan.KeysDir, ReadOnly: true})
	if g.KeysAt != "" {
		spec.Volumes = append(spec.Volumes, keys(sshVolume, m.KeySecret, modeAt(g.KeysAt), openSSH))
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: sshVolume, MountPath: g.KeysAt})
	}
	if spec.HostNetwork && spec.DNSPolicy == "" {
		spec.DNSPolicy = corev1.DNSClusterFirstWithHostNet // Hydra's processes connect to the launcher by its host name
	}
	if r.Role == g.Workers && r != g.Launcher && !g.OwnServer {
		g.Serve(container, nil)
	}
}

// ServesItself reports whether a container has a command that must serve connections by itself. An sshd need not: our server replaces
// it, which needs no configuration, no certain user and no keys of certain modes.
func ServesItself(c *corev1.Container) bool {
	command := slices.Concat(c.Command, c.Args)
	return len(command) > 0 && filepath.Base(command[0]) != "sshd"
}

// openSSH are the keys by the names that OpenSSH reads.
var openSSH = []corev1.KeyToPath{
	{Key: mpiplan.PrivateKey, Path: "id_rsa"}, {Key: mpiplan.PublicKey, Path: "id_rsa.pub"}, {Key: mpiplan.PublicKey, Path: "authorized_keys"},
}

// modeAt is the mode of keys for OpenSSH. It refuses a private key that others may read if the user owns it. That is root in /root,
// and other users must be able to read root's files.
func modeAt(path string) int32 {
	if filepath.Clean(path) == "/root/.ssh" {
		return 0o600
	}
	return 0o644
}

func keys(volume, secret string, mode int32, items []corev1.KeyToPath) corev1.Volume {
	return corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret, DefaultMode: &mode, Items: items}}}
}

// Serve makes a container run the agent's server, and beside it a command, if there is one. Where the launcher's creation waits for it,
// it is ready when it accepts connections.
func (g Gang) Serve(c *corev1.Container, command []string) {
	c.Command, c.Args = append([]string{mpiplan.Program, "serve"}, command...), nil
	if c.ReadinessProbe == nil && g.Awaited {
		c.ReadinessProbe = &corev1.Probe{PeriodSeconds: 2, ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(mpiplan.Port)}}}
	}
}

// Environment is that of the launcher, by which mpirun finds the hosts and the remote shell. Open MPI 5 reads other names than its
// predecessors, so both are set.
func (g Gang) Environment() []corev1.EnvVar {
	var v variables
	slots := strconv.Itoa(int(g.Slots))
	switch g.Implementation {
	case kubeflowv1.MPIImplementationIntel:
		v.set("I_MPI_HYDRA_HOST_FILE", mpiplan.Hostfile)
		v.set("I_MPI_PERHOST", slots)
		v.set("I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS", connectionAttempts)
	case kubeflowv1.MPIImplementationMPICH:
		v.set("HYDRA_HOST_FILE", mpiplan.Hostfile)
		v.set("HYDRA_LAUNCH_EXTRA_ARGS", connectionAttempts)
	default:
		v.set("OMPI_MCA_orte_default_hostfile", mpiplan.Hostfile)
		v.set("PRTE_MCA_prte_default_hostfile", mpiplan.Hostfile)
		v.set("OMPI_MCA_orte_set_default_slots", slots)
		v.set("PRTE_MCA_prte_set_default_slots", slots)
		if g.LongNames {
			v.set("OMPI_MCA_orte_keep_fqdn_hostnames", "true")
			v.set("PRTE_MCA_prte_keep_fqdn_hostnames", "true")
		}
		v.set("OMPI_MCA_plm_rsh_args", connectionAttempts)
		v.set("PRTE_MCA_plm_ssh_args", connectionAttempts)
	}
	if !g.OwnServer {
		v.set("OMPI_MCA_plm_rsh_agent", mpiplan.RemoteShell)
		v.set("PRTE_MCA_plm_ssh_agent", mpiplan.RemoteShell)
		v.set("I_MPI_HYDRA_BOOTSTRAP", "rsh")
		v.set("I_MPI_HYDRA_BOOTSTRAP_EXEC", mpiplan.RemoteShell)
		v.set("HYDRA_LAUNCHER", "ssh")
		v.set("HYDRA_LAUNCHER_EXEC", mpiplan.RemoteShell)
	}
	if !g.LauncherWorks { // it shows a launcher without processes no GPUs of its node
		v.set("NVIDIA_VISIBLE_DEVICES", "")
		v.set("NVIDIA_DRIVER_CAPABILITIES", "")
	}
	return v
}

// connectionAttempts makes OpenSSH try again while the name of a worker is not known yet.
const connectionAttempts = "-o ConnectionAttempts=10"

type variables []corev1.EnvVar

func (v *variables) set(name, value string) { *v = append(*v, corev1.EnvVar{Name: name, Value: value}) }
