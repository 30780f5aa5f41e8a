package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	"gswitch/control"
)

// PrintJSON prints a message, indented.
func PrintJSON(w io.Writer, m proto.Message) error {
	raw, err := control.JSON(m)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		return err
	}
	b.WriteByte('\n')
	_, err = b.WriteTo(w)
	return err
}

// PrintValue prints as JSON what is no message.
func PrintValue(w io.Writer, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", text)
	return err
}

// Namer writes ports without their node where there is only one.
func Namer[T interface{ GetSwitch() string }](list []T) func(node, port string) string {
	for _, e := range list {
		if e.GetSwitch() != list[0].GetSwitch() {
			return func(node, port string) string { return node + "/" + port }
		}
	}
	return func(_, port string) string { return port }
}

// Plural writes a number of things.
func Plural(n int, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case strings.HasSuffix(what, "ch"):
		return fmt.Sprintf("%d %ses", n, what)
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// si writes a number with a decimal unit and three digits.
func si(v float64) string {
	units := []string{"", "k", "M", "G", "T"}
	i := 0
	for v >= 1000 && i < len(units)-1 {
		v, i = v/1000, i+1
	}
	if i == 0 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g%s", v, units[i])
}

// isTerminal reports whether people read what is written.
func isTerminal(w io.Writer) bool {
	f, ok := w.(interface{ Fd() uintptr })
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
