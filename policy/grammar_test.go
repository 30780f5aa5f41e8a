package policy

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
)

// The grammar for editors has every word of the language, and paints the cookbook:
// no rule is broken, and each finds something.
func TestEditorGrammar(t *testing.T) {
	text, err := os.ReadFile("../docs/editors/openqueue.tmLanguage.json")
	if err != nil {
		t.Fatal(err)
	}
	var g struct {
		Patterns []struct{ Name, Match string }
	}
	if err := json.Unmarshal(text, &g); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../docs/POLICIES.md")
	if err != nil {
		t.Fatal(err)
	}
	sample, err := os.ReadFile("testdata/linux.oq")
	if err != nil {
		t.Fatal(err)
	}
	painted := string(sample) + "\nx(a, b) = not true and false or a.value := 3;\npolicy x; const y = 1; classify z = 1; mark; notify; modify;\n"
	for _, r := range recipe.FindAllStringSubmatch(string(page), -1) {
		painted += r[3]
	}
	word := regexp.MustCompile(`[A-Za-z]+`)
	known := map[string]bool{}
	for _, p := range g.Patterns {
		for _, w := range word.FindAllString(p.Match, -1) {
			known[strings.TrimPrefix(w, "b")] = true
			known[w] = true
		}
		// Lookbehinds are of the editors' engine alone.
		match, err := regexp.Compile("(?m)" + strings.ReplaceAll(strings.ReplaceAll(p.Match, `(?<=\.)`, `\.`), `(?=\s*\([^)]*\)\s*=)`, ""))
		if err != nil {
			t.Errorf("%s: %v", p.Name, err)
		} else if !match.MatchString(painted) {
			t.Errorf("%s paints nothing", p.Name)
		}
	}
	words := append([]string{"policy", "const", "classify", "import", "inline", "and", "or", "not", "true", "false", "pkts"}, append(kinds, verbs...)...)
	for _, list := range attributes {
		words = append(words, list...)
	}
	for unit, worth := range suffixes {
		if worth == 0 {
			t.Errorf("%s is no unit of package units", unit)
		}
		words = append(words, unit)
	}
	for _, w := range words {
		if !known[w] {
			t.Errorf("the grammar does not know %q", w)
		}
	}
}
