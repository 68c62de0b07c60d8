package crds_test

import (
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"

	"github.com/trainyard/trainyard/api/crds"
)

// The API server estimates the cost of every CEL rule when a definition is installed, and this is that check too.
func TestTheAPIServerAcceptsEveryDefinition(t *testing.T) {
	for _, crd := range all(t) {
		t.Run(crd.Name, func(t *testing.T) {
			apiextensionsv1.SetDefaults_CustomResourceDefinition(crd)
			apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
			internal := &apiextensions.CustomResourceDefinition{}
			if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd, internal, nil); err != nil {
				t.Fatal(err)
			}
			for _, version := range crd.Spec.Versions {
				if version.Storage {
					internal.Status.StoredVersions = []string{version.Name}
				}
			}
			for _, err := range validation.ValidateCustomResourceDefinition(t.Context(), internal) {
				t.Error(err)
			}
		})
	}
}

func all(t *testing.T) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	definitions, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	if len(definitions) == 0 {
		t.Fatal("no definition is embedded")
	}
	return definitions
}

// The installer goes by the files' names.
func TestTheFilesAreNamedAfterWhatTheyDefine(t *testing.T) {
	for i, resource := range crds.Resources() {
		if crd := all(t)[i]; crd.Name != resource.String() {
			t.Errorf("%s defines %s", crds.File(resource), crd.Name)
		}
	}
}
