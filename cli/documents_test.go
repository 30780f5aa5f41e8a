package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// documents are the pages with commands for users.
func documents(t *testing.T) []string {
	t.Helper()
	pages := []string{"../README.md", "../deploy/README.md", "../examples/README.md"}
	for _, pattern := range []string{"../docs/*.md", "../docs/algorithms/*.md"} {
		more, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, more...)
	}
	return pages
}

var (
	inline  = regexp.MustCompile("`([^`]+)`")
	program = regexp.MustCompile(`^(?:sudo )?(?:bin/)?(gswitch|ghost|gfabric|gcollect) (.+)$`)
	file    = regexp.MustCompile(`^(?:scenarios|config|deploy|examples|docs)/[\w./-]+\.\w+$`)
)

// command is what a page says that users type.
type command struct {
	text  string
	typed bool // it stands on a line of its own, so that it is whole; others may name the verb alone
}

// commands returns those of a page.
func commands(page string) (all []command) {
	page = strings.ReplaceAll(page, "\\\n", "")
	for line := range strings.Lines(page) {
		line = strings.TrimSuffix(line, "\n")
		var said []command
		if typed, ok := strings.CutPrefix(line, "    "); ok {
			said = []command{{strings.TrimSpace(typed), true}}
		}
		for _, m := range inline.FindAllStringSubmatch(line, -1) {
			said = append(said, command{text: strings.ReplaceAll(m[1], `\|`, "|")})
		}
		for _, s := range said {
			if program.MatchString(s.text) {
				all = append(all, s)
			}
		}
	}
	return all
}

// words splits a command as a shell does, up to what is another command.
func words(command string) (out []string) {
	var word strings.Builder
	quote, open := rune(0), false
	flush := func() {
		if open {
			out = append(out, word.String())
		}
		word.Reset()
		open = false
	}
	for _, r := range command {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, open = r, true
		case quote == 0 && r == ' ':
			flush()
		case quote == 0 && (strings.ContainsRune("|>&;#", r) || r == '#' && !open):
			flush()
			return out
		default:
			word.WriteRune(r)
			open = true
		}
	}
	flush()
	return out
}

// Every command that a page shows is one: the verb is there, its flags
// are, it takes so many arguments, and files of the project are where it says.
func TestCommandsOfDocuments(t *testing.T) {
	tried, roots := map[string]int{}, map[string]*cobra.Command{}
	build := func() {
		for _, p := range programs {
			root := p("test")
			root.InitDefaultCompletionCmd()
			roots[root.Name()] = root
		}
	}
	build()
	for _, page := range documents(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, said := range commands(string(text)) {
			m := program.FindStringSubmatch(said.text)
			tried[m[1]]++
			if err := try(roots[m[1]], words(m[2]), said.typed || strings.HasSuffix(page, "CHECKLIST.md")); err != nil {
				t.Errorf("%s: %s: %v", page, said.text, err)
			}
			if strings.Contains(said.text, " -- ") { // flags remember where that stood
				build()
			}
		}
	}
	for name, n := range tried {
		if n < 10 {
			t.Errorf("%d commands of %s: this test reads the pages wrongly", n, name)
		}
	}
	if len(tried) < 4 {
		t.Errorf("commands of %v only", tried)
	}
}

// try reads a command line as the program does, and does not run it. One that is
// not whole may lack arguments, and values of flags.
func try(root *cobra.Command, args []string, whole bool) error {
	args = slices.DeleteFunc(args, func(a string) bool { return strings.HasPrefix(a, "[") }) // may be left out
	if slices.Contains(args, "...") || slices.Contains(args, "--help") {
		_, _, err := root.Find(args[:1])
		return err
	}
	c, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	if err := c.ParseFlags(rest); err != nil && (whole || strings.HasPrefix(err.Error(), "unknown")) {
		return err
	}
	if err := c.ValidateArgs(c.Flags().Args()); err != nil && (whole || c.Flags().NArg() > 0) {
		return err
	}
	for _, a := range c.Flags().Args() {
		if file.MatchString(a) {
			if _, err := os.Stat("../" + a); err != nil {
				return err
			}
		}
	}
	return nil
}

var (
	goTest   = regexp.MustCompile(`go test ((?:-\S+ )*)((?:\./\S* ?)+)(.*)`)
	chosen   = regexp.MustCompile(`-(run|bench) (?:'([^']+)'|(\S+))`)
	testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz)\w*)\(`)
	target   = regexp.MustCompile(`^(?:sudo )?make ([a-z-]+)`)
)

// Every test that a page names is there, and every target of make.
func TestChecksOfDocuments(t *testing.T) {
	rules, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	tests, targets := 0, 0
	for _, page := range append(documents(t), "../CONTRIBUTING.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		var said []string
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSuffix(line, "\n")
			if typed, ok := strings.CutPrefix(line, "    "); ok {
				said = append(said, strings.TrimSpace(typed))
			}
			for _, m := range inline.FindAllStringSubmatch(line, -1) {
				said = append(said, strings.ReplaceAll(m[1], `\|`, "|"))
			}
		}
		for _, s := range said {
			if m := target.FindStringSubmatch(s); m != nil {
				targets++
				if !regexp.MustCompile("(?m)^"+m[1]+":").Match(rules) && !slices.ContainsFunc(programs, func(p func(string) *cobra.Command) bool { return p("test").Name() == m[1] }) {
					t.Errorf("%s: %s: the Makefile has no such target", page, s)
				}
			}
			m := goTest.FindStringSubmatch(s)
			if m == nil {
				continue
			}
			have := functions(t, strings.Fields(m[2]))
			for _, c := range chosen.FindAllStringSubmatch(m[3], -1) {
				for _, name := range strings.Split(c[2]+c[3], "|") {
					tests++
					name, _, _ = strings.Cut(name, "/")
					if name != "^$" && !slices.ContainsFunc(have, regexp.MustCompile(name).MatchString) {
						t.Errorf("%s: %s: there is no test %s", page, s, name)
					}
				}
			}
		}
	}
	if tests < 20 || targets < 10 {
		t.Errorf("%d tests and %d targets: this test reads the pages wrongly", tests, targets)
	}
}

// functions returns the tests of packages, of those below too where a path ends with "...".
func functions(t *testing.T, packages []string) (names []string) {
	t.Helper()
	read := func(path string) error {
		text, err := os.ReadFile(path)
		for _, m := range testFunc.FindAllStringSubmatch(string(text), -1) {
			names = append(names, m[1])
		}
		return err
	}
	for _, p := range packages {
		dir, below := strings.CutSuffix(filepath.Join("..", p), "/...")
		err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && path != dir && !below:
				return filepath.SkipDir
			case strings.HasSuffix(path, "_test.go"):
				return read(path)
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", p, err)
		}
	}
	return names
}
