package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trainyard/trainyard/api/naming"
)

const (
	// MPIJobKind is the kind's name.
	MPIJobKind = "MPIJob"
	// MPILauncher is the role that runs mpirun. There is one, and its end ends the job.
	MPILauncher ReplicaType = "Launcher"
	// MPIWorker is the role on whose pods mpirun starts the processes.
	MPIWorker ReplicaType = "Worker"
	// MPIContainer is the name of the training container. Without a container of this name it is the first one.
	MPIContainer = "mpi"
	// ManagedByMPIOperator is the manager that a job of mpi-operator may name. It means this operator.
	ManagedByMPIOperator = "kubeflow.org/mpi-operator"
	// MPIVersion is the second version in which MPIJobs are served, that of mpi-operator.
	MPIVersion = "v2beta1"
)

// MPILayout is how an MPIJob is written.
var MPILayout = Layout{
	Kind: MPIJobKind, ReplicaSpecs: "mpiReplicaSpecs", Roles: []ReplicaType{MPILauncher, MPIWorker},
	Container: MPIContainer, RestartPolicy: RestartPolicyNever,
}

// MPIImplementation is whose mpirun the Launcher runs.
// +kubebuilder:validation:Enum=OpenMPI;Intel;MPICH
type MPIImplementation string

// The implementations.
const (
	MPIImplementationOpenMPI MPIImplementation = "OpenMPI"
	MPIImplementationIntel   MPIImplementation = "Intel"
	MPIImplementationMPICH   MPIImplementation = "MPICH"
)

// LauncherCreationPolicy says when the Launcher's pod is created.
// +kubebuilder:validation:Enum=AtStartup;WaitForWorkersReady
type LauncherCreationPolicy string

// The moments of the Launcher's creation.
const (
	LauncherAtStartup           LauncherCreationPolicy = "AtStartup"
	LauncherWaitForWorkersReady LauncherCreationPolicy = "WaitForWorkersReady"
)

// MPIJob is a distributed training whose processes are started by mpirun.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=mpijobs,singular=mpijob
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.conditions[-1:].type`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.ready`
// +kubebuilder:printcolumn:name="Restarts",type=integer,JSONPath=`.status.restarts`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`,priority=1
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",optionalOldSelf=true,fieldPath=".metadata.name",message="the job's Service has the same name, so use lower-case letters, digits and '-', a letter first and no '-' last"
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.spec.mpiReplicaSpecs.all(role, self.spec.mpiReplicaSpecs[role].?replicas.orValue(1) == 0 || size(self.metadata.name) + size(role) + size(string(self.spec.mpiReplicaSpecs[role].?replicas.orValue(1) - 1)) <= 61)",optionalOldSelf=true,fieldPath=".metadata.name",message="pods are named <name>-<role>-<index> and have at most 63 characters: use a shorter name (45 characters always fit)"
// +kubebuilder:validation:XValidation:rule="self.spec.mpiReplicaSpecs.all(role, self.spec.mpiReplicaSpecs[role].?replicas.orValue(1) == 0 || size(self.metadata.name) + size(role) + size(string(self.spec.mpiReplicaSpecs[role].?replicas.orValue(1) - 1)) <= 61) || !oldSelf.spec.mpiReplicaSpecs.all(role, oldSelf.spec.mpiReplicaSpecs[role].?replicas.orValue(1) == 0 || size(oldSelf.metadata.name) + size(role) + size(string(oldSelf.spec.mpiReplicaSpecs[role].?replicas.orValue(1) - 1)) <= 61)",fieldPath=".metadata.name",message="pods are named <name>-<role>-<index> and have at most 63 characters: use a shorter name (45 characters always fit)"
type MPIJob struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what to train and how to run it.
	// +required
	Spec MPIJobSpec `json:"spec,omitzero"`

	// status is what the operator last saw of the job. Only the operator writes it.
	// +optional
	Status JobStatus `json:"status,omitzero"`
}

