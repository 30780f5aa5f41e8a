package config

import (
	"reflect"

	"go.yaml.in/yaml/v3"
)

// Section is a part of some other document, decoded by the rules of this one.
type Section struct{ d decoder }

// ParseSection decodes a whole document into the struct that v points to,
// whose fields carry the tags described at the top of this package (default
// tags only after FillDefaults, id tags mean nothing here).
func ParseSection(file string, data []byte, v any) *Section {
	s := &Section{decoder{file: file, at: map[string]*yaml.Node{}}}
	if root := s.d.parse(data); root != nil {
		s.d.value(root, reflect.ValueOf(v).Elem(), "", "", 0)
	}
	return s
}

// DecodeSection decodes the part n of the document file into the struct that
// v points to.
func DecodeSection(file string, n *yaml.Node, v any) *Section {
	s := &Section{decoder{file: file, at: map[string]*yaml.Node{}}}
	s.d.value(n, reflect.ValueOf(v).Elem(), "", "", 0)
	return s
}

// Fail notes that something is wrong with the value of a key, such as
// links[3].a. A key that the document does not have is placed at its nearest
// parent.
func (s *Section) Fail(key, format string, args ...any) {
	at := key
	for s.d.at[at] == nil && at != "" {
		at = parentKey(at)
	}
	s.d.fail(s.d.at[at], key, format, args...)
}

// Has reports whether the document has the key.
func (s *Section) Has(key string) bool { return s.d.at[key] != nil }

// Err returns everything that is wrong, as Errors, or nil.
func (s *Section) Err() error {
	if len(s.d.errs) == 0 {
		return nil
	}
	s.d.errs.sort()
	return s.d.errs
}

func parentKey(key string) string {
	for i := len(key) - 1; i > 0; i-- {
		if key[i] == '.' || key[i] == '[' {
			return key[:i]
		}
	}
	return ""
}
