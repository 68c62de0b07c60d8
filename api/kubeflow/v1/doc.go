// Package v1 is the kubeflow.org/v1 API: PyTorchJob and TFJob, as Training Operator 1.9 publishes it and older operators did.
//
// A job is a map of roles (Master, Worker, PS, …), each a pod template with a number of replicas, and a run policy: how often to
// retry, how long it may run, what to clean up, how long to keep it. Start with PyTorchJobSpec and LifecyclePolicy; JobStatus is
// what the controller writes. Everything a 1.9 client sends or expects has the same JSON here. We add only status fields, which
// old clients ignore, and annotations, because typed clients drop spec fields that they do not know.
//
// The schema and the CEL rules on the types below refuse invalid values, so no webhook is needed. For the same reason nothing is
// defaulted in the stored object: SetDefaults fills a copy in memory, and every reader of a job calls it first.
//
// +kubebuilder:object:generate=true
// +groupName=kubeflow.org
package v1
