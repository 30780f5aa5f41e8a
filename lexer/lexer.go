// Package lexer takes expressions apart, such as filters, into words and signs, and shows in
// them where they are wrong. What a word may have in it, and which signs there are, is up to
// each language.
package lexer

import (
	"fmt"
	"strings"
)

// Language is what languages differ in.
type Language struct {
	// Word reports whether a byte may stand in a word. Blanks never do.
	Word func(c byte) bool
	// Signs are those of several bytes. Any other byte that is in no word is a sign itself.
	Signs []string
}

// Lexer reads an expression, one token after the other.
type Lexer struct {
	*Language
	Text  string
	At    int    // of Token, in bytes
	End   int    // behind it
	Token string // a word or a sign; "": there is no more
}

// New returns a lexer that has read the first token.
func (l *Language) New(text string) Lexer {
	x := Lexer{Language: l, Text: text}
	x.Next()
	return x
}

const blanks = " \t\r\n"

// Next reads the next token.
func (x *Lexer) Next() {
	x.At = len(x.Text) - len(strings.TrimLeft(x.Text[x.End:], blanks))
	rest, n := x.Text[x.At:], 0
	for n < len(rest) && x.Word(rest[n]) && strings.IndexByte(blanks, rest[n]) < 0 {
		n++
	}
	if n == 0 && rest != "" {
		n = 1
		for _, s := range x.Signs {
			if strings.HasPrefix(rest, s) {
				n = len(s)
			}
		}
	}
	x.End, x.Token = x.At+n, rest[:n]
}

// Stop leaves out the rest of the expression.
func (x *Lexer) Stop() { x.End, x.Token = len(x.Text), "" }

// Mark says of an expression what is wrong at a byte of it, with a mark under the place.
func Mark(text, why string, at int) string {
	return fmt.Sprintf("%s at column %d:\n  %s\n  %s^", why, at+1, text, strings.Repeat(" ", at))
}
