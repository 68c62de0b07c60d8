// Package conversion rewrites manifests of older layouts as today's kubeflow.org/v1 has them: policies in spec.runPolicy,
// roles by their canonical names. It works on the text's own structure, so that comments and the order of fields stay.
package conversion

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/document"
	"github.com/trainyard/trainyard/internal/kinds"
	"github.com/trainyard/trainyard/internal/kinds/kubeflow"
)

// versions are those whose layout is known.
var versions = []string{"kubeflow.org/v1", "kubeflow.org/v1beta2", "kubeflow.org/v1beta1"}

// policies are the fields that moved from spec to spec.runPolicy, in the order in which they are written there.
var policies = []string{"cleanPodPolicy", "ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit"}

// Note is something a person should know of a conversion.
type Note struct {
	Line int
	Text string
}

// converter rewrites one object.
type converter struct {
	doc   *document.Document
	notes []Note
}

// Converts tells whether an object is one that can be converted.
func Converts(doc *document.Document) bool {
	_, known := layout(doc)
	return known
}

// layout is how jobs of a document's kind are written, known where that is a kubeflow.org kind.
func layout(doc *document.Document) (l kubeflowv1.Layout, known bool) {
	kind, known := kinds.Of(doc.Object.GroupVersionKind()).(kubeflow.Kind)
	return kind.Layout, known
}

// Kinds are the names of the kinds that can be converted.
func Kinds() []string {
	var names []string
	for _, kind := range kinds.All {
		if kind, ok := kind.(kubeflow.Kind); ok {
			names = append(names, kind.Name())
		}
	}
	return names
}

// leave notes that a kubeflow.org job of another kind is not changed. Objects of other groups need no note.
func (c *converter) leave() []Note {
	if gvk := c.doc.Object.GroupVersionKind(); gvk.Group == kubeflowv1.GroupVersion.Group {
		c.note("kind", "%s is not supported: it is left as it is", gvk.Kind)
	}
	return c.notes
}

// ToV1 rewrites an object in place and returns notes on what it did. Objects that are not converted are left as they are.
func ToV1(doc *document.Document) ([]Note, error) {
	c := &converter{doc: doc}
	l, known := layout(doc)
	if !known {
		return c.leave(), nil
	}
	if !slices.Contains(versions, doc.Object.GetAPIVersion()) && !isMPIOperators(doc) {
		return nil, c.refuse("apiVersion", "the layout of %s is unknown: use one of %s", doc.Object.GetAPIVersion(), strings.Join(versions, ", "))
	}
	expand(doc.Node, l.ReplicaSpecs)
	if err := c.convert(l); err != nil {
		return nil, err
	}
	slices.SortStableFunc(c.notes, func(a, b Note) int { return a.Line - b.Line })
	return c.notes, c.reread()
}

// isMPIOperators reports whether a job is of mpi-operator's version. It stays in it: its defaults are others than those of v1.
func isMPIOperators(doc *document.Document) bool {
	gvk := doc.Object.GroupVersionKind()
	return gvk.Kind == kubeflowv1.MPIJobKind && gvk.Version == kubeflowv1.MPIVersion
}

// reread parses the object from its new text.
func (c *converter) reread() error {
	text, err := Write([]*document.Document{c.doc})
	if err != nil {
		return err
	}
	docs, err := document.Parse(c.doc.File, text)
	if err != nil {
		return err
	}
	c.doc.Object = docs[0].Object
	return nil
}

func (c *converter) convert(l kubeflowv1.Layout) error {
	spec := get(c.doc.Node, "spec")
	if spec == nil || spec.Kind != yaml.MappingNode {
		return c.refuse("", "the job has no spec: add it")
	}
	if version := get(c.doc.Node, "apiVersion"); version.Value != kubeflowv1.GroupVersion.String() && !isMPIOperators(c.doc) {
		c.note("apiVersion", "apiVersion is now %s", kubeflowv1.GroupVersion)
		version.Value = kubeflowv1.GroupVersion.String()
	}
	if get(c.doc.Node, "status") != nil {
		c.note("status", "status is left out: the operator writes it")
		take(c.doc.Node, "status")
	}
	if err := c.movePolicies(spec); err != nil {
		return err
	}
	c.moveProcesses(spec)
	if roles := get(spec, l.ReplicaSpecs); roles != nil {
		c.nameRoles(roles, l)
	}
	return nil
}

