package document

import (
	"slices"

	"go.yaml.in/yaml/v3"
)

// unmerge writes what is merged into mappings (<<) where it is merged, so that nobody else needs to know of merges. It answers
// whether there was any.
func unmerge(node *yaml.Node) bool {
	found := false
	for _, inner := range node.Content {
		found = unmerge(inner) || found
	}
	if node.Kind != yaml.MappingNode || !slices.ContainsFunc(node.Content, isMerge) {
		return found
	}
	var whole []*yaml.Node
	for i := 0; i+1 < len(node.Content); i += 2 {
		if !isMerge(node.Content[i]) {
			whole = append(whole, node.Content[i], node.Content[i+1])
			continue
		}
		comment := node.Content[i].HeadComment
		for _, part := range parts(node.Content[i+1]) {
			for j := 0; j+1 < len(part.Content); j += 2 {
				key := part.Content[j]
				if !hasKey(whole, key.Value) && !hasKey(node.Content, key.Value) { // what is said here counts, then what is merged first
					if key.HeadComment == "" {
						key.HeadComment, comment = comment, ""
					}
					whole = append(whole, key, part.Content[j+1])
				}
			}
		}
	}
	node.Content = whole
	return true
}

func isMerge(key *yaml.Node) bool { return key.Kind == yaml.ScalarNode && key.Tag == "!!merge" }

// parts are the mappings that are merged: one, or those of a list.
func parts(node *yaml.Node) []*yaml.Node {
	switch node.Kind {
	case yaml.AliasNode:
		return parts(Copy(node))
	case yaml.MappingNode:
		unmerge(node) // where it stands in the merge itself
		return []*yaml.Node{node}
	}
	var all []*yaml.Node
	for _, inner := range node.Content {
		all = append(all, parts(inner)...)
	}
	return all
}

func hasKey(pairs []*yaml.Node, name string) bool {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i].Value == name {
			return true
		}
	}
	return false
}

// Copy is a node in which everything is written in its place: there are no aliases in it and no anchors.
func Copy(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return Copy(node.Alias)
	}
	other := *node
	other.Anchor, other.Content = "", nil
	for _, inner := range node.Content {
		other.Content = append(other.Content, Copy(inner))
	}
	return &other
}
