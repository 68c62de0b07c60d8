// Package document reads files of manifests and remembers the line of every field, so that messages about a field can name
// its line.
package document

import (
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8syaml "sigs.k8s.io/yaml"
)

// Document is one object of a file.
type Document struct {
	// File is the name it was read from, "-" for standard input.
	File string
	// Object is what would be sent to the API server.
	Object *unstructured.Unstructured
	// Node is the YAML, with its comments. Its line numbers are those of the file.
	Node *yaml.Node
}

// Error is a mistake in the file itself, with its line if that is known.
type Error struct {
	File string
	Line int
	Err  error
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %v", e.File, e.Err)
	}
	return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Parse reads all objects of a text. If it has mistakes, Parse reads as many objects as it can, and the error joins all mistakes.
func Parse(file, text string) ([]*Document, error) {
	var all []*Document
	var mistakes []error
	for _, part := range split(text) {
		doc, wrong := parse(file, part)
		mistakes = append(mistakes, wrong...)
		if doc != nil {
			all = append(all, doc)
		}
	}
	if len(all) == 0 && len(mistakes) == 0 {
		mistakes = append(mistakes, &Error{File: file, Err: errors.New("the file has no object in it")})
	}
	return all, errors.Join(mistakes...)
}

// Mistakes are the mistakes that an error of Parse joins.
func Mistakes(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return nil
}

// split cuts a text at its document separators. Every part begins with as many empty lines as there are lines before it in the
// file, so that any parser counts lines correctly.
func split(text string) []string {
	var parts []string
	var part strings.Builder
	lines := strings.SplitAfter(text, "\n")
	for n, line := range lines {
		if strings.TrimRight(line, " \t\r\n") == "---" || strings.HasPrefix(line, "--- ") {
			parts = append(parts, part.String())
			part.Reset()
			part.WriteString(strings.Repeat("\n", n+1))
			continue
		}
		part.WriteString(line)
	}
	return append(parts, part.String())
}

// parse reads one object. If a key is set twice, the last value counts.
func parse(file, text string) (*Document, []error) {
	var node yaml.Node
	if err := yaml.Unmarshal([]byte(text), &node); err != nil {
		return nil, []error{withLine(file, err)}
	}
	if len(node.Content) == 0 || node.Content[0].Tag == "!!null" {
		return nil, nil
	}
	root := node.Content[0]
	if root.HeadComment == "" {
		root.HeadComment = node.HeadComment
	}
	if root.Kind != yaml.MappingNode {
		return nil, []error{&Error{file, root.Line, errors.New("an object is expected, with apiVersion, kind, metadata and spec")}}
	}
	twice := onlyLast(file, root)
	data, err := k8syaml.YAMLToJSON([]byte(text))
	if err == nil && unmerge(root) { // YAMLToJSON has checked that no alias contains itself
		data, err = asJSON(root)
	}
	if err != nil {
		return nil, append(twice, withLine(file, err))
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(data); err != nil {
		return nil, append(twice, &Error{file, root.Line, errors.New("the object has no kind: add kind and apiVersion")})
	}
	if object.GetAPIVersion() == "" {
		return nil, append(twice, &Error{file, root.Line, fmt.Errorf("the %s has no apiVersion: add it", object.GetKind())})
	}
	return &Document{File: file, Object: object, Node: root}, twice
}

func asJSON(root *yaml.Node) ([]byte, error) {
	text, err := yaml.Marshal(Copy(root))
	if err != nil {
		return nil, err
	}
	return k8syaml.YAMLToJSON(text)
}

// onlyLast keeps the last of several keys of the same name in each mapping, and returns an error for each of the others.
func onlyLast(file string, node *yaml.Node) []error {
	var twice []error
	if node.Kind == yaml.MappingNode {
		first := map[string]int{}
		var kept []*yaml.Node
		for i := 0; i+1 < len(node.Content); i += 2 {
			key := node.Content[i]
			at, known := first[key.Value]
			if !known || key.Kind != yaml.ScalarNode || isMerge(key) {
				first[key.Value] = len(kept)
				kept = append(kept, key, node.Content[i+1])
				continue
			}
			twice = append(twice, &Error{file, key.Line, fmt.Errorf("%s is already set in line %d: remove one of them", key.Value, kept[at].Line)})
			kept[at], kept[at+1] = key, node.Content[i+1]
		}
		node.Content = kept
	}
	for _, inner := range node.Content {
		twice = append(twice, onlyLast(file, inner)...)
	}
	return twice
}

// withLine moves the line number from a parser's message into an Error.
func withLine(file string, err error) error {
	words := err.Error()
	for _, noise := range []string{"error converting YAML to JSON: ", "yaml: ", "unmarshal errors:\n  "} {
		words = strings.TrimPrefix(words, noise)
	}
	words, _, _ = strings.Cut(words, "\n")
	e := &Error{File: file, Err: errors.New(words)}
	if _, scanErr := fmt.Sscanf(words, "line %d:", &e.Line); scanErr == nil {
		_, rest, _ := strings.Cut(words, ": ")
		e.Err = errors.New(rest)
	}
	return e
}
