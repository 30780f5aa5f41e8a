package lexer

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var small = &Language{Word: func(c byte) bool { return c >= 'a' && c <= 'z' || c == '.' }, Signs: []string{"&&", "=="}}

func TestTokens(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "",
		" \t\n":                  "",
		"a.b&&!c":                "a.b && ! c",
		"a & b==c":               "a & b == c",
		" (a===b) ":              "( a == = b )",
		"a\u00e4b":               "a \xc3 \xa4 b",
		"&&&":                    "&& &",
		"no blank\r\nin\ta word": "no blank in a word",
	} {
		var got []string
		for x := small.New(text); x.Token != ""; x.Next() {
			if got = append(got, x.Token); text[x.At:x.End] != x.Token {
				t.Errorf("%q: %q is not at %d", text, x.Token, x.At)
			}
		}
		if !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%q: %q, want %q", text, got, strings.Fields(want))
		}
	}
}

// Tokens are all that is in an expression, besides blanks.
func TestNothingIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, all := rapid.String().Draw(t, "text"), ""
		for x := small.New(text); x.Token != ""; x.Next() {
			all += x.Token
		}
		if want := strings.NewReplacer(" ", "", "\t", "", "\r", "", "\n", "").Replace(text); all != want {
			t.Errorf("%q became %q", text, all)
		}
	})
}

func TestMark(t *testing.T) {
	if got, want := Mark("a & b", "what is this", 2), "what is this at column 3:\n  a & b\n    ^"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	x := small.New("a b c")
	if x.Stop(); x.Token != "" {
		t.Error(x.Token)
	}
	if x.Next(); x.Token != "" || x.At != len(x.Text) {
		t.Errorf("%q at %d", x.Token, x.At)
	}
}
