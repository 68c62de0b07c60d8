package lint

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/core"
	defaults "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/validation"

	"github.com/trainyard/trainyard/internal/document"
	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/kinds"
	"github.com/trainyard/trainyard/internal/kinds/kubeflow"
	"github.com/trainyard/trainyard/internal/manifest"
)

// origin is where a field of a role's pod comes from: a field of an object in the file, nil where no object has it.
type origin func(role, path string, pod *corev1.Pod) (*document.Document, string)

// checkChildren finds which children of a job the API server would reject, by Kubernetes' own code. The replicas of a role are
// alike, so it checks only the first.
func (c *checker) checkChildren(m *manifest.Manifest, of origin) error {
	if role, found := m.Job.TooManyReplicas(); found {
		c.warn(c.sizeOf(role.Name), "%d replicas are more than any cluster runs, and what would be made for them is not checked: use at most %d", m.Job.Size(role), job.MaxReplicas)
		return nil
	}
	m.Job.UID = "uid" // only a cluster sets it
	if slices.ContainsFunc(c.problems, func(p Problem) bool { return p.Severity == Error }) {
		m.Env = func(job.Replica, int32) manifest.Env { return manifest.Env{} } // the environment is defined only for valid jobs
	}
	if err := c.checkAutoscaler(m); err != nil {
		return err
	}
	known := slices.Clone(c.problems)
	for _, role := range m.Job.Roles {
		if m.Job.Size(role) == 0 {
			continue
		}
		pod := m.Pod(job.Replica{Role: role.Name}, 0)
		refusals, err := podRefusals(pod)
		if err != nil {
			return err
		}
		for _, e := range refusals {
			c.refusedChild(e, role.Name, pod, of, known)
		}
	}
	if len(c.problems) > len(known) {
		return nil // the Services' ports and names come from the pods
	}
	for _, child := range m.Children() {
		service, is := child.Object.(*corev1.Service)
		if !is {
			continue
		}
		refusals, err := serviceRefusals(service)
		if err != nil {
			return err
		}
		for _, e := range refusals {
			if message := messageOf(e); !slices.ContainsFunc(known, func(p Problem) bool { return p.covers("metadata.name") }) {
				c.add(Error, "metadata.name", "the Service %s would be rejected: %s: %s", service.Name, e.Field, message)
				c.depends()
			}
		}
	}
	return nil
}

// sizeOf is where an object says how many replicas a role has.
func (c *checker) sizeOf(role string) string {
	kind, ok := kinds.Of(c.object.GroupVersionKind()).(kubeflow.Kind)
	if !ok {
		return "spec.trainer.numNodes"
	}
	roles, _, _ := unstructured.NestedMap(c.object.Object, "spec", kind.Layout.ReplicaSpecs)
	for written := range roles {
		if strings.EqualFold(written, role) {
			role = written
		}
	}
	return fmt.Sprintf("spec.%s.%s.replicas", kind.Layout.ReplicaSpecs, role)
}

func (c *checker) refusedChild(e *field.Error, role string, pod *corev1.Pod, of origin, known []Problem) {
	message := messageOf(e)
	doc, path := of(role, e.Field, pod)
	if doc != nil {
		message = asWritten(message, e, doc.Written(path))
	}
	switch {
	case fromJobName(e.Field):
		doc, path = c.doc, "metadata.name"
	case doc == nil:
		doc, path, message = c.doc, "spec.runtimeRef", fmt.Sprintf("the pods of %s would be rejected: %s: %s", role, e.Field, message)
	}
	if doc == c.doc && (c.follows(path, message) || slices.ContainsFunc(known, func(p Problem) bool { return p.covers(path) })) {
		return
	}
	c.addTo(doc, Error, path, "%s", message)
	c.depends()
}

// covers tells whether an error already reports a field of a pod: it is about that field, or about its role.
func (p Problem) covers(path string) bool {
	return p.Severity == Error && within(path, p.Path) && (within(p.Path, path) || len(parts(p.Path)) >= len(parts("spec.roles.role")))
}

// fromJobName tells whether a field of a pod is made from the job's name.
func fromJobName(path string) bool {
	return path == "metadata.name" || path == "spec.hostname" || path == "spec.subdomain"
}

func podRefusals(pod *corev1.Pod) (field.ErrorList, error) {
	defaults.SetObjectDefaults_Pod(pod)
	internal := &core.Pod{}
	if err := defaults.Convert_v1_Pod_To_core_Pod(pod, internal, nil); err != nil {
		return nil, fmt.Errorf("reading pod %s: %w", pod.Name, err)
	}
	options := podutil.GetValidationOptionsFromPodSpecAndMeta(&internal.Spec, nil, &internal.ObjectMeta, nil)
	options.ResourceIsPod = true
	refusals := validation.ValidatePodCreate(internal, options)
	return slices.DeleteFunc(refusals, func(e *field.Error) bool { return copied(e, refusals) }), nil
}

// copied tells whether a request is refused only because it was copied from a limit that is refused, too.
func copied(e *field.Error, refusals field.ErrorList) bool {
	limit := strings.Replace(e.Field, ".resources.requests[", ".resources.limits[", 1)
	return limit != e.Field && slices.ContainsFunc(refusals, func(other *field.Error) bool { return other.Field == limit && other.Detail == e.Detail })
}

func serviceRefusals(service *corev1.Service) (field.ErrorList, error) {
	service.Spec.ClusterIPs = []string{service.Spec.ClusterIP} // as the API server defaults it
	defaults.SetObjectDefaults_Service(service)
	internal := &core.Service{}
	if err := defaults.Convert_v1_Service_To_core_Service(service, internal, nil); err != nil {
		return nil, fmt.Errorf("reading Service %s: %w", service.Name, err)
	}
	return validation.ValidateServiceCreate(internal), nil
}

// messageOf is the API server's message on a field, or a plainer one where that does not say what to do.
func messageOf(e *field.Error) string {
	switch {
	case e.Type == field.ErrorTypeNotFound && strings.Contains(e.Field, ".volumeMounts["):
		return fmt.Sprintf("there is no volume %v: add it to volumes", e.BadValue)
	case e.Type == field.ErrorTypeRequired && e.Detail == "":
		return "it is missing: add it"
	}
	message, _, _ := strings.Cut(strings.TrimPrefix(e.ErrorBody(), "Invalid value: "), " (e.g. ") // then come examples, and a regular expression
	return strings.TrimPrefix(message, `"": `)                                                    // where the value says nothing
}

// asWritten puts a value into a message as it is written in the file, not as it was parsed.
func asWritten(message string, e *field.Error, written string) string {
	quantity, isQuantity := e.BadValue.(resource.Quantity)
	switch {
	case written == "":
	case e.Type == field.ErrorTypeRequired:
		return written + " counts as nothing here: use another value"
	case isQuantity:
		return strings.Replace(message, quantity.String(), written, 1)
	}
	return message
}
