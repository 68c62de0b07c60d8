package v1alpha1

// Labels of runtimes and of the steps in them.
const (
	// LabelFramework on a runtime names what it trains with, e.g. torch. The Kubeflow SDK lists only runtimes that have it.
	LabelFramework = "trainer.kubeflow.org/framework"
	// LabelAncestorStep on the Job template of a step says which part of a TrainJob applies to it: one of the steps below.
	LabelAncestorStep = "trainer.kubeflow.org/trainjob-ancestor-step"
)

// The steps that a TrainJob can refer to.
const (
	// StepTrainer is the training itself.
	StepTrainer = "trainer"
	// StepDataset fetches the dataset before the training.
	StepDataset = "dataset-initializer"
	// StepModel fetches the model before the training.
	StepModel = "model-initializer"
)

// Names that Trainer uses in the pods of a TrainJob.
const (
	// ContainerNode is the container that trains. Those of the initializers are named as their steps.
	ContainerNode = "node"
	// EnvStorageURI is the variable with the address of an initializer's data.
	EnvStorageURI = "STORAGE_URI"
	// TrainerPort is the port at which the nodes of a job meet.
	TrainerPort int32 = 29500
)

// ManagedByTrainer is the name in managedBy of this operator. For MultiKueue's name see package kubeflow/v1.
const ManagedByTrainer = "trainer.kubeflow.org/trainjob-controller"
