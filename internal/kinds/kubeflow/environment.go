package kubeflow

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// Variables are those of an environment, in their order.
type Variables []corev1.EnvVar

// Set adds a value under one or several names.
func (v *Variables) Set(value string, names ...string) {
	for _, name := range names {
		*v = append(*v, corev1.EnvVar{Name: name, Value: value})
	}
}

// SetNumber adds a number under one or several names.
func (v *Variables) SetNumber(value int32, names ...string) {
	v.Set(strconv.Itoa(int(value)), names...)
}
