package gfabric

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"gswitch/cc"
	"gswitch/options"
	"gswitch/table"
)

func ccCommand() *cobra.Command {
	return catalogue[cc.Info]{
		name: "cc", one: "an algorithm", all: "algorithms", what: "the congestion control algorithms of hosts", examples: [2]string{"hpcc", "dcqcn-original"},
		list: cc.Infos,
		find: func(name string) (cc.Info, error) {
			in, ok := cc.Lookup(name)
			if !ok {
				return in, cc.UnknownError{Name: name}
			}
			return in, nil
		},
		writeList: writeAlgorithms,
		write:     func(w io.Writer, in cc.Info) error { return writeAlgorithm(w, &in) },
	}.command()
}

func writeAlgorithms(w io.Writer, infos []cc.Info) error {
	t := table.New("NAME", "DECIDES", "NEEDS", "PAPER")
	for _, in := range infos {
		t.Row(in.Name, in.Kind, in.Needs, in.Cite)
	}
	return t.Print(w)
}

func writeAlgorithm(w io.Writer, in *cc.Info) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", in.Name, in.Title)
	fmt.Fprintf(&b, "paper    %s\n", in.Paper)
	fmt.Fprintf(&b, "decides  %s\n", in.Kind)
	fmt.Fprintf(&b, "needs    %s\n", in.Needs)
	if in.Of != "" {
		fmt.Fprintf(&b, "is       %s with other defaults\n", in.Of)
	}
	if in.Note != "" {
		indent(&b, "", "note     ", in.Note)
	}
	writeOptions(&b, in.Params)
	_, err := io.WriteString(w, b.String())
	return err
}

// writeOptions describes what can stand under params.
func writeOptions(b *strings.Builder, params []options.Param) {
	b.WriteString("\nOPTIONS\n")
	for i := range params {
		p := &params[i]
		fmt.Fprintf(b, "\n  %s (%s)\n", p.Name, p.Unit)
		indent(b, optionMargin, "", p.Doc)
		indent(b, optionMargin, "default  ", p.Default)
		if r := p.Range(); r != "" {
			indent(b, optionMargin, "allowed  ", r)
		}
		if len(p.Choices) > 0 {
			indent(b, optionMargin, "allowed  ", strings.Join(p.Choices, ", "))
		}
		indent(b, optionMargin, "source   ", p.Source)
	}
}

// textWidth is where lines of prose are broken.
const textWidth = 80

// optionMargin stands before what is said of an option.
const optionMargin = "      "

// indent writes text behind a label, broken into lines.
func indent(b *strings.Builder, margin, label, text string) {
	line := margin + label
	next := margin + strings.Repeat(" ", len(label))
	empty := true
	for _, word := range strings.Fields(text) {
		switch {
		case empty:
			line += word
		case len(line)+1+len(word) > textWidth:
			b.WriteString(line + "\n")
			line = next + word
		default:
			line += " " + word
		}
		empty = false
	}
	b.WriteString(line + "\n")
}
