package policy

import (
	"fmt"
	"strings"
)

// Pos is a place in a text, counted from 1.
type Pos struct{ Line, Col int }

// Error is what is wrong with a policy, and where.
type Error struct {
	File string
	Pos
	Problem string // with a word about the mend
}

func (e *Error) Error() string {
	file := e.File
	if file == "" {
		file = "policy"
	}
	return fmt.Sprintf("%s:%d:%d: %s", file, e.Line, e.Col, e.Problem)
}

// Errors are all that were found, at most maxErrors.
type Errors []*Error

const maxErrors = 20

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
	best, least := "", 3
	for _, k := range known {
		if d := distance(strings.ToLower(word), strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	if best != "" {
		return "; did you mean " + best + "?"
	}
	return "; there are " + strings.Join(known, ", ")
}

// distance is how many letters must be put in, taken out or changed.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		last := row[0]
		row[0] = i + 1
		for j := range b {
			d := last
			if a[i] != b[j] {
				d = 1 + min(last, row[j], row[j+1])
			}
			last, row[j+1] = row[j+1], d
		}
	}
	return row[len(b)]
}
