package gswitch_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
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

// What pages call Type.name is there: a method of such a type, or a function, type or
// field of that name.
func TestDocumentsNameWhatIsDeclared(t *testing.T) {
	var source strings.Builder
	err := filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		source.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	declared := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^func (?:\([^)]*\) )?(\w+)|^(?:type |\t)((?:\w+, )*\w+)`).FindAllStringSubmatch(source.String(), -1) {
		for name := range strings.SplitSeq(m[1]+m[2], ", ") {
			declared[name] = true
		}
	}
	name := regexp.MustCompile("`(?:[a-z]+\\.)?([A-Z][A-Za-z]*\\.([A-Za-z]+))`")
	seen := 0
	for _, page := range []string{"docs/ARCHITECTURE.md", "CONTRIBUTING.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range name.FindAllStringSubmatch(string(text), -1) {
			if seen++; !declared[m[2]] {
				t.Errorf("%s names %s, and nothing declares %s", page, m[1], m[2])
			}
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

// The tests that are said to hold the threat model exist where it says.
func TestThreatModelIsTested(t *testing.T) {
	text, err := os.ReadFile("docs/SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	cell := regexp.MustCompile("`([a-z0-9/]+)`: ((?:(?:Test|Fuzz)\\w+(?:, )?)+)")
	seen := 0
	for line := range strings.Lines(string(text)) {
		for _, m := range cell.FindAllStringSubmatch(line, -1) {
			files, err := filepath.Glob(m[1] + "/*_test.go")
			if err != nil {
				t.Fatal(err)
			}
			var code strings.Builder
			for _, f := range files {
				b, err := os.ReadFile(f)
				if err != nil {
					t.Fatal(err)
				}
				code.Write(b)
			}
			for name := range strings.SplitSeq(strings.TrimSuffix(m[2], ", "), ", ") {
				seen++
				if !strings.Contains(code.String(), "\nfunc "+name+"(") {
					t.Errorf("docs/SECURITY.md: %s has no %s", m[1], name)
				}
			}
		}
	}
	if seen < 5 {
		t.Errorf("only %d tests are named: this test reads the page wrongly", seen)
	}
}

// Text can be read in a terminal: lines of prose have 120 characters at most. Tables,
// commands and pictures have what they need.
func TestLinesOfProse(t *testing.T) {
	pages := []string{"README.md", "CONTRIBUTING.md", "deploy/README.md"}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md"} {
		more, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, more...)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		code := false
		for i, line := range strings.Split(string(text), "\n") {
			if strings.HasPrefix(line, "```") {
				code = !code
			}
			if n := utf8.RuneCountInString(line); n > 120 && !code && !strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "    ") && !strings.HasPrefix(line, "![") {
				t.Errorf("%s:%d has %d characters", page, i+1, n)
			}
		}
	}
}

// The table of bounds (docs/SECURITY.md) has each that a program shows (gswitch, ghost and gcollect show
// limits), and no other.
func TestBoundsAreShown(t *testing.T) {
	shown, inTable := map[string]bool{}, map[string]bool{}
	name := regexp.MustCompile(`Kind: "\w+", Name: (?:fmt\.Sprintf\()?"([^"]+)"`)
	all := regexp.MustCompile(`Kind: "\w+", Name: `)
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), "api.Limit{") {
			return err
		}
		found := name.FindAllStringSubmatch(string(text), -1)
		if n := len(all.FindAllString(string(text), -1)); n != len(found) {
			t.Errorf("%s: %d bounds, of which %d have a name that can be read here", path, n, len(found))
		}
		for _, m := range found {
			shown[strings.ReplaceAll(m[1], "%v", "ADDRESS")] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("docs/SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "\n| of | bound | most |\n|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	if !found || len(shown) < 40 {
		t.Fatalf("there is no table, or no bounds: %d", len(shown))
	}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, " | ")
		if len(cells) != 3 {
			t.Fatalf("%q", line)
		}
		if !shown[cells[1]] {
			t.Errorf("%q is in the table, and no program shows it", cells[1])
		}
		inTable[cells[1]] = true
	}
	for n := range shown {
		if !inTable[n] {
			t.Errorf("%q is shown, and not in the table", n)
		}
	}
}
