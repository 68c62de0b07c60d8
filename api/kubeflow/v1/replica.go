package v1

import (
	corev1 "k8s.io/api/core/v1"
)

// ReplicaType is the name of a role: Master or Worker in a PyTorchJob; Chief, Master, PS, Worker or Evaluator in a TFJob.
type ReplicaType string

// RestartPolicy says what happens when a replica fails.
// +kubebuilder:validation:Enum=Always;OnFailure;Never;ExitCode
type RestartPolicy string

const (
	// RestartPolicyAlways restarts a replica that failed, as OnFailure.
	RestartPolicyAlways RestartPolicy = "Always"
	// RestartPolicyOnFailure restarts a replica that failed.
	RestartPolicyOnFailure RestartPolicy = "OnFailure"
	// RestartPolicyNever fails the job when a replica fails.
	RestartPolicyNever RestartPolicy = "Never"
	// RestartPolicyExitCode restarts after exit codes 128 to 255 and fails the job after 1 to 127.
	RestartPolicyExitCode RestartPolicy = "ExitCode"
)

// ReplicaSpec is one role of a job: a pod template and how many pods of it run.
// +kubebuilder:validation:XValidation:rule="self.?replicas.orValue(1) == 0 || self.?template.?spec.?containers.orValue([]).size() > 0",message="template.spec.containers is empty: add the container that trains"
type ReplicaSpec struct {
	// replicas is how many pods of this role run. Defaults to 1; 0 means that the job has no such role. It may be changed while the
	// job runs, which scales it.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// template is the pod that each replica runs. Its restartPolicy is replaced by the one of this role. A change takes effect with the
	// next attempt.
	// +optional
	Template corev1.PodTemplateSpec `json:"template,omitzero"`

	// restartPolicy says what happens when a replica fails: OnFailure and Always restart it, Never fails the job, ExitCode
	// restarts it after exit codes 128 to 255 and fails the job after 1 to 127. Defaults to OnFailure in a PyTorchJob and to Never in a
	// TFJob. It may be changed at any time.
	// +optional
	RestartPolicy RestartPolicy `json:"restartPolicy,omitempty"`
}
