package v1alpha1

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

// MLPolicy says how many pods train and how they find each other. It names at most one framework.
// +kubebuilder:validation:XValidation:rule="[has(self.torch), has(self.mpi), has(self.flux), has(self.jax), has(self.xgboost)].filter(named, named).size() <= 1",message="mlPolicy names several frameworks: keep one of torch, mpi, flux, jax and xgboost"
// +kubebuilder:validation:XValidation:rule="!has(self.numNodes) || !has(self.torch) || !has(self.torch.elasticPolicy)",message="numNodes and torch.elasticPolicy exclude each other: remove numNodes, the number of nodes is between minNodes and maxNodes"
type MLPolicy struct {
	// numNodes is how many pods train, if the job does not set it. Defaults to 1.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +optional
	NumNodes *int32 `json:"numNodes,omitempty"`

	MLPolicySource `json:",inline"`
}

// MLPolicySource is the framework. Without one the pods get no environment variables.
type MLPolicySource struct {
	// torch sets the environment variables of torchrun.
	// +optional
	Torch *TorchMLPolicySource `json:"torch,omitempty"`

	// mpi lets the step that trains, the launcher, start processes by mpirun on the pods of a step named node. numNodes is the number of
	// those pods, with the launcher if runLauncherAsNode is true.
	// +optional
	MPI *MPIMLPolicySource `json:"mpi,omitempty"`

	// flux lets Flux start the processes. It is not supported yet.
	// +optional
	Flux *FluxMLPolicySource `json:"flux,omitempty"`

	// jax sets the environment variables with which jax.distributed.initialize finds the other nodes.
	// +optional
	JAX *JAXMLPolicySource `json:"jax,omitempty"`

	// xgboost sets the environment variables with which the nodes find XGBoost's tracker on the first node.
	// +optional
	XGBoost *XGBoostMLPolicySource `json:"xgboost,omitempty"`
}

// TorchMLPolicySource configures torch.
type TorchMLPolicySource struct {
	// elasticPolicy lets the number of nodes change while the job runs. Unset means a fixed number.
	// +optional
	ElasticPolicy *TorchElasticPolicy `json:"elasticPolicy,omitempty"`

	// envInjection names further containers that get the environment variables of the container node.
	// +optional
	EnvInjection *EnvInjection `json:"envInjection,omitempty"`
}

// TorchElasticPolicy is a configuration for PyTorch elastic training. If it is set, numNodes must be omitted, since the least and
// the greatest number of nodes configure torchrun: --nnodes=minNodes:maxNodes. The rendezvous is always c10d.
// +kubebuilder:validation:XValidation:rule="self.?minNodes.orValue(1) <= self.?maxNodes.orValue(2147483647)",message="minNodes is more than maxNodes: lower the one or raise the other"
type TorchElasticPolicy struct {
	// maxRestarts is how many times the training job can be restarted. This value is inserted into the --max-restarts argument of
	// torchrun and is the limit of the job's own restarts too. Unset means 30 for torchrun, which needs one
	// whenever a node joins or leaves, and the runtime's limit for the job.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MaxRestarts *int32 `json:"maxRestarts,omitempty"`

	// minNodes is the lower limit for the number of nodes to which the training job can scale down. Defaults to 1.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +optional
	MinNodes *int32 `json:"minNodes,omitempty"`

	// maxNodes is the upper limit for the number of nodes to which the training job can scale up. Defaults to minNodes.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +optional
	MaxNodes *int32 `json:"maxNodes,omitempty"`

	// metrics is what the desired number of nodes is calculated from. A HorizontalPodAutoscaler is created to perform auto-scaling.
	// Unset or empty means none.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	Metrics []autoscalingv2.MetricSpec `json:"metrics,omitempty"`
}

// EnvInjection names further containers that get the environment variables of the container node.
type EnvInjection struct {
	// targets are those containers, by step.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=jobName
	// +optional
	Targets []EnvInjectionTarget `json:"targets,omitempty"`
}

// EnvInjectionTarget names containers of one step.
type EnvInjectionTarget struct {
	// jobName is the step's name.
	// +kubebuilder:validation:MaxLength=63
	// +required
	JobName string `json:"jobName,omitempty"`

	// containerNames are the containers' names.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="!self.exists(name, name == 'node')",message="the container node always gets these variables: remove it"
	// +listType=set
	// +required
	ContainerNames []string `json:"containerNames,omitempty"`
}

// MPIImplementation is a flavour of MPI.
// +kubebuilder:validation:Enum=OpenMPI;""
type MPIImplementation string

// MPIMLPolicySource configures MPI.
type MPIMLPolicySource struct {
	// numProcPerNode is how many processes run in each pod. Defaults to 1.
	// +kubebuilder:default=1
	// +optional
	NumProcPerNode *int32 `json:"numProcPerNode,omitempty"`

	// mpiImplementation is the flavour of MPI. Defaults to OpenMPI.
	// +kubebuilder:default=OpenMPI
	// +optional
	MPIImplementation *MPIImplementation `json:"mpiImplementation,omitempty"`

	// sshAuthMountPath is where the keys are mounted. Defaults to /root/.ssh.
	// +kubebuilder:default="/root/.ssh"
	// +optional
	SSHAuthMountPath *string `json:"sshAuthMountPath,omitempty"`

	// runLauncherAsNode lets the launcher train too. Defaults to false.
	// +kubebuilder:default=false
	// +optional
	RunLauncherAsNode *bool `json:"runLauncherAsNode,omitempty"`
}

// FluxMLPolicySource configures Flux.
type FluxMLPolicySource struct {
	// numProcPerNode is how many processes run in each pod. Defaults to 1.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +optional
	NumProcPerNode *int32 `json:"numProcPerNode,omitempty"`
}

// JAXMLPolicySource configures JAX. There is nothing to set.
type JAXMLPolicySource struct{}

// XGBoostMLPolicySource configures XGBoost. There is nothing to set.
type XGBoostMLPolicySource struct{}
