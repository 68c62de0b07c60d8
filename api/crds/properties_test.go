package crds_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// kubernetesTypes is the properties whose types are Kubernetes' own and therefore described there.
var kubernetesTypes = map[string]bool{
	"template": true, "metrics": true, "labelSelector": true, "env": true, "secretRef": true, "resourcesPerNode": true,
}

func TestEveryFieldIsDescribedByItsName(t *testing.T) {
	for _, crd := range all(t) {
		for _, version := range crd.Spec.Versions {
			root := *version.Schema.OpenAPIV3Schema
			for _, name := range []string{"spec", "status"} {
				if property, has := root.Properties[name]; has || name == "spec" {
					described(t, crd.Spec.Names.Kind+"."+version.Name, name, property)
				}
			}
		}
	}
}

func described(t *testing.T, parent, name string, property apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	path := parent + "." + name
	if !strings.HasPrefix(property.Description, name+" ") {
		t.Errorf("%s: the description should begin with %q: %q", path, name, property.Description)
	}
	if kubernetesTypes[name] {
		return
	}
	for _, below := range []apiextensionsv1.JSONSchemaProps{property, items(property), additional(property)} {
		for name, property := range below.Properties {
			described(t, path, name, property)
		}
	}
}

func items(property apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
	if property.Items == nil || property.Items.Schema == nil {
		return apiextensionsv1.JSONSchemaProps{}
	}
	return *property.Items.Schema
}

func additional(property apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
	if property.AdditionalProperties == nil || property.AdditionalProperties.Schema == nil {
		return apiextensionsv1.JSONSchemaProps{}
	}
	return *property.AdditionalProperties.Schema
}

func TestEveryKindOfJobShowsTheSameColumns(t *testing.T) {
	for _, crd := range all(t) {
		for _, version := range crd.Spec.Versions {
			if _, isJob := version.Schema.OpenAPIV3Schema.Properties["status"]; !isJob {
				continue
			}
			var usual, wide []string
			for _, column := range version.AdditionalPrinterColumns {
				if column.Priority == 0 {
					usual = append(usual, column.Name)
				} else {
					wide = append(wide, column.Name)
				}
			}
			if diff := cmp.Diff([]string{"State", "Ready", "Restarts", "Age"}, usual); diff != "" {
				t.Errorf("%s %s: columns (-want +got):\n%s", crd.Name, version.Name, diff)
			}
			if diff := cmp.Diff([]string{"Message"}, wide); diff != "" {
				t.Errorf("%s %s: wide columns (-want +got):\n%s", crd.Name, version.Name, diff)
			}
		}
	}
}

func TestTFJobIsServedInTwoVersionsThatAreAlike(t *testing.T) {
	crd := named(t, "tfjobs.kubeflow.org")
	if len(crd.Spec.Versions) != 2 {
		t.Fatalf("%d versions, want v1 and v1beta2", len(crd.Spec.Versions))
	}
	v1, v1beta2 := crd.Spec.Versions[0], crd.Spec.Versions[1]
	if v1.Name != "v1" || !v1.Served || !v1.Storage {
		t.Errorf("%s: served %v, stored %v; want v1 served and stored", v1.Name, v1.Served, v1.Storage)
	}
	if v1beta2.Name != "v1beta2" || !v1beta2.Served || v1beta2.Storage {
		t.Errorf("%s: served %v, stored %v; want v1beta2 served only", v1beta2.Name, v1beta2.Served, v1beta2.Storage)
	}
	if crd.Spec.Conversion != nil && crd.Spec.Conversion.Strategy != apiextensionsv1.NoneConverter {
		t.Errorf("conversion is %s, want None", crd.Spec.Conversion.Strategy)
	}
	v1beta2.Name, v1beta2.Storage = v1.Name, v1.Storage
	if diff := cmp.Diff(v1, v1beta2); diff != "" {
		t.Errorf("the versions differ (-v1 +v1beta2):\n%s", diff)
	}
}

func TestPyTorchJobScalesItsWorkers(t *testing.T) {
	selector := ".status.replicaStatuses.Worker.selector"
	want := &apiextensionsv1.CustomResourceSubresourceScale{
		SpecReplicasPath:   ".spec.pytorchReplicaSpecs.Worker.replicas",
		StatusReplicasPath: ".status.replicaStatuses.Worker.active",
		LabelSelectorPath:  &selector,
	}
	if diff := cmp.Diff(want, named(t, "pytorchjobs.kubeflow.org").Spec.Versions[0].Subresources.Scale); diff != "" {
		t.Errorf("scale (-want +got):\n%s", diff)
	}
}

func TestTrainJobScalesItsNodes(t *testing.T) {
	selector := ".status.selector"
	want := &apiextensionsv1.CustomResourceSubresourceScale{
		SpecReplicasPath: ".spec.trainer.numNodes", StatusReplicasPath: ".status.nodes", LabelSelectorPath: &selector,
	}
	if diff := cmp.Diff(want, named(t, "trainjobs.trainer.kubeflow.org").Spec.Versions[0].Subresources.Scale); diff != "" {
		t.Errorf("scale (-want +got):\n%s", diff)
	}
}

func named(t *testing.T, name string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	for _, crd := range all(t) {
		if crd.Name == name {
			return crd
		}
	}
	t.Fatalf("no definition is named %s", name)
	return nil
}
