package scenario

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v3"
)

// onlyWords are the sections that do not affect what a run does.
var onlyWords = []string{"name", "title", "paper", "seeds", "variants", "sweep", "expect", "deviates", "short", "scale"}

// Fingerprint identifies what a run does: it is the same for the same settings and seed.
// program is the version of the program that executes it. file is the scenario; files of
// sizes and flows are relative to it.
func (r *Run) Fingerprint(program, file string) (string, error) {
	n := clone(r.source)
	var kept []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		if !slices.Contains(onlyWords, n.Content[i].Value) {
			kept = append(kept, n.Content[i], n.Content[i+1])
		}
	}
	n.Content = kept
	var v any
	if err := n.Decode(&v); err != nil {
		return "", err
	}
	text, err := yaml.Marshal(v) // without comments, keys in order
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%d\n%s\n", program, r.Seed, text)
	for _, p := range []string{r.Doc.Switch.Policy.Text, r.Doc.Switch.Shadow.Text, r.Doc.Hosts.Policy.Text} {
		if p != "" { // possibly the name of a file
			fmt.Fprintf(h, "%d\n%s\n", len(p), p)
		}
	}
	for i := range r.Doc.Workload {
		for _, n := range r.Doc.Workload[i].files(filepath.Dir(file)) {
			data, err := n.read()
			if err != nil {
				return "", err
			}
			h.Write(data)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
