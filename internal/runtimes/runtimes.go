// Package runtimes has the runtimes that come with this program, and finds the runtime of a TrainJob without a cluster.
package runtimes

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	trainer "github.com/trainyard/trainyard/api/trainer/v1alpha1"
	"github.com/trainyard/trainyard/config"
	"github.com/trainyard/trainyard/internal/document"
	"github.com/trainyard/trainyard/internal/kinds"
	"github.com/trainyard/trainyard/internal/manifest"
)

// ErrNotFound says that a runtime is neither in the file nor comes with this program.
var ErrNotFound = errors.New("it is neither in this file nor among the runtimes of trainyard")

// names are those of the runtimes that come with this program. Each is a file of config/runtimes.
var names = []string{"torch-distributed", "torch-elastic", "mpi-distributed"}

// Shipped are the runtimes that come with this program.
func Shipped() ([]*trainer.ClusterTrainingRuntime, error) {
	var all []*trainer.ClusterTrainingRuntime
	for _, name := range names {
		text, err := config.Files.ReadFile("runtimes/" + name + ".yaml")
		if err != nil {
			return nil, fmt.Errorf("reading the shipped runtimes: %w", err)
		}
		r := &trainer.ClusterTrainingRuntime{}
		if err := yaml.UnmarshalStrict(text, r); err != nil {
			return nil, fmt.Errorf("reading the shipped runtime %s: %w", name, err)
		}
		all = append(all, r)
	}
	return all, nil
}

// ForSDK are the objects that the Kubeflow SDK looks for on a cluster that runs TrainJobs, besides the runtimes.
func ForSDK() ([]*document.Document, error) {
	const file = "runtimes/kubeflow-sdk.yaml"
	text, err := config.Files.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading what the Kubeflow SDK looks for: %w", err)
	}
	return document.Parse(file, string(text))
}

// Complete gives a job its runtime: from the same file, else from those that come with this program. A job of a kind without runtimes
// stays as it is.
func Complete(kind kinds.Kind, job manifest.Object, file []*document.Document) error {
	based, ok := kind.(kinds.Based)
	if !ok {
		return nil
	}
	base := based.Wants(job)
	if base == nil {
		return nil
	}
	found, err := find(base, file)
	if err != nil {
		return err
	}
	return based.Take(job, found)
}

func find(wanted manifest.Object, file []*document.Document) (manifest.Object, error) {
	_, clusterWide := wanted.(*trainer.ClusterTrainingRuntime)
	kind := trainer.TrainingRuntimeKind
	if clusterWide {
		kind = trainer.ClusterTrainingRuntimeKind
	}
	for _, doc := range file {
		if doc.Object.GetKind() == kind && doc.Object.GetName() == wanted.GetName() {
			err := runtime.DefaultUnstructuredConverter.FromUnstructured(doc.Object.Object, wanted)
			return wanted, err
		}
	}
	shipped, err := Shipped()
	if err != nil {
		return nil, err
	}
	for _, r := range shipped {
		if clusterWide && r.Name == wanted.GetName() {
			return r, nil
		}
	}
	return nil, fmt.Errorf("there is no %s %s: %w", kind, wanted.GetName(), ErrNotFound)
}
