package lint

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trainyard/trainyard/api/crds"
	"github.com/trainyard/trainyard/internal/admission"
	"github.com/trainyard/trainyard/internal/kinds"
)

// check does with an object what an API server does before it stores it. It returns whether it is a training job. Objects of other
// groups are not checked.
func (c *checker) check(ctx context.Context) (isOurs bool, err error) {
	gvk := c.doc.Object.GroupVersionKind()
	if kind := kinds.Misplaced(gvk); kind != nil {
		c.add(Error, "apiVersion", "%s is in %s, not in %s: correct it", gvk.Kind, kind.GroupVersion(), gvk.GroupVersion())
		c.depends()
		return false, nil
	}
	if !slices.ContainsFunc(kinds.All, func(kind kinds.Adapter) bool { return kind.GroupVersion().Group == gvk.Group }) {
		return false, nil
	}
	validator, err := admission.For(gvk)
	if err != nil {
		return false, err
	}
	if validator == nil {
		names, versions, err := definedKinds(gvk.Kind)
		if err != nil {
			return false, err
		}
		if near := nearest(gvk.Kind, names); len(versions) > 0 {
			c.add(Error, "apiVersion", "there is no %s in %s: use %s", gvk.Kind, gvk.GroupVersion(), strings.Join(versions, " or "))
		} else if near != "" {
			c.add(Error, "kind", "there is no %s: did you mean %s?", gvk.Kind, near)
		} else {
			c.add(Error, "kind", "there is no %s in %s: the kinds are %s", gvk.Kind, gvk.GroupVersion(), strings.Join(names, ", "))
		}
		c.depends()
		return false, nil
	}
	return true, c.admit(ctx, validator)
}

func (c *checker) admit(ctx context.Context, validator *admission.Validator) error {
	c.object = c.doc.Object.DeepCopy()
	schema := withMetadata(validator.Schema)
	c.fixFields("", c.object.Object, schema)
	for _, path := range unknownMetadata(c.object) {
		c.unknown(schema, path)
	}
	if c.object.GetName() == "" {
		if c.object.GetGenerateName() == "" {
			c.add(Error, "metadata.name", "the job has no name: add metadata.name")
		}
		c.object.SetName(c.object.GetGenerateName() + "x") // the API server checks objects after they got a name
	}
	dropped, refusals := validator.Shape(c.object)
	for _, path := range dropped {
		c.unknown(schema, path)
	}
	for _, e := range refusals {
		c.refusal(e)
		c.drop(e, schema)
	}
	for _, e := range validator.Rules(ctx, c.object, nil) {
		if !strings.Contains(e.Detail, "no such key") { // a rule failed because it reads a dropped field
			c.refusal(e)
		}
	}
	for _, e := range metadataRefusals(c.object) {
		if !slices.ContainsFunc(c.problems, func(p Problem) bool { return p.Severity == Error && p.Path == e.Field }) {
			c.refusal(e)
		}
	}
	return c.advise()
}

// refusal adds an error of the API server, without the path, which its message repeats.
func (c *checker) refusal(e *field.Error) {
	path := strings.TrimPrefix(e.Field, "<nil>.")
	message := strings.TrimPrefix(messageOf(e), `"object": `)
	message = strings.ReplaceAll(message, e.Field+" in body ", "it ")
	if e.Type == field.ErrorTypeTypeInvalid {
		_, message, _ = strings.Cut(strings.TrimSuffix(message, fmt.Sprintf(": %q", e.BadValue)), ": ")
	}
	if !c.follows(path, message) {
		c.add(Error, path, "%s", message)
	}
}

// drop removes what is refused, and adds an empty value where one is missing, so that the rest can be checked.
func (c *checker) drop(e *field.Error, schema *structural.Structural) {
	path := strings.TrimPrefix(e.Field, "<nil>.")
	parent, name := parentOf(c.object.Object, path)
	switch {
	case parent == nil:
		return
	case e.Type != field.ErrorTypeRequired:
		delete(parent, name)
	default:
		switch s := at(schema, path); {
		case s == nil:
		case s.Type == "string":
			parent[name] = ""
		case s.Type == "array":
			parent[name] = []any{}
		case s.Type == "object":
			parent[name] = map[string]any{}
		}
	}
	c.dropped = append(c.dropped, path)
}

// parentOf is the mapping in which the last part of a path is, or should be; nil where that is an entry of a list.
func parentOf(value any, path string) (map[string]any, string) {
	path = strings.TrimPrefix(path, ".")
	switch v := value.(type) {
	case map[string]any:
		if !strings.ContainsAny(path, ".[") {
			return v, path
		}
		for end := len(path); end > 0; end = strings.LastIndexAny(path[:end], ".[") {
			if inner, known := v[path[:end]]; known && end == len(path) {
				return v, path
			} else if known {
				return parentOf(inner, path[end:])
			}
		}
	case []any:
		index, rest, _ := strings.Cut(strings.TrimPrefix(path, "["), "]")
		if i, err := strconv.Atoi(index); err == nil && i < len(v) {
			return parentOf(v[i], rest)
		}
	}
	return nil, ""
}

// definedKinds are the names of the kinds that the definitions have, and the versions in which one of them is served.
func definedKinds(kind string) (names, versions []string, err error) {
	definitions, err := crds.All()
	if err != nil {
		return nil, nil, err
	}
	for _, crd := range definitions {
		names = append(names, crd.Spec.Names.Kind)
		for _, version := range crd.Spec.Versions {
			if crd.Spec.Names.Kind == kind {
				versions = append(versions, crd.Spec.Group+"/"+version.Name)
			}
		}
	}
	return names, versions, nil
}

// unknown reports a field that the API server would drop, and the one that may be meant.
func (c *checker) unknown(s *structural.Structural, path string) {
	cut := strings.LastIndex(path, ".")
	parent, name := path[:max(cut, 0)], path[cut+1:]
	if near := nearest(name, fields(s, parent)); near != "" {
		c.add(Error, path, "there is no such field: did you mean %s?", near)
		c.dropped = append(c.dropped, strings.TrimPrefix(parent+"."+near, "."))
		return
	}
	c.add(Error, path, "there is no such field")
}

// at is the schema at a path, nil where there is none.
func at(s *structural.Structural, path string) *structural.Structural {
	for _, part := range parts(path) {
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
	return s
}

// fields are the names of the fields at a path.
func fields(s *structural.Structural, path string) []string {
	if s = at(s, path); s == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(s.Properties))
}

// nearest is the name with the smallest edit distance, empty if that is large.
func nearest(name string, names []string) string {
	best, least := "", max(2, len(name)/3)+1
	for _, candidate := range names {
		if d := distance(strings.ToLower(name), strings.ToLower(candidate)); d < least {
			best, least = candidate, d
		}
	}
	return best
}

// distance is the edit distance of two names: how many letters to add, drop or change.
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
