package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// The bill names each program with its digest and each module in it once, and
// all that depends on something names what is there.
func TestMaterials(t *testing.T) {
	me, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := materials("v1.2.3", []string{me, me})
	if err != nil {
		t.Fatal(err)
	}
	var b bom
	if err := json.Unmarshal(text, &b); err != nil {
		t.Fatal(err)
	}
	refs := map[string]int{b.Metadata.Component.Ref: 1}
	for _, c := range b.Components {
		refs[c.Ref]++
		switch c.Type {
		case "application":
			if len(c.Hashes) != 1 || len(c.Hashes[0].Content) != 64 || c.Version != "v1.2.3" {
				t.Errorf("%+v", c)
			}
		case "library":
			if c.PURL != c.Ref || !strings.HasPrefix(c.PURL, "pkg:golang/"+c.Name+"@") {
				t.Errorf("%+v", c)
			}
			if refs[c.Ref] != 1 {
				t.Errorf("%s is there twice", c.Ref)
			}
		}
	}
	cobra, std := false, false
	for _, d := range b.Dependencies {
		for _, on := range d.On {
			if refs[on] == 0 {
				t.Errorf("%s depends on %s, which is not there", d.Ref, on)
			}
			cobra = cobra || strings.HasPrefix(on, "pkg:golang/github.com/spf13/cobra@v")
			std = std || strings.HasPrefix(on, "pkg:golang/std@1.")
		}
	}
	if !cobra || !std {
		t.Errorf("modules are missing:\n%s", text)
	}
	if _, err := materials("", []string{"bom.go"}); err == nil {
		t.Error("a text was taken for a program")
	}
}
