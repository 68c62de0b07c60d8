// Package v1 is the kubeflow.org/v1 API: PyTorchJob and TFJob, as Training Operator 1.9 publishes it and older operators did.
//
// A job is a map of roles (Master, Worker, PS, …), each a pod template with a number of replicas, and a run policy: how often to
// retry, how long it may run, what to clean up, how long to keep it. Start with PyTorchJobSpec and LifecyclePolicy; JobStatus is
// what the controller answers. Everything a 1.9 client sends or expects has the same JSON here. Our own additions are status
// fields (old clients ignore them) and annotations (typed clients of others would drop unknown spec fields).
//
// Bad values are refused by the schema and the CEL rules that stand on the types below, so no webhook is needed. For the same
// reason nothing is defaulted in the stored object: SetDefaults fills a copy in memory, and whoever reads a job calls it first.
//
// +kubebuilder:object:generate=true
// +groupName=kubeflow.org
package v1
