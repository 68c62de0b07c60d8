// Package v1beta2 is TFJob as kubeflow.org/v1beta2 serves it, for the manifests of the first TensorFlow operators. Its schema is
// that of v1 and nothing is converted: the API server stores either as v1, and the operator sees v1 only.
//
// +kubebuilder:object:generate=true
// +groupName=kubeflow.org
package v1beta2
