package policy

import (
	"fmt"
	"math/big"
	"strings"

	"gswitch/units"
)

// What a text may have at most: a policy is a page, not a program.
const (
	MaxText  = 64 << 10
	maxDepth = 64
)

type tokenKind uint8

const (
	tokEnd tokenKind = iota
	tokIdent
	tokNumber
	tokString
	tokSign // one of the signs of the language, in text
)

type token struct {
	kind tokenKind
	text string
	num  *big.Rat
	pos  Pos
}

func (t *token) String() string {
	switch t.kind {
	case tokEnd:
		return "the end of the text"
	case tokString:
		return fmt.Sprintf("%q", t.text)
	}
	return `"` + t.text + `"`
}

// signs are the longest first.
var signs = []string{"...", "->", ":=", "<=", ">=", "==", "!=", "&&", "||", "..", "(", ")", "[", "]", "{", "}", ",", ";", ".", "=", "<", ">", "+", "-", "*", "/", "%", "!"}

// suffixes are what may stand behind a number, without or with a blank. What a percent
// is worth is a matter of where it stands.
var suffixes = func() map[string]int64 {
	all := map[string]int64{}
	for _, of := range []struct {
		kind  *units.Kind
		names string
	}{{units.Bytes, "B KB MB GB KiB MiB"}, {units.Time, "ns us ms s"}, {units.Bits, "kbps Mbps Gbps"}} {
		for name := range strings.FieldsSeq(of.names) {
			factor, _ := of.kind.Factor(name)
			all[name] = int64(factor)
		}
	}
	return all
}()

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }
func digit(c byte) bool  { return c >= '0' && c <= '9' }

// scan cuts a text into its words.
func scan(file, text string) ([]token, error) {
	fail := func(p Pos, format string, args ...any) error {
		return Errors{{file, p, fmt.Sprintf(format, args...)}}
	}
	if len(text) > MaxText {
		return nil, fail(Pos{1, 1}, "the text has %d bytes; a policy has at most %d", len(text), MaxText)
	}
	var out []token
	line, start := 1, 0
	for i := 0; i < len(text); {
		c := text[i]
		pos := Pos{line, i - start + 1}
		switch {
		case c == '\n':
			line, start = line+1, i+1
			i++
		case c == ' ' || c == '\t' || c == '\r':
			i++
		case c == '#' || strings.HasPrefix(text[i:], "//"):
			for i < len(text) && text[i] != '\n' {
				i++
			}
		case letter(c):
			j := i
			for j < len(text) && (letter(text[j]) || digit(text[j])) {
				j++
			}
			out = append(out, token{kind: tokIdent, text: text[i:j], pos: pos})
			i = j
		case digit(c):
			j := i
			for j < len(text) && digit(text[j]) {
				j++
			}
			if j+1 < len(text) && text[j] == '.' && digit(text[j+1]) {
				for j++; j < len(text) && digit(text[j]); j++ {
				}
			}
			if j-i > 24 {
				return nil, fail(pos, "a number of %d digits: none is larger than 4611686018427387904", j-i)
			}
			n, _ := new(big.Rat).SetString(text[i:j])
			out = append(out, token{kind: tokNumber, text: text[i:j], num: n, pos: pos})
			i = j
		case c == '"':
			j := strings.IndexAny(text[i+1:], "\"\n")
			if j < 0 || text[i+1+j] != '"' {
				return nil, fail(pos, "a string without its end; close it with \" on the same line")
			}
			out = append(out, token{kind: tokString, text: text[i+1 : i+1+j], pos: pos})
			i += j + 2
		default:
			k := 0
			for k < len(signs) && !strings.HasPrefix(text[i:], signs[k]) {
				k++
			}
			if k == len(signs) {
				return nil, fail(pos, "%q means nothing here", rune(c))
			}
			out = append(out, token{kind: tokSign, text: signs[k], pos: pos})
			i += len(signs[k])
		}
	}
	return append(out, token{kind: tokEnd, pos: Pos{line, len(text) - start + 1}}), nil
}
