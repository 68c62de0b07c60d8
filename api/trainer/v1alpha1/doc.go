// Package v1alpha1 is the trainer.kubeflow.org/v1alpha1 API as Kubeflow Trainer 2.3 publishes it: TrainJob, and the
// TrainingRuntime or ClusterTrainingRuntime it is made from.
//
// A runtime is a blueprint that an administrator writes: the pods of each step, in JobSet's words, and how they are told of each
// other. A TrainJob names one and adds what differs: image, command, numbers, data. Everything a client of Trainer sends or expects
// has the same JSON here. Ours are torch's elasticPolicy, ttlSecondsAfterFinished, runPolicy on runtimes, the scale subresource, and
// the status fields that all our kinds have.
//
// Bad values are refused by the schema and the CEL rules that stand on the types. What only a job and its runtime together can get
// wrong fails the job with a sentence.
//
// +kubebuilder:object:generate=true
// +groupName=trainer.kubeflow.org
package v1alpha1
