package control

import (
	"strings"
	"testing"
)

// A port of a wire that is disabled takes the carrier of its other end; enabled
// again, it gives it back. A document that says so from the start is the same.
func TestDisabledPortTakesCarrier(t *testing.T) {
	d, srv := run(t, wires)
	up := func() map[string]string {
		t.Helper()
		code, m := call(t, srv, "ListPorts", "{}")
		if code != 200 {
			t.Fatal(code, m)
		}
		states := map[string]string{}
		for _, p := range m["ports"].([]any) {
			port := p.(map[string]any)
			states[port["switch"].(string)+"/"+port["name"].(string)], _ = port["state"].(string)
		}
		return states
	}
	expect := func(when string, down ...string) {
		t.Helper()
		for name, state := range up() {
			want := "up"
			for _, prefix := range down {
				if n, why, _ := strings.Cut(prefix, ": "); n == name {
					want = why
				}
			}
			if !strings.Contains(state, want) {
				t.Errorf("%s, %s is %q, want %q", when, name, state, want)
			}
		}
	}
	expect("at the start")
	if _, err := d.Apply(parse(t, strings.Replace(wires, "{name: p1, wire: a}", "{name: p1, wire: a, enabled: false}", 1)), "test.yaml", false); err != nil {
		t.Fatal(err)
	}
	expect("disabled", "s2/p1: disabled", "s1/p1: no carrier")
	if _, err := d.Apply(parse(t, wires), "test.yaml", false); err != nil {
		t.Fatal(err)
	}
	expect("enabled again")

	d, srv = run(t, strings.Replace(wires, "{name: p2, wire: b}", "{name: p2, wire: b, enabled: false}", 1))
	expect("disabled from the start", "s2/p2: disabled", "s1/p2: no carrier")
	// The neighbour is built anew, with a port that has none of it.
	if _, err := d.Apply(parse(t, strings.Replace(strings.Replace(wires, "{name: p2, wire: b}", "{name: p2, wire: b, enabled: false}", 1), "- name: s1\n", "- name: s1\n    seed: 7\n", 1)), "test.yaml", false); err != nil {
		t.Fatal(err)
	}
	expect("built anew", "s2/p2: disabled", "s1/p2: no carrier")
}
