package v1

// Our own annotation keys. Labels are in package naming.
const (
	// AnnotationRestartScope on a job overrides what a failure restarts: Job (all replicas) or Replica (the failed one).
	AnnotationRestartScope = "trainyard.dev/restart-scope"
	// AnnotationRestartPolicy on a job overrides the restart policy of every role: Never, OnFailure, Always or ExitCode. It is for
	// jobs created by a tool that has no field for it, such as Flyte's Elastic.
	AnnotationRestartPolicy = "trainyard.dev/restart-policy"
	// AnnotationTTL on a job is how many seconds after its end it is deleted, where its spec does not say so: a number from 0. Unlike
	// a TrainJob's ttlSecondsAfterFinished it survives clients of Trainer, which do not know that field.
	AnnotationTTL = "trainyard.dev/ttl-seconds-after-finished"
	// AnnotationMaxDisruptions on a job is how many disruptions it survives: a number from 0. Without it any number.
	AnnotationMaxDisruptions = "trainyard.dev/max-disruptions"
	// AnnotationFinishWithin on a job is how long Workers that still train may go on when the Master has succeeded: a duration such
	// as 90s or 5m. Without it 30s.
	AnnotationFinishWithin = "trainyard.dev/finish-within"
	// AnnotationAvoidNodes on a job says how pods are kept from nodes that failed it: Prefer (other nodes; the default),
	// Require (other nodes, while few are avoided and the pods find a node within five minutes) or Off.
	AnnotationAvoidNodes = "trainyard.dev/avoid-nodes"
	// AnnotationOnNodeMaintenance on a job says what to do when one of its nodes is about to be drained or maintained: Move (restart
	// elsewhere now, before its pods are stopped there) or Stay (the default). Move needs avoid-nodes other than Off.
	AnnotationOnNodeMaintenance = "trainyard.dev/on-node-maintenance"
)

// Controllers that runPolicy.managedBy may name.
const (
	// ManagedByTrainingOperator is the name of this operator. It is also what an unset managedBy means.
	ManagedByTrainingOperator = "kubeflow.org/training-operator"
	// ManagedByMultiKueue leaves the job to MultiKueue, which runs it on another cluster.
	ManagedByMultiKueue = "kueue.x-k8s.io/multikueue"
)
