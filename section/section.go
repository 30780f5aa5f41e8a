package section

import (
	"reflect"

	"go.yaml.in/yaml/v3"
)

// Section is a document, or a part of one, that is decoded and checked. It goes
// on after an error, so that all are reported at once.
type Section struct {
	file string
	at   map[string]*yaml.Node // where each key stands, by path
	bad  map[string]bool       // paths whose value was refused: not checked again
	errs Errors

	inAlias  int // how many aliases lead to the value at hand
	unfolded int // values that were reached through aliases
	lists    int // bytes of what lists have become
	flooded  bool
}

// Parse decodes a whole document into the struct that v points to. file is the
// name that errors carry.
func Parse(file string, data []byte, v any) *Section {
	s, root := Read(file, data)
	if root != nil {
		s.Into(root, v)
	}
	return s
}

// Decode decodes the part n of the document file into the struct that v points
// to.
func Decode(file string, n *yaml.Node, v any) *Section {
	s := &Section{file: file, at: map[string]*yaml.Node{}}
	s.Into(n, v)
	return s
}

// Read parses a document, for those that look at it before they know what to
// decode it into. The node is nil if it is not YAML, or empty.
func Read(file string, data []byte) (*Section, *yaml.Node) {
	s := &Section{file: file, at: map[string]*yaml.Node{}}
	return s, s.parse(data)
}

// Into decodes what Read returned into the struct that v points to.
func (s *Section) Into(n *yaml.Node, v any) {
	s.value(n, reflect.ValueOf(v).Elem(), "", "", 0)
}

// Fail notes that something is wrong with the value of a key, such as
// links[3].a. A key that the document does not have is placed at its nearest
// parent. What was refused already is not reported again.
func (s *Section) Fail(key, format string, args ...any) {
	var n *yaml.Node
	for at := key; at != ""; at = parentKey(at) {
		if s.bad[at] {
			return
		}
		if n == nil {
			n = s.at[at]
		}
	}
	if n == nil {
		n = s.at[""]
	}
	s.fail(n, key, format, args...)
}

// Has reports whether the document has the key.
func (s *Section) Has(key string) bool { return s.at[key] != nil }

// Written reports whether there is a document at all: what a program made has
// none.
func (s *Section) Written() bool { return len(s.at) > 0 }

// Refused reports whether the value of a key was refused when it was decoded.
func (s *Section) Refused(key string) bool { return s.bad[key] }

// OK reports whether nothing is wrong so far.
func (s *Section) OK() bool { return len(s.errs) == 0 }

// Err returns everything that is wrong, as Errors, or nil.
func (s *Section) Err() error {
	if len(s.errs) == 0 {
		return nil
	}
	s.errs.sort()
	return s.errs
}

func parentKey(key string) string {
	for i := len(key) - 1; i > 0; i-- {
		if key[i] == '.' || key[i] == '[' {
			return key[:i]
		}
	}
	return ""
}
