package section

import (
	"reflect"
	"testing"
)

// A changed default of a key that there is not is a mistake that would silently change
// nothing.
func TestDefaultsOfUnknownKeys(t *testing.T) {
	type Link struct {
		Rate int `yaml:"rate" default:"1"`
	}
	type wrong struct {
		Link `defaults:"rat=2"`
	}
	defer func() {
		if recover() == nil {
			t.Error("a default for a key that there is not is accepted")
		}
	}()
	Fields(reflect.TypeFor[wrong]())
}
