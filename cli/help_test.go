// Package cli_test holds the command lines of all programs to what they have in
// common.
package cli_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"gswitch/cli/gcollect"
	"gswitch/cli/gfabric"
	"gswitch/cli/ghost"
	"gswitch/cli/gswitch"
	"gswitch/control/cli"
)

var programs = []func(string) *cobra.Command{gswitch.Command, ghost.Command, gfabric.Command, gcollect.Command}

// verbs returns all verbs of a program, itself too.
func verbs(c *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{c}
	for _, sub := range c.Commands() {
		all = append(all, verbs(sub)...)
	}
	return all
}

// Every page of help fits a terminal of 80 columns.
func TestHelpFitsTerminal(t *testing.T) {
	pages := 0
	for _, program := range programs {
		root := program("test")
		root.InitDefaultHelpCmd()
		root.InitDefaultCompletionCmd()
		for _, c := range verbs(root) {
			var out bytes.Buffer
			c.InitDefaultHelpFlag()
			c.SetOut(&out)
			if err := c.Help(); err != nil {
				t.Fatal(err)
			}
			pages++
			if !strings.Contains(out.String(), "Usage:\n  "+c.CommandPath()) {
				t.Errorf("%s: the page does not say how it is written:\n%s", c.CommandPath(), &out)
			}
			for line := range strings.Lines(out.String()) {
				if line = strings.TrimSuffix(line, "\n"); len([]rune(line)) > 80 {
					t.Errorf("%s --help: %d columns: %s", c.CommandPath(), len([]rune(line)), line)
				}
			}
		}
	}
	if pages < 150 {
		t.Errorf("only %d pages: this test does not find the verbs", pages)
	}
}

// A verb that is given nothing, and needs something, says what, how it is
// written, and shows an example.
func TestUsageNamesWhatIsMissing(t *testing.T) {
	asked := 0
	for _, program := range programs {
		for _, c := range verbs(program("test")) {
			words := strings.Fields(strings.TrimSuffix(c.Use, " [flags]"))
			needed := slices.ContainsFunc(words[1:], func(w string) bool { return !strings.ContainsAny(w, "[]") && strings.ToUpper(w) == w }) &&
				!strings.HasPrefix(words[1], "[")
			if !needed || c.Hidden {
				continue
			}
			asked++
			if !strings.Contains(c.Example, c.CommandPath()+" ") {
				t.Errorf("%s has no example", c.CommandPath())
			}
			var err error
			if c.Args != nil {
				err = c.Args(c, nil)
			}
			if err == nil {
				err = c.ValidateRequiredFlags()
			}
			if err == nil && c.RunE != nil {
				err = c.RunE(c, nil)
			}
			if err == nil || cli.ExitCode(err) != cli.ExitUsage {
				t.Errorf("%s without arguments: %v, want an error of usage", c.CommandPath(), err)
				continue
			}
			said := cli.Explained(c, err)
			for _, want := range []string{"  usage:    " + c.CommandPath(), "  example:  ", c.CommandPath() + " --help says more"} {
				if !strings.Contains(said, want) {
					t.Errorf("%s without arguments does not say %q:\n%s", c.CommandPath(), want, said)
				}
			}
			if strings.Contains(said, "arg(s)") {
				t.Errorf("%s does not name what is missing:\n%s", c.CommandPath(), said)
			}
		}
	}
	if asked < 30 {
		t.Errorf("only %d verbs need something: this test does not find them", asked)
	}
}
