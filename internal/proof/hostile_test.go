package proof

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/api/crds"
	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/kinds"
)

// panics are those of all controllers. They recover, and would only try again.
var panics struct {
	sync.Mutex
	all []string
}

// Whatever somebody writes into a job, the API server refuses it with a sentence, or the controller copes with it: no panic, and it comes
// to rest. So does it when the job is edited into something else.
func TestHostileSpecs(t *testing.T) {
	r := newRunner(t)
	for i := range uint64(*amount) {
		n := *seed + i
		r.run(planned{name: fmt.Sprintf("spec %d.", n), seed: n, life: hostileLife})
	}
	r.finish()
}

func hostileLife(h *history) {
	m := mutator{h.random}
	job := pick(h, gang(1, onFailure), elastic(2, exitCode, autoscaled), tensorflow(1, exitCode, deadline(60), ttl(30)))
	schema, err := schemaOf(job)
	h.must(err)
	obj, err := asMap(job)
	h.must(err)
	obj.SetName(h.job.Name)
	obj.SetNamespace(h.job.Namespace)
	for range 1 + h.random.IntN(4) {
		obj.Object["spec"] = m.mutate(obj.Object["spec"], schema, "spec")
	}
	if !h.accepted(h.server.admin.Create(context.Background(), obj)) {
		return
	}
	h.kind, h.oracle.job = kinds.Of(obj.GroupVersionKind()), obj.GetUID()
	h.note("the job is submitted: %v", obj.Object["spec"])
	h.chronicle.await(obj.GetUID(), version(obj))
	h.process = newProcess(h, len(h.chronicle.since(0)))
	h.up()
	for range 2 {
		if h.server.admin.Get(context.Background(), client.ObjectKeyFromObject(obj), obj) != nil {
			break
		}
		obj.Object["spec"] = m.mutate(obj.Object["spec"], schema, "spec")
		if h.accepted(h.server.admin.Update(context.Background(), obj)) {
			h.note("the job is edited: %v", obj.Object["spec"])
			h.chronicle.await(obj.GetUID(), version(obj))
		}
		h.up()
	}
	h.sleep(2 * time.Minute)
}

// accepted reports whether the API server took an object. Where it did not, it says why.
func (h *history) accepted(err error) bool {
	switch {
	case err == nil:
		return true
	case !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err), len(err.Error()) < 20:
		h.fail("the API server answers: %v", err)
	}
	return false
}

func asMap(job kubeflowv1.Job) (*unstructured.Unstructured, error) {
	data, err := json.Marshal(job)
	if err != nil {
		return nil, err
	}
	obj := &unstructured.Unstructured{}
	err = json.Unmarshal(data, &obj.Object)
	delete(obj.Object, "status")
	obj.SetGroupVersionKind(kubeflowv1.GroupVersion.WithKind(job.Parts().Layout.Kind))
	return obj, err
}

var definitions = sync.OnceValues(crds.All)

// schemaOf is the schema of a job's spec, of the definition that is shipped.
func schemaOf(job kubeflowv1.Job) (*schemaProps, error) {
	all, err := definitions()
	if err != nil {
		return nil, err
	}
	for _, crd := range all {
		if crd.Spec.Names.Kind == job.Parts().Layout.Kind {
			spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
			return &spec, nil
		}
	}
	return nil, fmt.Errorf("%s has no definition", job.Parts().Layout.Kind)
}

// A training may end with any words. The job's status has the last of them, and nothing that a terminal would obey.
func TestHostileLastWords(t *testing.T) {
	r := newRunner(t)
	words := map[string]string{
		"a mebibyte":   strings.Repeat("0123456789abcde\n", 1<<16),
		"escapes":      strings.Repeat("\x1b[2J\x1b]0;owned\x07\x1b[31mred\u009b31m\u202e", 500),
		"control":      "a\x00b\x08c\rd\x7fe",
		"not a letter": strings.Repeat("\u0301", 5000),
	}
	for name, message := range words {
		for _, job := range []kubeflowv1.Job{gang(1, onFailure), gang(1, never), tensorflow(1, onFailure)} {
			r.run(planned{name: fmt.Sprintf("last words: %s, %s", name, job.Parts().Layout.Kind), life: func(h *history) {
				h.submit(job.DeepCopyObject().(kubeflowv1.Job))
				h.up()
				h.lastWords = message
				h.exit(h.pod("worker-0"), 1)
				h.sleep(10 * time.Second)
				h.checkWords()
			}})
		}
	}
	r.finish()
}

// checkWords sees that the job's status is small, and harmless on a terminal.
func (h *history) checkWords() {
	status, err := json.Marshal(h.oracle.status)
	h.must(err)
	if len(status) > 16<<10 {
		h.fail("the status has %d bytes", len(status))
	}
	if h.oracle.status.LastFailure == nil {
		h.fail("the failure is not recorded")
		return
	}
	texts := []string{h.oracle.status.Message, h.oracle.status.LastFailure.Message}
	for _, c := range h.oracle.status.Conditions {
		texts = append(texts, c.Message)
	}
	for _, text := range texts {
		if isHarmful(text) {
			h.fail("the status has %q", text)
		}
	}
}

// isHarmful reports whether a terminal would do something else with a text than to print it.
func isHarmful(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' })
}

// A job whose template meets the restricted Pod Security Standard runs in a namespace that enforces it: the operator adds nothing to its
// pods that the standard forbids.
func TestPodsMeetTheRestrictedStandard(t *testing.T) {
	s := start(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "restricted", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	if err := s.admin.Create(context.Background(), namespace); err != nil {
		t.Fatal(err)
	}
	n, err := newNodes(s, "restricted")
	if err != nil {
		t.Fatal(err)
	}
	for i, job := range []kubeflowv1.Job{gang(1, onFailure), elastic(2, exitCode), tensorflow(1, onFailure)} {
		for _, meets := range []bool{true, false} {
			h := newHistory(s, n, fmt.Sprintf("job-%d-%v", i, meets), 1)
			violations := h.live(func(h *history) {
				job := job.DeepCopyObject().(kubeflowv1.Job)
				if meets {
					restrict(job)
				}
				h.submit(job)
				h.up()
				if created := len(h.pods()) > 0; created != meets {
					h.fail("the template meets the standard: %v; there are pods: %v", meets, created)
				}
			})
			for _, v := range violations {
				t.Errorf("%s: %s\n%s", job.Parts().Layout.Kind, v, h.story())
			}
		}
	}
}

// restrict makes templates meet the restricted standard.
func restrict(job kubeflowv1.Job) {
	yes, no := true, false
	for _, role := range *job.Parts().ReplicaSpecs {
		role.Template.Spec.SecurityContext = &corev1.PodSecurityContext{
			RunAsNonRoot: &yes, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		}
		role.Template.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{
			AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		}
	}
}
