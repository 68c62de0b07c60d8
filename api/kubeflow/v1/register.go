package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of this package.
var GroupVersion = schema.GroupVersion{Group: "kubeflow.org", Version: "v1"}

var builder = runtime.NewSchemeBuilder(addKnownTypes)

// AddToScheme makes a scheme know the kinds of this package.
var AddToScheme = builder.AddToScheme

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &PyTorchJob{}, &PyTorchJobList{}, &TFJob{}, &TFJobList{}, &JAXJob{}, &JAXJobList{}, &XGBoostJob{}, &XGBoostJobList{},
		&PaddleJob{}, &PaddleJobList{}, &MPIJob{}, &MPIJobList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
