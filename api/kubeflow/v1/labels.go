package v1

// Labels that every pod and Service of a job carries, as Training Operator 1.9 sets them.
const (
	// LabelOperatorName tells which controller made the object, e.g. pytorchjob-controller.
	LabelOperatorName = "training.kubeflow.org/operator-name"
	// LabelJobName is the name of the job.
	LabelJobName = "training.kubeflow.org/job-name"
	// LabelReplicaType is the role in lower case, e.g. worker.
	LabelReplicaType = "training.kubeflow.org/replica-type"
	// LabelReplicaIndex is the index of the replica within its role, from 0.
	LabelReplicaIndex = "training.kubeflow.org/replica-index"
	// LabelJobRole is "master" on the pod that leads the job, and absent on the others.
	LabelJobRole = "training.kubeflow.org/job-role"
)

// Our own label and annotation keys.
const (
	// LabelAttempt is the number of the attempt a pod belongs to, from 0.
	LabelAttempt = "trainyard.dev/attempt"
	// AnnotationRestartScope on a job overrides what a failure restarts: Job (everyone) or Replica (the failed one).
	AnnotationRestartScope = "trainyard.dev/restart-scope"
	// AnnotationRestartPolicy on a job overrides the restart policy of every role: Never, OnFailure, Always or ExitCode. It is for
	// jobs that something makes which has no field for it, such as Flyte's Elastic.
	AnnotationRestartPolicy = "trainyard.dev/restart-policy"
)

// Controllers that runPolicy.managedBy may name.
const (
	// ManagedByTrainingOperator is the name this operator answers to. It is also what an unset managedBy means.
	ManagedByTrainingOperator = "kubeflow.org/training-operator"
	// ManagedByMultiKueue leaves the job to MultiKueue, which runs it on another cluster.
	ManagedByMultiKueue = "kueue.x-k8s.io/multikueue"
)
