package policy

import (
	"fmt"
	"strings"

	"gswitch/units"
)

// Pos is a place in a text, counted from 1.
type Pos struct{ Line, Col int }

// Error is what is wrong with a policy, and where.
type Error struct {
	File string
	Pos
	Problem string // with what to do about it
}

func (e *Error) Error() string {
	file := e.File
	if file == "" {
		file = "policy"
	}
	return fmt.Sprintf("%s:%d:%d: %s", file, e.Line, e.Col, e.Problem)
}

// Errors are all that were found.
type Errors []*Error

func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i := range e {
		lines[i] = e[i].Error()
	}
	return strings.Join(lines, "\n")
}

// nearest returns "; did you mean x?" for the known word that is like word, or a
// list of the known ones.
func nearest(word string, known []string) string {
	if best := units.Nearest(word, known); best != "" {
		return "; did you mean " + best + "?"
	}
	return "; there are " + strings.Join(known, ", ")
}
