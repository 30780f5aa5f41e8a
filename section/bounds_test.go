package section

import (
	"errors"
	"runtime"
	"strings"
	"testing"
)

// large is an element of a list of which a few letters make much.
type large struct {
	A    [64]uint64
	Name string `yaml:"name"`
}

type many struct {
	List  []large        `yaml:"list"`
	Names map[string]int `yaml:"names" range:"0,1"`
	N     []int          `yaml:"n" range:"0,1"`
}

// Whatever a document of thirty megabytes says, it costs a bounded amount of
// memory, and says in few lines what is wrong.
func TestDocumentsAreBounded(t *testing.T) {
	repeat := func(head, s, tail string, bytes int) []byte {
		return []byte(head + strings.Repeat(s, (bytes-len(head)-len(tail))/len(s)) + tail)
	}
	const all = 30 << 20
	for name, doc := range map[string][]byte{
		"elements of nothing":          repeat("list: [", "{},", "{}]", all),
		"fewer of them":                repeat("list: [", "{},", "{}]", 4<<20),
		"as a block":                   repeat("list:\n", "- {}\n", "", all),
		"numbers that are none":        repeat("n: [", "x,", "x]", 2<<20),
		"unknown keys":                 repeat("", "x: 1\n", "", 2<<20),
		"lists in lists":               repeat("list: ", "[", "", 1<<20),
		"dashes":                       repeat("list:\n ", "- ", "x", all),
		"one long value":               repeat("n: ", "x", "", all),
		"one long key":                 repeat("", "k", ": 1", all),
		"commas":                       repeat("n: [", ",", "]", all),
		"nothing but words":            repeat("n: ", "x ", "", all),
		"anchors, and what is of them": repeat("list:\n - &a {name: b}\n", " - *a\n", "", all),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var v many
		err := Parse("x.yaml", doc, &v).Err()
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%s: taken", name)
			continue
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 1500<<20 {
			t.Errorf("%s: %d MiB for %d MiB", name, used>>20, len(doc)>>20)
		}
		var wrong Errors
		if !errors.As(err, &wrong) || len(wrong) > maxErrors+1 || len(err.Error()) > 1<<20 {
			t.Errorf("%s: %d errors, %d letters", name, len(wrong), len(err.Error()))
		}
	}
}

// Half a million elements are a document.
func TestLargeDocumentsAreTaken(t *testing.T) {
	type route struct {
		Prefix string `yaml:"prefix"`
		Via    string `yaml:"via"`
	}
	var v struct {
		Routes []route `yaml:"routes"`
	}
	doc := "routes:\n" + strings.Repeat("  - {prefix: 10.20.30.0/24, via: 10.255.255.254}\n", 500_000)
	if err := Parse("x.yaml", []byte(doc), &v).Err(); err != nil || len(v.Routes) != 500_000 {
		t.Errorf("%d routes, %v", len(v.Routes), err)
	}
}
