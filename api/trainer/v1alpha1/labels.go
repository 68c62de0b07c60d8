package v1alpha1

// Labels of runtimes and of the steps in them.
const (
	// LabelFramework on a runtime names what it trains with, e.g. torch. The Kubeflow SDK lists only runtimes that have it.
	LabelFramework = "trainer.kubeflow.org/framework"
	// LabelAncestorStep on the Job template of a step tells which part of a TrainJob it takes: one of the steps below.
	LabelAncestorStep = "trainer.kubeflow.org/trainjob-ancestor-step"
)

// The steps that a TrainJob speaks of.
const (
	// StepTrainer is the training itself.
	StepTrainer = "trainer"
	// StepDataset fetches the dataset before.
	StepDataset = "dataset-initializer"
	// StepModel fetches the model before.
	StepModel = "model-initializer"
)

// Names that Trainer gives to what a TrainJob speaks of.
const (
	// ContainerNode is the container that trains. Those of the initializers are named as their steps.
	ContainerNode = "node"
	// EnvStorageURI tells an initializer where its data is.
	EnvStorageURI = "STORAGE_URI"
	// TorchPort is where torch's processes meet.
	TorchPort int32 = 29500
)

// ManagedByTrainer is the name in managedBy that this operator answers to. For MultiKueue's name see package kubeflow/v1.
const ManagedByTrainer = "trainer.kubeflow.org/trainjob-controller"
