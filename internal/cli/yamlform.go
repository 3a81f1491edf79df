package cli

import "go.yaml.in/yaml/v3"

// keepForm gives a tree the comments of the tree that it replaces, and the spelling of each value that stays.
func keepForm(is, was *yaml.Node) {
	is.HeadComment, is.LineComment, is.FootComment = was.HeadComment, was.LineComment, was.FootComment
	if is.Kind != was.Kind {
		return
	}
	if is.Kind != yaml.ScalarNode || is.ShortTag() == was.ShortTag() && is.Value == was.Value {
		is.Style = was.Style
	}
	switch is.Kind {
	case yaml.MappingNode:
		for i := 0; i < len(is.Content); i += 2 {
			for k := 0; k < len(was.Content); k += 2 {
				if is.Content[i].Value == was.Content[k].Value {
					keepForm(is.Content[i], was.Content[k])
					keepForm(is.Content[i+1], was.Content[k+1])
				}
			}
		}
	case yaml.SequenceNode, yaml.DocumentNode:
		for i := range min(len(is.Content), len(was.Content)) {
			keepForm(is.Content[i], was.Content[i])
		}
	}
}

// inline puts each list of plain values on one line.
func inline(n *yaml.Node) {
	plain := n.Kind == yaml.SequenceNode
	for _, c := range n.Content {
		inline(c)
		plain = plain && c.Kind == yaml.ScalarNode
	}
	if plain {
		n.Style = yaml.FlowStyle
	}
}
