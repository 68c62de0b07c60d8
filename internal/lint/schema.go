package lint

import (
	"context"
	"fmt"
	"slices"
	"strings"

	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trainyard/trainyard/api/crds"
	"github.com/trainyard/trainyard/internal/admission"
)

// check does with an object what an API server does before it stores it. It answers whether it is a training job: those of
// other groups are another API server's to judge.
func (c *checker) check(ctx context.Context) (isJob bool, err error) {
	gvk := c.doc.Object.GroupVersionKind()
	if gvk.Group != "kubeflow.org" && gvk.Group != "trainer.kubeflow.org" {
		return false, nil
	}
	gate, err := admission.For(gvk)
	if err != nil {
		return false, err
	}
	if gate == nil {
		known, err := served()
		if err != nil {
			return false, err
		}
		c.add(Error, "kind", "there is no %s in %s: there is %s", gvk.Kind, gvk.GroupVersion(), strings.Join(known, ", "))
		return false, nil
	}
	return !strings.HasSuffix(gvk.Kind, "Runtime"), c.admit(ctx, gate)
}

func (c *checker) admit(ctx context.Context, gate *admission.Gate) error {
	object := c.doc.Object.DeepCopy()
	if object.GetName() == "" {
		if object.GetGenerateName() == "" {
			c.add(Error, "metadata.name", "the job has no name: add metadata.name")
		}
		object.SetName(object.GetGenerateName() + "x") // the API server judges what has a name
	}
	dropped, refusals := gate.Admit(ctx, object, nil)
	for _, path := range dropped {
		c.unknown(gate.Schema, path)
	}
	for _, e := range refusals {
		c.refusal(e)
	}
	if len(refusals) == 0 {
		return c.advise()
	}
	return nil
}

// refusal is an error of the API server, without the path that stands before it and twice in it.
func (c *checker) refusal(e *field.Error) {
	words := strings.TrimPrefix(e.ErrorBody(), "Invalid value: ")
	words = strings.TrimPrefix(words, `"object": `)
	words = strings.ReplaceAll(words, e.Field+" in body ", "it ")
	if e.Type == field.ErrorTypeTypeInvalid {
		_, words, _ = strings.Cut(strings.TrimSuffix(words, fmt.Sprintf(": %q", e.BadValue)), ": ")
	}
	c.add(Error, strings.TrimPrefix(e.Field, "<nil>."), "%s", words)
}

// served are the kinds that there are.
func served() ([]string, error) {
	definitions, err := crds.All()
	if err != nil {
		return nil, err
	}
	var known []string
	for _, crd := range definitions {
		for _, version := range crd.Spec.Versions {
			known = append(known, fmt.Sprintf("%s in %s/%s", crd.Spec.Names.Kind, crd.Spec.Group, version.Name))
		}
	}
	return known, nil
}

// unknown reports a field that the API server would drop, and the one that may be meant.
func (c *checker) unknown(s *structural.Structural, path string) {
	cut := strings.LastIndex(path, ".")
	parent, name := path[:max(cut, 0)], path[cut+1:]
	if near := nearest(name, fields(s, parent)); near != "" {
		c.add(Error, path, "there is no such field: did you mean %s?", near)
		return
	}
	c.add(Error, path, "there is no such field")
}

// fields are the names that may stand at a path.
func fields(s *structural.Structural, path string) []string {
	for part := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		next, known := s.Properties[part]
		switch {
		case known:
			s = &next
		case s.Items != nil:
			s = s.Items
		case s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil:
			s = s.AdditionalProperties.Structural
		default:
			return nil
		}
	}
	var names []string
	for name := range s.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// nearest is the name that differs by the fewest letters, if they are few.
func nearest(name string, names []string) string {
	best, least := "", max(2, len(name)/3)+1
	for _, candidate := range names {
		if d := distance(strings.ToLower(name), strings.ToLower(candidate)); d < least {
			best, least = candidate, d
		}
	}
	return best
}

// distance is the number of letters to add, drop or change.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
