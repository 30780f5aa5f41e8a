package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gswitch/control"
	"gswitch/section"
)

// Exit codes.
const (
	ExitFailure = 1 // the operation failed
	ExitUsage   = 2 // the command line or the configuration is wrong
)

// ExitCode returns the exit code of a program that ends with an error.
func ExitCode(err error) int {
	var usage usageError
	var conf section.Errors
	var refused control.ConfigError
	if errors.As(err, &usage) || errors.As(err, &conf) || errors.As(err, &refused) || byCobra(err) {
		return ExitUsage
	}
	return ExitFailure
}

// aboutUsage reports whether an error is one of the command line itself.
func aboutUsage(err error) bool {
	var usage usageError
	return byCobra(err) || errors.As(err, &usage) && !usage.input
}

// byCobra reports whether an error is one of those of the command line for
// which cobra has no type.
func byCobra(err error) bool {
	return strings.HasPrefix(err.Error(), "unknown command") || strings.HasPrefix(err.Error(), "required flag")
}

// Root makes a command the root of a program: it prints nothing by itself, and
// what is wrong with flags are errors of usage.
func Root(root *cobra.Command, version string) *cobra.Command {
	root.SilenceErrors, root.SilenceUsage, root.Version = true, true, version
	root.SetVersionTemplate(root.Name() + " {{.Version}}\n")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return Usage(err)
	})
	Pages(root)
	return root
}

// CredentialFlags adds the flags by which a daemon at a TCP address is shown
// who asks. They are files: a token on the command line could be read by all.
func CredentialFlags(f *pflag.FlagSet, c *control.Credentials) {
	f.StringVar(&c.Token, "token", "", "with --socket host:port: file with the token that its control.api.token has")
	f.StringVar(&c.CA, "ca", "", "with --socket host:port: use TLS; file with the certificates that the daemon's is signed by")
	f.StringVar(&c.Cert, "cert", "", "with --socket host:port: file with a certificate that its control.api.ca takes, and --key")
	f.StringVar(&c.Key, "key", "", "file with the key of --cert")
}

// Main runs a program, prints what goes wrong and returns its exit code.
func Main(ctx context.Context, root *cobra.Command) int {
	out := new(Output)
	root.SetOut(out)
	c, err := root.ExecuteContextC(ctx)
	err = out.Failed(err)
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, Explained(c, err))
	return ExitCode(err)
}

// prefixed begins every error with the program's name. Indented lines belong
// to the one before.
func prefixed(program string, err error) string {
	lines := strings.Split(err.Error(), "\n")
	for i, l := range lines {
		if l != "" && !strings.HasPrefix(l, " ") {
			lines[i] = program + ": " + l
		}
	}
	return strings.Join(lines, "\n")
}

// groupMark is the annotation of a verb that is nothing without another word.
const groupMark = "group"

// Group is a verb that is nothing without another word.
func Group(use, short, example string, subs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Example: example, Annotations: map[string]string{groupMark: ""}, RunE: func(c *cobra.Command, a []string) error {
		var words []string
		for _, s := range c.Commands() {
			words = append(words, s.Name())
		}
		what := fmt.Sprintf("%s what? There are ", c.CommandPath())
		if len(a) > 0 {
			what = fmt.Sprintf("%s has no %q; there are ", c.CommandPath(), a[0])
		}
		// The program's name comes before it.
		return Usage(errors.New(strings.ReplaceAll(wrap(what+strings.Join(words, ", "), columns-len("gcollect: ")), "\n", "\n  ")))
	}}
	for _, s := range subs {
		if s.Example == "" {
			s.Example = examplesOf(s.Name(), example)
		}
	}
	c.AddCommand(subs...)
	return c
}

// examplesOf returns those examples of a group that are of one verb of it.
func examplesOf(verb, group string) string {
	var lines []string
	for _, l := range strings.Split(group, "\n") {
		if w := strings.Fields(l); len(w) > 2 && w[2] == verb {
			lines = append(lines, l)
		}
	}
	return strings.Join(lines, "\n")
}
