package scenario

import (
	"slices"

	"go.yaml.in/yaml/v3"
)

// Alone returns a document that asks for this run only, with every key set, for another
// process. Its seed must be passed in Options.Seeds.
func (r *Run) Alone() ([]byte, error) {
	n := clone(r.source)
	var kept []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		if !slices.Contains(onlyWords, n.Content[i].Value) {
			kept = append(kept, n.Content[i], n.Content[i+1])
		}
	}
	n.Content = kept
	return yaml.Marshal(n)
}
