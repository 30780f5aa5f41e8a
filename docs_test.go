package gswitch_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What the documentation names exists: scenarios, folders, files and pages.
func TestDocumentsNameWhatExists(t *testing.T) {
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob("docs/*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	pages = append(append(pages, more...), "README.md", "CONTRIBUTING.md", "deploy/README.md")
	scenario := regexp.MustCompile(`\bscenarios/[\w./-]+\.yaml\b`)
	source := regexp.MustCompile("`([a-z0-9]+(?:/[a-z0-9_]+)*/[a-z0-9_]+\\.go)`")
	link := regexp.MustCompile(`\]\(([^)#:]+\.md)(?:#[^)]*)?\)`)
	doc := regexp.MustCompile(`\bdocs/[A-Za-z/]+\.md\b`)
	seen := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		check := func(name, path string) {
			seen++
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s names %s, which does not exist", page, name)
			}
		}
		for _, s := range append(scenario.FindAllString(string(text), -1), doc.FindAllString(string(text), -1)...) {
			check(s, s)
		}
		for _, m := range source.FindAllStringSubmatch(string(text), -1) {
			if !strings.HasPrefix(m[1], "github.com/") {
				check(m[1], m[1])
			}
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			check(m[1], filepath.Join(filepath.Dir(page), m[1]))
		}
	}
	if seen < 50 {
		t.Errorf("only %d names were found: this test reads the pages wrongly", seen)
	}
}

// The index leads to every page.
func TestIndexNamesEveryPage(t *testing.T) {
	index, err := os.ReadFile("docs/README.md")
	if err != nil {
		t.Fatal(err)
	}
	algorithms, err := os.ReadFile("docs/algorithms/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for folder, text := range map[string]string{"docs": string(index), "docs/algorithms": string(algorithms)} {
		pages, err := filepath.Glob(folder + "/*.md")
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range pages {
			if name := filepath.Base(p); name != "README.md" && !strings.Contains(text, "("+name+")") {
				t.Errorf("%s/README.md does not lead to %s", folder, name)
			}
		}
	}
}
