package cli

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// What fits stays as it was written, what does not is broken between words: a
// paragraph as a whole, a line of a list by itself.
func TestFold(t *testing.T) {
	long := strings.Repeat("word ", 15) + "broken here"
	for _, c := range []struct{ in, want string }{
		{"short\nlines", "short\nlines"},
		{"first\n" + long, "first " + strings.Repeat("word ", 14) + "word\nbroken here"},
		{"a\n\n  - " + long + "\n  b", "a\n\n  - " + strings.Repeat("word ", 14) + "word\n    broken here\n  b"},
	} {
		if got := fold(c.in); got != c.want {
			t.Errorf("%q\nbecomes %q\nwant    %q", c.in, got, c.want)
		}
	}
}

func TestPlaces(t *testing.T) {
	for _, c := range []struct {
		use    string
		needed []string
		most   int
	}{
		{"list", nil, 0},
		{"plan TOPOLOGY", []string{"TOPOLOGY"}, 1},
		{"fdb MAC PORT [vlan ID]", []string{"MAC", "PORT"}, 4},
		{"port PORT [FAULT VALUE]... [none]", []string{"PORT"}, -1},
		{"perf write|read --to ADDRESS", []string{"write|read"}, 1},
		{"route PREFIX (via ADDRESS [weight N])... | blackhole", []string{"PREFIX", "(via ADDRESS [weight N])..."}, -1},
	} {
		needed, most := places(c.use)
		if !slices.Equal(needed, c.needed) || most != c.most {
			t.Errorf("%s: %q, at most %d", c.use, needed, most)
		}
	}
}

// A mistake on the command line is answered with what is missing, how the verb is
// written, an example and where to read on; one in a file without.
func TestExplained(t *testing.T) {
	var fail error
	root := Root(&cobra.Command{Use: "prog"}, "1")
	root.AddCommand(Group("add", "Add", "  prog add fdb 02::1 p1\n  prog add acl x y", &cobra.Command{Use: "fdb MAC PORT [vlan ID]", Short: "an entry",
		Args: Args(cobra.RangeArgs(2, 4)), RunE: func(*cobra.Command, []string) error { return fail }}))
	end := "  usage:    prog add fdb MAC PORT [vlan ID] [flags]\n  example:  prog add fdb 02::1 p1\n  prog add fdb --help says more"
	for _, c := range []struct {
		args string
		fail error
		want string
	}{
		{"add fdb 02::1", nil, "prog: missing: PORT\n" + end},
		{"add fdb", nil, "prog: missing: MAC PORT\n" + end},
		{"add fdb a b c d e", nil, "prog: \"e\" is one argument too many\n" + end},
		{"add fdb --fly", nil, "prog: unknown flag: --fly\n" + end},
		{"add fdb a b", Usage(errors.New("no")), "prog: no\n" + end},
		{"add fdb a b", Input(errors.New("x.yaml:1: no")), "prog: x.yaml:1: no"},
		{"add fdb a b", errors.New("it failed"), "prog: it failed"},
		{"add", nil, "prog: prog add what? There are fdb\n  usage:    prog add COMMAND\n  example:  prog add fdb 02::1 p1\n  prog add --help says more"},
		{"add x", nil, "prog: prog add has no \"x\"; there are fdb\n  usage:    prog add COMMAND\n  example:  prog add fdb 02::1 p1\n  prog add --help says more"},
		{"ad", nil, "prog: unknown command \"ad\" for \"prog\"; did you mean add?\n  usage:    prog COMMAND\n  prog --help says more"},
	} {
		fail = c.fail
		root.SetArgs(strings.Fields(c.args))
		found, err := root.ExecuteC()
		if got := Explained(found, err); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.args, got, c.want)
		}
	}
}

func TestPages(t *testing.T) {
	var out bytes.Buffer
	root := Root(&cobra.Command{Use: "prog", Run: func(*cobra.Command, []string) {}}, "1")
	root.Flags().String("file", "", strings.Repeat("word ", 30))
	root.SetOut(&out)
	root.SetArgs([]string{"--help"})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "--file string") || strings.Count(out.String(), "word") != 30 {
		t.Errorf("something is missing:\n%s", &out)
	}
	for line := range strings.Lines(out.String()) {
		if len(line) > columns+1 {
			t.Errorf("%d columns: %s", len(line)-1, line)
		}
	}
}
