package gcollect

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"gswitch/collect"
	"gswitch/mirror"
)

func TestMarksAreShown(t *testing.T) {
	st := &collect.MarksState{
		Marks:  []collect.Marks{{Name: "web", Hosts: []string{"h1", "h2"}, Each: 1000, Rate: mirror.Rate{Copies: 10_000, Bytes: 2_420_000}, Since: time.Unix(0, 0)}},
		Budget: mirror.Budget{Capacity: mirror.Rate{Copies: 1_000_000}, Others: mirror.Rate{Copies: 900_000, Bytes: 9}, Granted: mirror.Rate{Copies: 10_000, Bytes: 2_420_000}}}
	var b bytes.Buffer
	showMarks(&b, st)
	got := strings.Join(strings.Fields(b.String()), " ")
	for _, want := range []string{"web 1000 10000 2420000 1970-01-01 00:00:00.000 they end h1,h2", "taken at most 1000000 -", "come without the debug bit 900000 9", "in use 910000 2420009"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
}

// What cannot be allowed is refused before a collector is asked.
func TestMarksAreChecked(t *testing.T) {
	for _, c := range []struct{ args, why string }{
		{"allow web", "--host is missing"},
		{"allow web --host h1 --most 0", "0 marks a second: between 1 and 1000000000"},
		{"allow web --host h1 --switches 256", "256 switches on the way"},
		{"allow web --host h1 --bytes -1", "-1 bytes of a copy"},
		{"allow web --host h1 --for -1h", "--for -1h0m0s"},
		{"allow", "missing: NAME"},
		{"end", "missing: NAME"},
	} {
		root := Command("test")
		root.SetArgs(append([]string{"marks"}, strings.Fields(c.args)...))
		root.SetOut(io.Discard)
		root.SetErr(io.Discard)
		if err := root.Execute(); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v, want %q", c.args, err, c.why)
		}
	}
}
