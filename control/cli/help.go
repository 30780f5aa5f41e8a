package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// columns is how wide a page of help is at most: that of a terminal as it opens.
const columns = 80

// Pages makes the pages of help of a program no wider than a terminal.
func Pages(root *cobra.Command) {
	root.SetHelpFunc(func(c *cobra.Command, _ []string) {
		about := c.Long
		if about == "" {
			about = c.Short
		}
		fmt.Fprintf(c.OutOrStdout(), "%s\n\n", fold(strings.TrimSpace(about)))
		usage(c.OutOrStdout(), c)
	})
	root.SetUsageFunc(func(c *cobra.Command) error {
		usage(c.OutOrStderr(), c)
		return nil
	})
}

// usage is the part of a page behind the text: how the verb is written, its
// examples, the verbs below it, its flags.
func usage(w io.Writer, c *cobra.Command) {
	fmt.Fprintf(w, "Usage:\n%s\n", hang("  ", "      ", use(c)))
	if len(c.Aliases) > 0 {
		fmt.Fprintf(w, "\nAliases:\n  %s\n", c.NameAndAliases())
	}
	if c.HasExample() {
		fmt.Fprintf(w, "\nExamples:\n%s\n", strings.TrimRight(c.Example, "\n"))
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(w, "\nAvailable Commands:\n")
		pad := c.NamePadding()
		for _, s := range c.Commands() {
			if s.IsAvailableCommand() || s.Name() == "help" {
				fmt.Fprintln(w, hang(fmt.Sprintf("  %-*s ", pad, s.Name()), strings.Repeat(" ", pad+3), s.Short))
			}
		}
	}
	if c.HasAvailableLocalFlags() {
		fmt.Fprintf(w, "\nFlags:\n%s", c.LocalFlags().FlagUsagesWrapped(columns))
	}
	if c.HasAvailableInheritedFlags() {
		fmt.Fprintf(w, "\nGlobal Flags:\n%s", c.InheritedFlags().FlagUsagesWrapped(columns))
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(w, "\nUse \"%s COMMAND --help\" for more about a command.\n", c.CommandPath())
	}
}

// use is how a verb is written.
func use(c *cobra.Command) string {
	if _, group := c.Annotations[groupMark]; group || !c.Runnable() {
		return c.CommandPath() + " COMMAND"
	}
	return c.UseLine()
}

// fold breaks the paragraphs of a text that are too wide, and leaves the others
// as their author broke them. Indented lines are lists and tables: each is
// broken by itself.
func fold(text string) string {
	var out, paragraph []string
	flush := func() {
		wide := false
		for _, l := range paragraph {
			wide = wide || len(l) > columns
		}
		if wide {
			paragraph = []string{wrap(strings.Join(paragraph, " "), columns)}
		}
		out = append(out, paragraph...)
		paragraph = nil
	}
	for _, l := range strings.Split(text, "\n") {
		text := strings.TrimLeft(l, " \t")
		switch indent := l[:len(l)-len(text)]; {
		case text == "" || indent != "":
			flush()
			if len(l) > columns {
				l = hang(indent, indent+"  ", text)
			}
			out = append(out, l)
		default:
			paragraph = append(paragraph, l)
		}
	}
	flush()
	return strings.Join(out, "\n")
}

// hang writes a text behind first, and the lines that it takes beyond the first
// one behind rest.
func hang(first, rest, text string) string {
	lines := strings.Split(wrap(text, columns-max(len(first), len(rest))), "\n")
	return first + strings.Join(lines, "\n"+rest)
}
