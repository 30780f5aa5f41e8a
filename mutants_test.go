package gswitch_test

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

var tryMutants = flag.Bool("mutants", false, "build each defect of testdata/mutants.yaml into its package, and see the test fail that is said to (minutes)")

// mutant is a defect, and the test that finds it.
type mutant struct {
	Is       string // what an attacker who profits from it would do
	File     string
	Old, New string // of the file; Old stands there once
	Fails    string // package and test, such as "wire TestX" or "scenarios TestShort/tcp/queues"
}

// Each defect of testdata/mutants.yaml can still be put in, in one place, and has a test.
// With -mutants it is put in (go help build, -overlay), and the test has to fail.
func TestMutants(t *testing.T) {
	data, err := os.ReadFile("testdata/mutants.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all []mutant
	dec := yaml.NewDecoder(strings.NewReader(string(data)))
	dec.KnownFields(true)
	if err := dec.Decode(&all); err != nil || len(all) == 0 {
		t.Fatal(len(all), err)
	}
	for _, m := range all {
		t.Run(strings.ReplaceAll(m.Is, " ", "-"), func(t *testing.T) { m.check(t) })
	}
}

// Access rights are held by tests (docs/SECURITY.md), and for each line of that table a defect is
// known that one of them finds. Of units, which are no program, none can be put in; of isolation at large
// each means has a line of its own.
func TestEachLineOfDefence(t *testing.T) {
	data, err := os.ReadFile("testdata/mutants.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all []mutant
	if err := yaml.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, m := range all {
		_, name, _ := strings.Cut(m.Fails, " ")
		name, _, _ = strings.Cut(name, "/")
		found[name] = true
	}
	page, err := os.ReadFile("docs/SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| who | may | may not | held by |\n|---|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	lines := strings.Split(table, "\n")
	if len(lines) < 40 {
		t.Fatalf("the table has %d lines", len(lines))
	}
	for _, line := range lines {
		who, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		held := line[strings.LastIndex(strings.TrimSuffix(line, " |"), " | ")+3:]
		if strings.HasPrefix(who, "who takes over a daemon that the package's unit runs") || who == "hosts behind two ports, to the traffic of two others" {
			continue
		}
		if !slices.ContainsFunc(regexp.MustCompile(`\b(Test|Fuzz)\w+`).FindAllString(held, -1), func(name string) bool { return found[name] }) {
			t.Errorf("%s: testdata/mutants.yaml has no defect that one of these finds: %s", who, held)
		}
	}
}

func (m *mutant) check(t *testing.T) {
	text, err := os.ReadFile(m.File)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), m.Old); n != 1 || m.Old == m.New {
		t.Fatalf("%s: %q stands there %d times, once is wanted", m.File, m.Old, n)
	}
	dir, full, _ := strings.Cut(m.Fails, " ")
	name, part, _ := strings.Cut(full, "/")
	if !hasTest(t, dir, name) {
		t.Fatalf("%s has no test %s", dir, name)
	}
	if !*tryMutants {
		return
	}
	file, err := filepath.Abs(m.File)
	if err != nil {
		t.Fatal(err)
	}
	with := filepath.Join(t.TempDir(), filepath.Base(m.File))
	if err := os.WriteFile(with, []byte(strings.Replace(string(text), m.Old, m.New, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {file: with}})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "go", "test", "-overlay", list, "-timeout", "5m", "-run", "^"+name+"$/"+part, "./"+dir).CombinedOutput()
	if err == nil || !regexp.MustCompile(`(?m)^\s*--- FAIL|^panic: `).Match(out) {
		t.Errorf("%s does not fail: %v\n%s", full, err, out)
	}
}

// hasTest reports whether a package has a test.
func hasTest(t *testing.T, dir, name string) bool {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nfunc "+name+"(t *testing.T)") {
			return true
		}
	}
	return false
}
