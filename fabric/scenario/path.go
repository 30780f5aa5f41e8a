package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gswitch/section"

	"go.yaml.in/yaml/v3"
)

// maxNodes bounds the size to which aliases may expand.
const maxNodes = 200_000

// unfold copies n with every alias replaced by its target, so that setting a key in one
// place does not set it in another.
func unfold(n *yaml.Node, left *int) (*yaml.Node, error) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if *left--; *left < 0 {
		return nil, fmt.Errorf("the document unfolds to more than %d values", maxNodes)
	}
	c := *n
	c.Anchor, c.Alias = "", nil
	c.Content = make([]*yaml.Node, len(n.Content))
	for i, e := range n.Content {
		var err error
		if c.Content[i], err = unfold(e, left); err != nil {
			return nil, err
		}
	}
	return &c, nil
}

func clone(n *yaml.Node) *yaml.Node {
	left := 10 * maxNodes // n has already been unfolded
	c, err := unfold(n, &left)
	if err != nil {
		panic("scenario: " + err.Error())
	}
	return c
}

// child returns the value of a key of a mapping, nil if it has none.
func child(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// remove deletes a key of a mapping.
func remove(n *yaml.Node, key string) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			n.Content = slices.Delete(n.Content, i, i+2)
			return
		}
	}
}

// Wrong returns an error about a key of a run, of type section.Errors. A key that the
// document does not have is located at the nearest enclosing one.
func (r *Run) Wrong(file, key, format string, args ...any) error {
	at := r.source
	for part := range strings.SplitSeq(key, ".") {
		next := child(at, part)
		if next == nil {
			break
		}
		at = next
	}
	return section.Errors{{File: file, Line: at.Line, Column: at.Column, Key: key, Problem: fmt.Sprintf(format, args...)}}
}

// step is an element of a path: a key, or an index of a list.
type step struct {
	key   string
	index int // -1 for a key
}

// splitPath reads a path such as workload[0].size or workload.mice.size.
func splitPath(path string) ([]step, error) {
	var steps []step
	for part := range strings.SplitSeq(path, ".") {
		key, rest, _ := strings.Cut(part, "[")
		if key == "" {
			return nil, fmt.Errorf("%q is not a path of keys; write it like hosts.cc or workload[0].size", path)
		}
		steps = append(steps, step{key, -1})
		for part != key {
			number, more, ok := strings.Cut(rest, "]")
			n, err := strconv.Atoi(number)
			if !ok || err != nil || n < 0 || more != "" && more[0] != '[' {
				return nil, fmt.Errorf("%q is not a path of keys; write it like hosts.cc or workload[0].size", path)
			}
			steps = append(steps, step{"", n})
			if more == "" {
				break
			}
			rest = more[1:]
		}
	}
	return steps, nil
}

// setPath replaces the value at a path below root and creates what is missing. at is the
// position for errors about new keys.
func setPath(root *yaml.Node, path string, value, at *yaml.Node) error {
	steps, err := splitPath(path)
	if err != nil {
		return err
	}
	n := root
	for _, s := range steps {
		next, err := descend(n, s, path, at)
		if err != nil {
			return err
		}
		n = next
	}
	*n = *clone(value)
	return nil
}

// descend returns the node that a step leads to.
func descend(n *yaml.Node, s step, path string, at *yaml.Node) (*yaml.Node, error) {
	switch {
	case n.Kind == yaml.SequenceNode && s.index >= 0:
		if s.index < len(n.Content) {
			return n.Content[s.index], nil
		}
		return nil, fmt.Errorf("%s: the list has %d elements, the first is [0]", path, len(n.Content))
	case n.Kind == yaml.SequenceNode:
		var known []string
		for _, e := range n.Content {
			for _, id := range []string{"group", "name", "kind"} {
				if v := child(e, id); v != nil {
					if v.Value == s.key {
						return e, nil
					}
					known = append(known, v.Value)
					break
				}
			}
		}
		return nil, fmt.Errorf("%s: no element of the list is called %q; there are %s", path, s.key, strings.Join(known, ", "))
	case s.index >= 0:
		return nil, fmt.Errorf("%s: [%d] does not follow a list", path, s.index)
	case n.Kind != yaml.MappingNode:
		return nil, fmt.Errorf("%s: %q does not follow keys and values", path, s.key)
	}
	if v := child(n, s.key); v != nil {
		return v, nil
	}
	key := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s.key, Line: at.Line, Column: at.Column}
	v := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: at.Line, Column: at.Column}
	n.Content = append(n.Content, key, v)
	return v, nil
}
