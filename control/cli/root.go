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

// usageError is an error of the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// Usage makes an error one of the command line.
func Usage(err error) error { return usageError{err} }

// ExitCode returns the exit code of a program that ends with an error.
func ExitCode(err error) int {
	var usage usageError
	var conf section.Errors
	var refused control.ConfigError
	// cobra has no type for these two.
	if errors.As(err, &usage) || errors.As(err, &conf) || errors.As(err, &refused) || strings.HasPrefix(err.Error(), "unknown command") || strings.HasPrefix(err.Error(), "required flag") {
		return ExitUsage
	}
	return ExitFailure
}

// Root makes a command the root of a program: it prints nothing by itself, and
// what is wrong with flags are errors of usage.
func Root(root *cobra.Command, version string) *cobra.Command {
	root.SilenceErrors, root.SilenceUsage, root.Version = true, true, version
	root.SetVersionTemplate(root.Name() + " {{.Version}}\n")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return Usage(fmt.Errorf("%w; see %s --help", err, c.CommandPath()))
	})
	return root
}

// CredentialFlags adds the flags by which a daemon at a TCP address is shown
// who asks. They are files: a token on the command line could be read by all.
func CredentialFlags(f *pflag.FlagSet, c *control.Credentials) {
	f.StringVar(&c.Token, "token", "", "with --socket host:port: file with the token that its control.api.token has")
	f.StringVar(&c.CA, "ca", "", "with --socket host:port: speak TLS; file with the certificates that the daemon's is signed by")
	f.StringVar(&c.Cert, "cert", "", "with --socket host:port: file with a certificate that its control.api.ca takes, and --key")
	f.StringVar(&c.Key, "key", "", "file with the key of --cert")
}

// Main runs a program, prints what goes wrong and returns its exit code.
func Main(ctx context.Context, root *cobra.Command) int {
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, prefixed(root.Name(), err))
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

// Args makes what cobra says of arguments an error of usage.
func Args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, a []string) error {
		if err := check(c, a); err != nil {
			return Usage(fmt.Errorf("%w; see %s --help", err, c.CommandPath()))
		}
		return nil
	}
}

// Group is a verb that is nothing without another word.
func Group(use, short, example string, subs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Example: example, RunE: func(c *cobra.Command, a []string) error {
		var words []string
		for _, s := range c.Commands() {
			words = append(words, s.Name())
		}
		if len(a) > 0 {
			return Usage(fmt.Errorf("%s: unknown %q; there are %s", c.CommandPath(), a[0], strings.Join(words, ", ")))
		}
		return Usage(fmt.Errorf("%s what? There are %s", c.CommandPath(), strings.Join(words, ", ")))
	}}
	c.AddCommand(subs...)
	return c
}
