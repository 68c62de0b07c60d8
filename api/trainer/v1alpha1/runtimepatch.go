package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RuntimePatch is what one manager changes in the runtime for this job.
type RuntimePatch struct {
	// manager says whose patch it is, as a path below a domain: kueue.x-k8s.io/manager. There is one entry for each.
	// +kubebuilder:validation:MaxLength=316
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/.+$')",message="manager is a path below a domain, as in kueue.x-k8s.io/manager"
	// +required
	Manager string `json:"manager,omitempty"`

	// time is when the manager last changed its patch, for people to read.
	// +optional
	Time *metav1.Time `json:"time,omitempty"`

	// trainingRuntimeSpec is merged over the runtime's spec, as kubectl patch merges: lists of named things by their names.
	// +optional
	TrainingRuntimeSpec *TrainingRuntimeSpecPatch `json:"trainingRuntimeSpec,omitempty"`
}

// TrainingRuntimeSpecPatch is the part of a runtime that can be patched.
type TrainingRuntimeSpecPatch struct {
	// template is merged over the runtime's template. Steps and containers must exist there.
	// +optional
	Template *JobSetTemplatePatch `json:"template,omitempty"`
}

// JobSetTemplatePatch changes a runtime's template.
type JobSetTemplatePatch struct {
	// metadata is added to every pod's labels and annotations.
	// +optional
	Metadata *MetadataPatch `json:"metadata,omitempty"`

	// spec changes the steps.
	// +optional
	Spec *JobSetSpecPatch `json:"spec,omitempty"`
}

// MetadataPatch is labels and annotations. Trainer stores the other fields, too.
type MetadataPatch struct {
	// name is stored and has no effect.
	// +optional
	Name string `json:"name,omitempty"`

	// namespace is stored and has no effect.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// finalizers are added to the pods' finalizers if they are those of a pod template. On other levels they have no effect.
	// +optional
	Finalizers []string `json:"finalizers,omitempty"`

	// labels are added to the existing labels.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// annotations are added to the existing annotations.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// JobSetSpecPatch changes the steps of a runtime.
type JobSetSpecPatch struct {
	// replicatedJobs is the steps to change, by their names.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	ReplicatedJobs []ReplicatedJobPatch `json:"replicatedJobs,omitempty"`
}

// ReplicatedJobPatch changes one step.
type ReplicatedJobPatch struct {
	// name is the step's name in the runtime.
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name,omitempty"`

	// template changes the step's Job template.
	// +optional
	Template *JobTemplatePatch `json:"template,omitempty"`
}

// JobTemplatePatch changes a step's Job template.
type JobTemplatePatch struct {
	// metadata is added to the labels and annotations of the step's pods.
	// +optional
	Metadata *MetadataPatch `json:"metadata,omitempty"`

	// spec changes the step's pods.
	// +optional
	Spec *JobSpecPatch `json:"spec,omitempty"`
}

// JobSpecPatch changes the pods of a step.
type JobSpecPatch struct {
	// template changes the step's pod template.
	// +optional
	Template *PodTemplatePatch `json:"template,omitempty"`
}

// PodTemplatePatch changes a pod template.
type PodTemplatePatch struct {
	// metadata is added to the pods' labels and annotations.
	// +optional
	Metadata *MetadataPatch `json:"metadata,omitempty"`

	// spec changes the pods.
	// +optional
	Spec *PodSpecPatch `json:"spec,omitempty"`
}

// PodSpecPatch is the part of a pod that can be patched.
type PodSpecPatch struct {
	// serviceAccountName replaces the service account the pods run as.
	// +optional
	ServiceAccountName *string `json:"serviceAccountName,omitempty"`

	// volumes are added to the volumes and replace those of the same name.
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=name
	// +optional
	Volumes []corev1.Volume `json:"volumes,omitempty"`

	// initContainers changes init containers, by their names.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	InitContainers []ContainerPatch `json:"initContainers,omitempty"`

	// containers changes containers, by their names.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(c, !(c.name in ['node', 'dataset-initializer', 'model-initializer']) || !has(c.env))",message="the environment of node, dataset-initializer and model-initializer is set in spec.trainer.env and spec.initializer: move it there"
	// +listType=map
	// +listMapKey=name
	// +optional
	Containers []ContainerPatch `json:"containers,omitempty"`

	// imagePullSecrets are added to the secrets with which images are pulled.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// securityContext is merged over the pods' security context.
	// +optional
	SecurityContext *corev1.PodSecurityContext `json:"securityContext,omitempty"`

	// terminationGracePeriodSeconds replaces how long the pods may take to stop.
	// +kubebuilder:validation:Minimum=0
	// +optional
	TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds,omitempty"`

	// nodeSelector adds labels that a node must have.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// affinity is merged over the pods' affinity.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// tolerations replaces the pods' tolerations.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// schedulingGates adds gates that must be removed before the pods are scheduled.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	SchedulingGates []corev1.PodSchedulingGate `json:"schedulingGates,omitempty"`
}

// ContainerPatch changes one container.
type ContainerPatch struct {
	// name is the container's name.
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name,omitempty"`

	// env is added to the container's environment and replaces variables of the same name.
	// +kubebuilder:validation:MaxItems=128
	// +listType=map
	// +listMapKey=name
	// +optional
	Env []corev1.EnvVar `json:"env,omitempty"`

	// volumeMounts are added to the container's mounts and replace those at the same path.
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=mountPath
	// +optional
	VolumeMounts []corev1.VolumeMount `json:"volumeMounts,omitempty"`

	// securityContext is merged over the container's security context.
	// +optional
	SecurityContext *corev1.SecurityContext `json:"securityContext,omitempty"`
}
