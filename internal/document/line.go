package document

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Line is the line of a field, by its path as the API server writes it: spec.a[0].b, spec.a[key]. If the path does not exist, it
// is the line of the deepest part that does.
func (d *Document) Line(path string) int {
	line, _, _ := d.find(path)
	return line
}

// Column is the column at which the value at a path begins, or, if the path does not exist, that of the deepest part that does.
func (d *Document) Column(path string) int {
	_, node, _ := d.find(path)
	return node.Column
}

// Written is the text of a scalar field, without its quotes; empty if there is none.
func (d *Document) Written(path string) string {
	if _, node, rest := d.find(path); rest == "" && node.Kind == yaml.ScalarNode {
		return node.Value
	}
	return ""
}

// find follows a path as far as it exists. It returns the line and the value of the deepest part, and the rest of the path.
func (d *Document) find(path string) (line int, node *yaml.Node, rest string) {
	line, node = d.Node.Line, d.Node
	for {
		for node.Kind == yaml.AliasNode {
			node = node.Alias
		}
		if path == "" {
			return line, node, ""
		}
		key, value, rest := step(node, path)
		if value == nil {
			return line, node, path
		}
		line, node, path = key.Line, value, rest
	}
}

// step follows one part of a path. A key may contain dots, so the longest key that fits is taken.
func step(node *yaml.Node, path string) (key, value *yaml.Node, rest string) {
	path = strings.TrimPrefix(path, ".")
	if inside, after, ok := strings.Cut(strings.TrimPrefix(path, "["), "]"); ok && strings.HasPrefix(path, "[") {
		if node.Kind == yaml.SequenceNode {
			if i, err := strconv.Atoi(inside); err == nil && i >= 0 && i < len(node.Content) {
				return node.Content[i], node.Content[i], after
			}
			return nil, nil, ""
		}
		key, value = find(node, inside)
		return key, value, after
	}
	for end := len(path); end > 0; end = strings.LastIndexAny(path[:end], ".[") {
		if key, value = find(node, path[:end]); value != nil {
			return key, value, path[end:]
		}
	}
	return nil, nil, ""
}

func find(node *yaml.Node, name string) (key, value *yaml.Node) {
	if node.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == name {
			return node.Content[i], node.Content[i+1]
		}
	}
	return nil, nil
}
