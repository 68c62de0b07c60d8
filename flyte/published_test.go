package flyte

import (
	"os"
	"path/filepath"
	"testing"

	published "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// TestManifestsAreTheOnesFlyteSends: Flyte builds jobs from Training Operator's published types, so those must hold every field
// of ours.
func TestManifestsAreTheOnesFlyteSends(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "render", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("found %d manifests (error %v)", len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var kind struct{ Kind string }
		if err := yaml.Unmarshal(data, &kind); err != nil {
			t.Fatal(err)
		}
		job := map[string]runtime.Object{
			published.PyTorchJobKind: &published.PyTorchJob{}, published.TFJobKind: &published.TFJob{}, published.MPIJobKind: &published.MPIJob{},
		}[kind.Kind]
		if err := yaml.UnmarshalStrict(data, job); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}
