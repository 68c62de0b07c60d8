package controller_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/kinds"
)

// theirExample is a job that Training Operator publishes beside its code.
type theirExample struct {
	file string
	job  kubeflowv1.Job
}

func theirExamples(t *testing.T) []theirExample {
	t.Helper()
	folder := examplesOf(t, "github.com/kubeflow/training-operator")
	var all []theirExample
	err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, err := filepath.Rel(folder, path)
		for document := range strings.SplitSeq(string(text), "\n---") {
			if job := theirJob(t, document); job != nil {
				all = append(all, theirExample{file, job})
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// theirJob is a document as a job, nil if it is something else, such as a volume.
func theirJob(t *testing.T, document string) kubeflowv1.Job {
	t.Helper()
	var is struct{ Kind string }
	if err := yaml.Unmarshal([]byte(document), &is); err != nil {
		t.Fatal(err)
	}
	for _, kind := range kinds.All {
		job, ok := kind.New().(kubeflowv1.Job)
		if !ok || kind.Name() != is.Kind {
			continue
		}
		if err := yaml.Unmarshal([]byte(document), job); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		return job
	}
	return nil
}

// here is what this machine runs of an example: a short program instead of the image's, without the GPUs and volumes of their cluster.
// mpirun starts it where it was to start the training.
func (e theirExample) here(number int) kubeflowv1.Job {
	e.job.SetNamespace("")
	e.job.SetName(fmt.Sprintf("%s-%d", e.job.GetName(), number))
	for role, spec := range specsOf(e.job) {
		pod := &spec.Template.Spec
		for i := range pod.Volumes {
			pod.Volumes[i].VolumeSource = corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
		}
		for i := range pod.Containers {
			c := &pod.Containers[i]
			isServer := strings.EqualFold(string(role), "Worker") && len(c.Command) == 0 && e.job.Parts().Layout.Kind == kubeflowv1.MPIJobKind
			c.Resources = corev1.ResourceRequirements{}
			switch {
			case isServer:
			case e.job.Parts().Layout.Kind == kubeflowv1.MPIJobKind:
				c.Command, c.Args = []string{"mpirun", "hostname"}, nil
			default:
				c.Command, c.Args = []string{"sh", "-c", "hostname"}, nil
			}
		}
	}
	return e.job
}

// Every example of Training Operator 1.9, of all its kinds, runs to its end.
func TestTheExamplesOfTrainingOperatorRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ran := map[string]int{}
	for i, example := range theirExamples(t) {
		job := example.here(i)
		ran[job.Parts().Layout.Kind]++
		w.row(example.file, func(w *world) {
			j := w.submit(job)
			if s := j.becomes(kubeflowv1.JobSucceeded); s.Retries+s.Disruptions != 0 {
				w.Errorf("the status is\n%s", describe(s))
			}
			if err := w.client.Delete(w.t.Context(), job); client.IgnoreNotFound(err) != nil {
				w.Error(err)
			}
		})
	}
	for _, kind := range kinds.All {
		if _, ok := kind.New().(kubeflowv1.Job); ok && ran[kind.Name()] == 0 {
			t.Errorf("there is no %s among the examples: %v", kind.Name(), ran)
		}
	}
}
