package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// usageError is an error of the command line, or of what it names.
type usageError struct {
	error
	input bool
}

func (e usageError) Unwrap() error { return e.error }

// Usage makes an error one of the command line: the program shows beside it
// how the verb is written.
func Usage(err error) error { return usageError{error: err} }

// Input makes an error one of what the command line names, such as a file that
// is not there or says nonsense.
func Input(err error) error { return usageError{error: err, input: true} }

// Args makes what is wrong with the number of arguments an error of usage that
// names what is missing, as Use of the verb calls it, or too much.
func Args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, given []string) error {
		err := check(c, given)
		if err == nil {
			return nil
		}
		needed, most := places(c.Use)
		switch {
		case len(given) < len(needed):
			return Usage(fmt.Errorf("missing: %s", strings.Join(needed[len(given):], " ")))
		case most == 0 && len(given) > 0:
			return Usage(fmt.Errorf("%q: %s takes no arguments", given[0], c.CommandPath()))
		case most > 0 && len(given) > most:
			return Usage(fmt.Errorf("%q is one argument too many", given[most]))
		}
		return Usage(err)
	}
}

// places reads how a verb is written, as in "set PORT [FAULT VALUE]...": which
// arguments it needs, and how many it takes at most, -1 for any number.
func places(use string) (needed []string, most int) {
	optional := false
	for _, p := range pieces(use)[1:] {
		switch {
		case strings.HasPrefix(p, "-"): // flags
			return needed, most
		case p == "|":
			return needed, -1
		case strings.HasSuffix(p, "..."):
			most = -1
		case most >= 0:
			most += len(strings.Fields(p))
		}
		if optional = optional || strings.HasPrefix(p, "["); !optional {
			needed = append(needed, p)
		}
	}
	return needed, most
}

// pieces splits at blanks that stand in no brackets.
func pieces(use string) (out []string) {
	depth, from := 0, 0
	for i, r := range use + " " {
		switch r {
		case '(', '[':
			depth++
		case ')', ']':
			depth--
		case ' ':
			if depth == 0 {
				out = append(out, use[from:i])
				from = i + 1
			}
		}
	}
	return out
}

// Explained is an error of a program as it is printed: of the command line
// with how the verb is written, an example, and where to read on.
func Explained(c *cobra.Command, err error) string {
	text := prefixed(c.Root().Name(), inOneLine(err))
	if !aboutUsage(err) {
		return text
	}
	text += "\n" + hang("  usage:    ", "            ", use(c))
	if e := exampleOf(c); e != "" {
		text += "\n  example:  " + e
	}
	return text + "\n  " + c.CommandPath() + " --help says more"
}

// inOneLine is an error of cobra that lists below each other what was meant, as one line.
func inOneLine(err error) error {
	what, words, ok := strings.Cut(err.Error(), "\n\nDid you mean this?\n")
	if !ok {
		return err
	}
	return fmt.Errorf("%s; did you mean %s?", what, strings.Join(strings.Fields(words), " or "))
}

// exampleOf is the first example of a verb that has its name, with the lines on
// which it goes on. Others show what comes before it.
func exampleOf(c *cobra.Command) string {
	const broken, next = "\\\n", "\x00" // where a line goes on
	for _, e := range strings.Split(strings.ReplaceAll(c.Example, broken, next), "\n") {
		if strings.Contains(e+" ", c.CommandPath()+" ") {
			return strings.TrimSpace(strings.ReplaceAll(e, next, broken+"            "))
		}
	}
	return ""
}
