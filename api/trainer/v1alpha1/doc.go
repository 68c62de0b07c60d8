// Package v1alpha1 is the trainer.kubeflow.org/v1alpha1 API as Kubeflow Trainer 2.3 publishes it: TrainJob, and the
// TrainingRuntime or ClusterTrainingRuntime it refers to.
//
// A runtime is a template that an administrator writes: the pods of each step, in JobSet's schema, and how they find each other. A
// TrainJob names a runtime and sets what differs: image, command, numbers, data. Everything a client of Trainer sends or expects has
// the same JSON here. We add torch's elasticPolicy, ttlSecondsAfterFinished, runPolicy on runtimes, the scale subresource, and the
// status fields that all our kinds have.
//
// The schema and the CEL rules on the types refuse invalid values. A job that does not fit its runtime fails, and its status says
// why.
//
// +kubebuilder:object:generate=true
// +groupName=trainer.kubeflow.org
package v1alpha1
