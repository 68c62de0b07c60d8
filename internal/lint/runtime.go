package lint

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	trainer "github.com/trainyard/trainyard/api/trainer/v1alpha1"
	"github.com/trainyard/trainyard/internal/document"
	"github.com/trainyard/trainyard/internal/kinds"
	"github.com/trainyard/trainyard/internal/runtimes"
)

// adviseRuntime finds why a TrainJob and its runtime cannot run together. No API server checks this before the operator creates pods.
func (c *checker) adviseRuntime(kind kinds.Kind, tj *trainer.TrainJob) error {
	if tj.Namespace == "" {
		tj.Namespace = metav1.NamespaceDefault
	}
	switch err := runtimes.Complete(kind, tj, c.file); {
	case errors.Is(err, runtimes.ErrNotFound):
		c.warn("spec.runtimeRef.name", "%v: the job waits until the cluster has it", err)
		return nil
	case err != nil:
		return nil // the runtime cannot be read: its own check reports why
	}
	m := kind.Read(tj)
	if m.Job.Invalid != "" {
		if path := "spec.runtimeRef"; !c.follows(path, m.Job.Invalid) {
			c.add(Error, path, "the job would fail at once: %s", m.Job.Invalid)
			c.depends()
		}
		return nil
	}
	return c.checkChildren(m, func(step, path string, pod *corev1.Pod) (*document.Document, string) {
		if own := ofTrainer(tj.Spec.Trainer, path, pod); own != "" && step == m.Leader.Role {
			return c.doc, own
		}
		return c.ofRuntime(tj, step, path)
	})
}

// adviseJobsOf finds why no TrainJob could run with a runtime. No API server checks this.
func (c *checker) adviseJobsOf() error {
	tj := &trainer.TrainJob{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: metav1.NamespaceDefault}}
	tj.Spec.RuntimeRef = trainer.RuntimeRef{Name: c.object.GetName(), Kind: new(c.object.GetKind())}
	kind := kinds.Of(trainer.GroupVersion.WithKind(trainer.TrainJobKind))
	if err := runtimes.Complete(kind, tj, []*document.Document{{Object: c.object}}); err != nil {
		return nil // it cannot be read: the schema's check reports why
	}
	invalid, path := kind.Read(tj).Job.Invalid, "spec"
	if strings.Contains(invalid, " mlPolicy.") {
		path = "spec.mlPolicy"
	}
	if invalid != "" && !c.follows(path, invalid) && len(c.problems) == 0 {
		c.add(Error, path, "every job of this runtime would fail at once: %s", invalid)
		c.depends()
	}
	return nil
}

// ofTrainer is the field of spec.trainer that a field of a pod comes from, empty where it comes from elsewhere.
func ofTrainer(t *trainer.Trainer, path string, pod *corev1.Pod) string {
	n := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == trainer.ContainerNode })
	rest, ok := strings.CutPrefix(path, fmt.Sprintf("spec.containers[%d].", n))
	if t == nil || !ok {
		return ""
	}
	switch field, below, _ := strings.Cut(rest, "."); {
	case field == "image" && t.Image != nil && *t.Image != "":
		return "spec.trainer.image"
	case field == "resources" && t.ResourcesPerNode != nil:
		return "spec.trainer.resourcesPerNode." + below
	default:
		for i, e := range t.Env {
			for j, given := range pod.Spec.Containers[n].Env {
				if field == fmt.Sprintf("env[%d]", j) && given.Name == e.Name {
					return fmt.Sprintf("spec.trainer.env[%d].%s", i, below)
				}
			}
		}
	}
	return ""
}

// ofRuntime is the field of the job's runtime, where that is in the file.
func (c *checker) ofRuntime(tj *trainer.TrainJob, step, path string) (*document.Document, string) {
	for _, doc := range c.file {
		if doc.Object.GetName() != tj.Spec.RuntimeRef.Name || doc.Object.GetKind() != tj.Status.Runtime.Kind {
			continue
		}
		steps, _, _ := unstructured.NestedSlice(doc.Object.Object, "spec", "template", "spec", "replicatedJobs")
		for i, s := range steps {
			if s, ok := s.(map[string]any); ok && s["name"] == step {
				return doc, fmt.Sprintf("spec.template.spec.replicatedJobs[%d].template.spec.template.%s", i, path)
			}
		}
	}
	return nil, ""
}
