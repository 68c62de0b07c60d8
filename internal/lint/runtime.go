package lint

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	trainer "github.com/trainyard/trainyard/api/trainer/v1alpha1"
	"github.com/trainyard/trainyard/internal/kinds/trainjob"
	"github.com/trainyard/trainyard/internal/runtimes"
)

// adviseRuntime finds what a TrainJob and its runtime get wrong together, which no API server sees.
func (c *checker) adviseRuntime() error {
	tj := &trainer.TrainJob{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(c.doc.Object.Object, tj); err != nil {
		return fmt.Errorf("reading the TrainJob: %w", err)
	}
	switch err := runtimes.Complete(trainjob.Kind{}, tj, c.file); {
	case errors.Is(err, runtimes.ErrNotFound):
		c.warn("spec.runtimeRef.name", "%v: the job waits until the cluster has it", err)
		return nil
	case err != nil:
		return err
	}
	if j := (trainjob.Kind{}).Read(tj).Job; j.Misfit != "" {
		c.add(Error, "spec.runtimeRef", "the job would fail at once: %s", j.Misfit)
	}
	return nil
}
