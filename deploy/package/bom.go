package main

import (
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
)

// A bill of materials in CycloneDX 1.5 (ECMA-424): the programs with their
// digests, the modules in them with their package URLs, and which holds which.
type bom struct {
	Format       string       `json:"bomFormat"`
	Spec         string       `json:"specVersion"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type    string `json:"type"`
	Ref     string `json:"bom-ref"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl,omitempty"`
	Hashes  []hash `json:"hashes,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type dependency struct {
	Ref string   `json:"ref"`
	On  []string `json:"dependsOn"`
}

// materials returns the bill of materials of programs that go build made.
func materials(version string, programs []string) ([]byte, error) {
	b := bom{Format: "CycloneDX", Spec: "1.5", Version: 1, Metadata: metadata{component{Type: "application", Ref: "gswitch", Name: "gswitch", Version: version}}}
	modules := map[string]component{}
	whole := dependency{Ref: "gswitch"}
	for _, p := range programs {
		info, err := buildinfo.ReadFile(p)
		if err != nil {
			return nil, err
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(text)
		name := filepath.Base(p)
		own := component{Type: "application", Ref: "program/" + name, Name: name, Version: version, Hashes: []hash{{"SHA-256", hex.EncodeToString(sum[:])}}}
		b.Components = append(b.Components, own)
		whole.On = append(whole.On, own.Ref)
		parts := []*debug.Module{{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")}}
		var on []string
		for _, m := range append(parts, info.Deps...) {
			if m.Replace != nil {
				m = m.Replace
			}
			url := fmt.Sprintf("pkg:golang/%s@%s", m.Path, m.Version)
			modules[url] = component{Type: "library", Ref: url, Name: m.Path, Version: m.Version, PURL: url}
			on = append(on, url)
		}
		slices.Sort(on)
		b.Dependencies = append(b.Dependencies, dependency{own.Ref, on})
	}
	b.Dependencies = append(b.Dependencies, whole)
	libraries := make([]component, 0, len(modules))
	for _, m := range modules {
		libraries = append(libraries, m)
	}
	slices.SortFunc(libraries, func(a, b component) int { return cmp.Compare(a.Ref, b.Ref) })
	b.Components = append(b.Components, libraries...)
	return json.MarshalIndent(b, "", "  ")
}