// MPIJobSpec is what to train and how to run it.
type MPIJobSpec struct {
	FlatPolicy `json:",inline"`

	// runPolicy says when the job ends, what is left of it, whether it may start, and who runs it. Unset means the default of each of
	// its fields.
	// +optional
	RunPolicy RunPolicy `json:"runPolicy,omitzero"`

	// slotsPerWorker is how many processes mpirun may start on each Worker. Unset and 0 mean 1. A change takes effect with the next
	// attempt.
	// +kubebuilder:validation:Minimum=0
	// +optional
	SlotsPerWorker *int32 `json:"slotsPerWorker,omitempty"`

	// mainContainer is accepted for manifests of Training Operator, which needed the name to start processes. It has no effect.
	// +optional
	MainContainer string `json:"mainContainer,omitempty"`

	// mpiReplicaSpecs is the roles of the job: Launcher, which runs mpirun, and Worker, on which mpirun starts the processes. The names
	// may be written in any letter case. A Worker without command serves connections of the Launcher. The number of Workers may be
	// changed while the job runs, which starts the next attempt.
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(role, role.lowerAscii() in ['launcher', 'worker'])",messageExpression="'unknown role ' + self.filter(role, !(role.lowerAscii() in ['launcher', 'worker']))[0] + ': use Launcher or Worker'"
	// +kubebuilder:validation:XValidation:rule="['launcher', 'worker'].all(name, self.filter(role, role.lowerAscii() == name).size() <= 1)",message="a role is there twice, in different letter case: keep one of them"
	// +kubebuilder:validation:XValidation:rule="self.exists(role, role.lowerAscii() == 'launcher' && self[role].?replicas.orValue(1) == 1)",message="an MPIJob has exactly one Launcher: add the role Launcher with replicas 1"
	// +required
	MPIReplicaSpecs map[ReplicaType]*ReplicaSpec `json:"mpiReplicaSpecs"`

	// runLauncherAsWorker lets mpirun start processes on the Launcher, too. Defaults to false, and to true for a job of v1 whose
	// Launcher has a GPU.
	// +optional
	RunLauncherAsWorker *bool `json:"runLauncherAsWorker,omitempty"`

	// sshAuthMountPath is where the containers find the job's SSH keys, as OpenSSH names them: id_rsa, id_rsa.pub, authorized_keys.
	// Defaults to /root/.ssh in v2beta1; in v1 unset means that the keys are not mounted for programs of the image. A job that has
	// this field is run as mpi-operator runs jobs of v2beta1.
	// +optional
	SSHAuthMountPath string `json:"sshAuthMountPath,omitempty"`

	// launcherCreationPolicy says when the Launcher's pod is created: AtStartup creates it with the Workers, and it waits in an init
	// container until it can connect to each of them. WaitForWorkersReady creates it when all Workers are ready. Defaults to AtStartup.
	// +optional
	LauncherCreationPolicy LauncherCreationPolicy `json:"launcherCreationPolicy,omitempty"`

	// mpiImplementation is whose mpirun the Launcher runs: OpenMPI, Intel or MPICH. It decides the format of the host file and which
	// variables point to it. Defaults to OpenMPI.
	// +optional
	MPIImplementation MPIImplementation `json:"mpiImplementation,omitempty"`
}

// MPIJobList is a list of MPIJobs.
// +kubebuilder:object:root=true
type MPIJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	// Items is the jobs.
	Items []MPIJob `json:"items"`
}

// Parts are what jobs of every kind have.
func (job *MPIJob) Parts() Parts {
	spec := &job.Spec
	return Parts{MPILayout, &spec.RunPolicy, &spec.FlatPolicy, &spec.MPIReplicaSpecs, &job.Status}
}

// IsV2beta1 reports whether the job was written for mpi-operator. Stored jobs have the version v1; the schema of v2beta1 gives each of
// its jobs a path of the keys.
func (job *MPIJob) IsV2beta1() bool {
	return job.Spec.SSHAuthMountPath != "" || job.APIVersion == GroupVersion.Group+"/"+MPIVersion
}

// mpiOperatorRetries is the backoff limit of a Kubernetes Job that names none. mpi-operator's Launcher is such a Job.
const mpiOperatorRetries = 6

// SetDefaults fills in what the manifest leaves out; see Job. Workers are servers that the Launcher needs: without a policy of their own
// they have that of the Launcher. mpi-operator's are never restarted in their pods, which here is true for all members of a gang, so a
// Never of v2beta1 means no more than that.
func (job *MPIJob) SetDefaults() {
	spec, roles := &job.Spec, canonicalRoles(job.Spec.MPIReplicaSpecs, MPILayout.Roles)
	launcher, worker := roles[MPILauncher], roles[MPIWorker]
	if job.IsV2beta1() {
		spec.SSHAuthMountPath = withDefault(spec.SSHAuthMountPath, "/root/.ssh")
		if launcher != nil {
			launcher.RestartPolicy = withDefault(launcher.RestartPolicy, RestartPolicyOnFailure)
		}
		if worker != nil && worker.RestartPolicy == RestartPolicyNever {
			worker.RestartPolicy = ""
		}
		if job.Parts().Policy().BackoffLimit == nil {
			spec.RunPolicy.BackoffLimit = new(int32(mpiOperatorRetries))
		}
	}
	if worker != nil && launcher != nil {
		worker.RestartPolicy = withDefault(worker.RestartPolicy, launcher.RestartPolicy)
	}
	job.Parts().setDefaults()
	if spec.SlotsPerWorker == nil || *spec.SlotsPerWorker < 1 {
		spec.SlotsPerWorker = new(int32(1))
	}
	if spec.RunLauncherAsWorker == nil {
		spec.RunLauncherAsWorker = new(!job.IsV2beta1() && launcher != nil && hasGPU(&launcher.Template.Spec))
	}
	spec.LauncherCreationPolicy = withDefault(spec.LauncherCreationPolicy, LauncherAtStartup)
	spec.MPIImplementation = withDefault(spec.MPIImplementation, MPIImplementationOpenMPI)
}

func withDefault[T ~string](value, otherwise T) T {
	if value == "" {
		return otherwise
	}
	return value
}

// hasGPU reports whether a container of the pod has a GPU, by the names that resources of that sort have.
func hasGPU(pod *corev1.PodSpec) bool {
	for _, c := range pod.Containers {
		for name := range c.Resources.Limits {
			if naming.IsGPU(name) {
				return true
			}
		}
	}
	return false
}
