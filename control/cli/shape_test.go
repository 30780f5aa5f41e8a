package cli

import (
	"strings"
	"testing"

	"gswitch/control"
	"gswitch/control/api"
)

// What the help says of --json has the names that --json prints.
func TestShape(t *testing.T) {
	if got, want := Shape(&api.Pauses{}), "{pauses[] {switch, port, number, class, asked, short, from, to, held, causes[] {port, number, bytes, stuck}}, forgotten, now}"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	raw, err := control.JSON(&api.Pauses{Pauses: []*api.Pause{{Causes: []*api.PauseCause{{}}}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.FieldsFunc(Shape(&api.Pauses{}), func(r rune) bool { return strings.ContainsRune("{}[], ", r) }) {
		if !strings.Contains(string(raw), `"`+name+`":`) {
			t.Errorf("%s is not in %s", name, raw)
		}
	}
	for _, line := range strings.Split(fold(JSONHelp(&api.PFC{})), "\n") {
		if len(line) > columns {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
	var none *api.Counters
	if !strings.Contains(Shape(none), "feature") {
		t.Error(Shape(none))
	}
}