// movePolicies moves the four policies to runPolicy.
func (c *converter) movePolicies(spec *yaml.Node) error {
	var moved []*yaml.Node
	run := get(spec, "runPolicy")
	where := -1
	for i := 0; i+1 < len(spec.Content); i += 2 {
		if slices.Contains(policies, spec.Content[i].Value) && where < 0 {
			where = i
		}
	}
	for _, policy := range policies {
		value := get(spec, policy)
		if value == nil {
			continue
		}
		if there := get(run, policy); there != nil && there.Value != value.Value {
			return c.refuse("spec."+policy, "spec.%[1]s is %[2]s and spec.runPolicy.%[1]s is %[3]s: remove one of them", policy, value.Value, there.Value)
		} else if there != nil {
			c.note("spec."+policy, "spec.%s is left out: spec.runPolicy has it too", policy)
			take(spec, policy)
			continue
		}
		c.note("spec."+policy, "%s is now in spec.runPolicy", policy)
		moved = append(moved, take(spec, policy)...)
	}
	if len(moved) > 0 && run == nil {
		run = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		key := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: "runPolicy"}
		spec.Content = slices.Insert(spec.Content, min(where, len(spec.Content)), key, run)
	}
	if len(moved) > 0 {
		run.Content = append(run.Content, moved...)
	}
	if get(run, "cleanPodPolicy") == nil {
		c.note("spec", "cleanPodPolicy is not set: Training Operator then lets pods run on after the end (None), this operator stops them (Running)")
	}
	return nil
}

// moveProcesses moves the number of processes out of its deprecated field.
func (c *converter) moveProcesses(spec *yaml.Node) {
	elastic := get(spec, "elasticPolicy")
	value := get(elastic, "nProcPerNode")
	if value == nil || get(spec, "nprocPerNode") != nil {
		return
	}
	c.note("spec.elasticPolicy.nProcPerNode", "spec.elasticPolicy.nProcPerNode is now spec.nprocPerNode")
	pair := take(elastic, "nProcPerNode")
	pair[0].Value = "nprocPerNode"
	pair[1].Tag, pair[1].Style = "!!str", yaml.DoubleQuotedStyle
	spec.Content = append(pair, spec.Content...)
}

// nameRoles gives roles their canonical names, and drops what has no effect.
func (c *converter) nameRoles(roles *yaml.Node, l kubeflowv1.Layout) {
	for i := 0; i+1 < len(roles.Content); i += 2 {
		written := roles.Content[i].Value
		path := "spec." + l.ReplicaSpecs + "." + written
		if pod := get(get(roles.Content[i+1], "template"), "spec"); get(pod, "restartPolicy") != nil {
			c.note(path+".template.spec.restartPolicy", "the template's restartPolicy is left out: the role's counts")
			take(pod, "restartPolicy")
		}
		for _, role := range l.Roles {
			if strings.EqualFold(written, string(role)) && written != string(role) {
				c.note(path, "role %s is now %s", written, role)
				roles.Content[i].Value = string(role)
			}
		}
	}
}

func (c *converter) note(path, format string, args ...any) {
	c.notes = append(c.notes, Note{c.doc.Line(path), fmt.Sprintf(format, args...)})
}

func (c *converter) refuse(path, format string, args ...any) error {
	return &document.Error{File: c.doc.File, Line: c.doc.Line(path), Err: fmt.Errorf(format, args...)}
}

// get is the value of a key, nil if there is none.
func get(node *yaml.Node, name string) *yaml.Node {
	node = follow(node)
	if node == nil || node.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == name {
			return node.Content[i+1]
		}
	}
	return nil
}

// take removes a key and returns it with its value, nil if there is none.
func take(node *yaml.Node, name string) []*yaml.Node {
	node = follow(node)
	if node == nil || node.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == name {
			pair := slices.Clone(node.Content[i : i+2])
			node.Content = slices.Delete(node.Content, i, i+2)
			return pair
		}
	}
	return nil
}

// expand replaces aliases by copies, so that their contents can be moved and changed. Below the roles it replaces only those of plain
// values: the others are pods, which are changed for all roles that share them.
func expand(node *yaml.Node, rolesAt string) {
	for i, inner := range node.Content {
		if target := follow(inner); target != inner && (rolesAt != "" || target.Kind == yaml.ScalarNode) {
			node.Content[i] = document.Copy(inner)
		}
		below := rolesAt
		if node.Kind == yaml.MappingNode && i%2 == 1 && node.Content[i-1].Value == rolesAt {
			below = ""
		}
		expand(node.Content[i], below)
	}
}

func follow(node *yaml.Node) *yaml.Node {
	if node != nil && node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

// Write is the text of objects.
func Write(docs []*document.Document) (string, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	var failed error
	for _, doc := range docs {
		failed = errors.Join(failed, encoder.Encode(doc.Node))
	}
	return out.String(), errors.Join(failed, encoder.Close())
}
