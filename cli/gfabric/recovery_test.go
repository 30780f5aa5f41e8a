package gfabric

import (
	"encoding/json"
	"strings"
	"testing"

	"gswitch/transport"
)

func TestRecoveryListsAllSchemes(t *testing.T) {
	out, code := gfabric(t, "recovery", "list")
	for _, k := range transport.Kinds() {
		if code != 0 || !strings.Contains(out, k.Name) {
			t.Errorf("exit code %d, %s is not listed:\n%s", code, k.Name, out)
		}
		shown, code := gfabric(t, "recovery", "show", k.Name)
		shown = words(shown)
		if code != 0 || !strings.Contains(shown, words(k.Title)) || !strings.Contains(shown, k.Paper) {
			t.Errorf("%s: exit code %d, title or paper is not shown:\n%s", k.Name, code, shown)
		}
		for _, p := range k.Params {
			for _, want := range []string{p.Name + " (" + string(p.Unit) + ") " + p.Doc, "default " + p.Default, "source " + p.Source} {
				if !strings.Contains(shown, words(want)) {
					t.Errorf("%s: %q is not shown", k.Name, want)
				}
			}
		}
	}
	out, code = gfabric(t, "recovery", "list", "--json")
	var kinds []struct {
		Name   string
		Params []struct{ Name, Default string }
	}
	if err := json.Unmarshal([]byte(out), &kinds); err != nil || code != 0 || len(kinds) != len(transport.Kinds()) || kinds[1].Name != "irn" || len(kinds[1].Params) == 0 {
		t.Errorf("--json: exit code %d, %v: %+v", code, err, kinds)
	}
}

func TestRecoveryMistakesAreOfUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"recovery", "show", "cubic"}, "known are go-back-n, irn"},
		{[]string{"recovery", "show"}, "missing: NAME"},
		{[]string{"recovery"}, "gfabric recovery list"},
	} {
		if out, code := gfabric(t, c.args...); code != exitUsage || !strings.Contains(out, c.want) {
			t.Errorf("%v: exit code %d, %q", c.args, code, out)
		}
	}
}
