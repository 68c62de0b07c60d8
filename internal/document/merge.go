package document

import (
	"slices"

	"go.yaml.in/yaml/v3"
)

// unmerge copies merged fields (<<) into the mappings that merge them, so that no other code needs to know about merges. It
// reports whether there were any.
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
				if !hasKey(whole, key.Value) && !hasKey(node.Content, key.Value) { // the mapping's own fields count first, then the first merge
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

// parts are the merged mappings: one, or those of a list.
func parts(node *yaml.Node) []*yaml.Node {
	switch node.Kind {
	case yaml.AliasNode:
		return parts(Copy(node))
	case yaml.MappingNode:
		unmerge(node) // it is written inline in the merge
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

// Copy is a copy of a node in which every alias is replaced by what it refers to. It has no anchors.
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
