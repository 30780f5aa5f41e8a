package section

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Error is one thing wrong with a document.
type Error struct {
	File         string // as given to Load, or empty
	Line, Column int    // from 1; 0 where the document has no such place
	Key          string // path of the key, such as switches[0].ports[1].rate
	Problem      string // what is wrong and what to do
}

func (e Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File + ":")
	}
	if e.Line > 0 {
		fmt.Fprintf(&b, "%d:%d:", e.Line, e.Column)
	}
	if b.Len() > 0 {
		b.WriteByte(' ')
	}
	if e.Key != "" {
		b.WriteString(e.Key + ": ")
	}
	return b.String() + e.Problem
}

// Errors is everything wrong with a document, in the order of its lines.
type Errors []Error

func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i := range e {
		lines[i] = e[i].Error()
	}
	return strings.Join(lines, "\n")
}

// Rename names the keys of an error anew and leaves out where they stand, for a document
// that was made of something else, such as flags, and that the user has not seen. Errors
// behind each other that are the same then become one.
func Rename(err error, name func(key string) string) error {
	var errs Errors
	if !errors.As(err, &errs) {
		return err
	}
	renamed := make(Errors, len(errs))
	for i, e := range errs {
		renamed[i] = Error{Key: name(e.Key), Problem: e.Problem}
	}
	return slices.Compact(renamed)
}

func (e Errors) sort() {
	slices.SortStableFunc(e, func(a, b Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Key, b.Key))
	})
}
