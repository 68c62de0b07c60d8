// Package v2beta1 is MPIJob as kubeflow.org/v2beta1 serves it, for the manifests of mpi-operator and for Kueue. Its schema is that of
// v1, but jobs get a path of their SSH keys by default. Nothing is converted: the API server stores either as v1, and the operator sees
// v1 only.
//
// +kubebuilder:object:generate=true
// +groupName=kubeflow.org
package v2beta1
