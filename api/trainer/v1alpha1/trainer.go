package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
)

// Trainer overrides the runtime in the step that trains, for the container named node.
// +kubebuilder:validation:XValidation:rule="has(self.image) == has(oldSelf.image) && has(self.command) == has(oldSelf.command) && has(self.args) == has(oldSelf.args) && has(self.env) == has(oldSelf.env) && has(self.resourcesPerNode) == has(oldSelf.resourcesPerNode) && has(self.numProcPerNode) == has(oldSelf.numProcPerNode)",message="only numNodes of trainer can be changed: create a new job"
type Trainer struct {
	// image replaces the container's image. Unset keeps it.
	// +kubebuilder:validation:MaxLength=500
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="image cannot be changed: create a new job"
	// +optional
	Image *string `json:"image,omitempty"`

	// command replaces the container's command. Unset or empty keeps it.
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxLength=1048576
	// +listType=atomic
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="command cannot be changed: create a new job"
	// +optional
	Command []string `json:"command,omitempty"`

	// args replaces the container's arguments. Unset or empty keeps them.
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxLength=1048576
	// +listType=atomic
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="args cannot be changed: create a new job"
	// +optional
	Args []string `json:"args,omitempty"`

	// env is added to the container's environment and replaces variables of the same name.
	// +kubebuilder:validation:MaxItems=128
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="env cannot be changed: create a new job"
	// +optional
	Env []corev1.EnvVar `json:"env,omitempty"`

	// numNodes is how many pods train. Unset means the runtime's number. In an elastic job it is the current number, between minNodes
	// and maxNodes, which an autoscaler or kubectl scale changes; in any other job a change restarts all pods.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +optional
	NumNodes *int32 `json:"numNodes,omitempty"`

	// resourcesPerNode is merged over the container's resources, name by name. Unset keeps them.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="resourcesPerNode cannot be changed: create a new job"
	// +optional
	ResourcesPerNode *corev1.ResourceRequirements `json:"resourcesPerNode,omitempty"`

	// numProcPerNode is how many processes train in each pod. Unset leaves the choice to the framework: for torch, one per requested
	// GPU, else one per requested CPU.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="numProcPerNode cannot be changed: create a new job"
	// +optional
	NumProcPerNode *int32 `json:"numProcPerNode,omitempty"`
}

// Initializer is the data to fetch before the training.
type Initializer struct {
	// dataset is fetched by the step dataset-initializer of the runtime, which must have one.
	// +optional
	Dataset *DatasetInitializer `json:"dataset,omitempty"`

	// model is fetched by the step model-initializer of the runtime, which must have one.
	// +optional
	Model *ModelInitializer `json:"model,omitempty"`
}

// DatasetInitializer says where the dataset is.
type DatasetInitializer struct {
	Source `json:",inline"`
}

// ModelInitializer says where the model is.
type ModelInitializer struct {
	Source `json:",inline"`
}

// Source is where something is to be fetched from.
type Source struct {
	// storageUri is the address, with a scheme that the initializer knows: hf://user/name, s3://bucket/path. Unset or empty keeps what
	// the runtime says.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-zA-Z][a-zA-Z0-9+.-]*://.+)?$')",message="storageUri is an address with a scheme, as in hf://user/name or s3://bucket/path"
	// +optional
	StorageURI *string `json:"storageUri,omitempty"`

	// env is added to the initializer's environment and replaces variables of the same name.
	// +kubebuilder:validation:MaxItems=128
	// +listType=map
	// +listMapKey=name
	// +optional
	Env []corev1.EnvVar `json:"env,omitempty"`

	// secretRef names a Secret whose keys become variables of the initializer: the credentials of the storage.
	// +optional
	SecretRef *corev1.LocalObjectReference `json:"secretRef,omitempty"`
}
