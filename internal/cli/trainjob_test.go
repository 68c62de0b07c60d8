package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A TrainJob is run from its file, with the logs of every step, and suspended, scaled and resumed as any other job is.
func TestATrainJobIsServedAsAnyOtherJob(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	text, err := os.ReadFile("../../examples/trainjob/steps.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "steps.yaml")
	manifest := strings.ReplaceAll(string(text), "/tmp/fine-tuning", t.TempDir())
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	d.expect(d.types("run", "-f", file), 0, "TrainJob steps is submitted", "fetched hf://tatsu-lab/alpaca", "node 0 of 2 trains", "node 1 of 2 trains", "steps succeeded")

	waits := fmt.Sprintf("kind: TrainJob\napiVersion: trainer.kubeflow.org/v1alpha1\nmetadata: {name: waits, namespace: %s}\nspec: {runtimeRef: {name: none-such}}", d.Namespace)
	d.Apply(waits)
	d.Await("does not exist", "get", "trainjob", "waits", "-o", "jsonpath={.status.message}")
	d.expect(d.types("why", "waits"), 0, "It waits: the ClusterTrainingRuntime none-such does not exist")
	d.expect(d.types("suspend", "waits"), 0, "waits is suspended")
	d.expect(d.types("scale", "waits", "2"), 0, "waits is scaled to 2")
	d.expect(d.types("resume", "waits"), 0, "waits is resumed")
	d.Await("false 2", "get", "trainjob", "waits", "-o", "jsonpath={.spec.suspend} {.spec.trainer.numNodes}")
}
