package control

import (
	"strings"
	"testing"

	"gswitch/control/api"
)

// Faults reach the engine when they are set, and leave it, while the port
// stays open; what cannot be is refused and changes nothing.
func TestFaultsAreSetLive(t *testing.T) {
	d, srv := run(t, wires)
	faulty := func() bool {
		for _, p := range d.engine.Stats().Ports {
			if p.Name == "s1/p2" {
				return p.Faulty
			}
		}
		t.Fatal("the port is gone")
		return false
	}
	before := d.units[0].ports["p2"]
	for _, c := range []struct {
		faults string
		want   string // in the change, or the error
		faulty bool
	}{
		{`{"loss":"1%","burst":"4"}`, "+ switches[s1].ports[p2].faults: {loss: 1%, burst: 4, seed: ", true},
		{`{"loss":"2%"}`, "~ switches[s1].ports[p2].faults.loss: 1% -> 2%", true},
		{`{"los":"2%"}`, `there is no fault "los"; did you mean "loss"?`, true},
		{`{"loss":"200%"}`, `loss: "200%" is not a share; write 0.1% or 0.001, from 0 to 1`, true},
		{`{"reorder":"1%"}`, "faults.reorder: needs reorder_delay", true},
		{`{"none":"","jitter":"3us"}`, "~ switches[s1].ports[p2].faults.jitter: 0ns -> 3us", true},
		{`{"jitter":"none"}`, "- switches[s1].ports[p2].faults: {jitter: 3us, seed: ", false},
		{`{"corrupt":"1%"}`, "+ switches[s1].ports[p2].faults", true},
		{`{"none":""}`, "- switches[s1].ports[p2].faults", false},
	} {
		_, v := call(t, srv, "Edit", `{"switch":"s1","set_port":{"port":"p2","faults":`+c.faults+`}}`)
		got, _ := v["message"].(string)
		if list, ok := v["changes"].([]any); ok {
			for _, c := range list {
				got += c.(string) + "\n"
			}
		}
		if !strings.Contains(got, c.want) || faulty() != c.faulty {
			t.Errorf("%s: %q, want %q; the port is faulty: %v", c.faults, got, c.want, faulty())
		}
	}
	if d.units[0].ports["p2"] != before {
		t.Error("the port was opened again")
	}
	_, v := call(t, srv, "ListPorts", `{"switch":"s1","port":"p2"}`)
	if _, has := v["ports"].([]any)[0].(map[string]any)["faults"]; has {
		t.Error("a port at which nothing went wrong reports faults")
	}
}

func TestJSONOfMaps(t *testing.T) {
	b, err := JSON(&api.Faults{Lost: map[string]uint64{"link-loss": 2, "link-fcs": 1}})
	if err != nil || !strings.Contains(string(b), `"lost":{"link-fcs":1,"link-loss":2}`) {
		t.Errorf("%s, %v", b, err)
	}
	if b, err := JSON(&api.Faults{}); err != nil || !strings.Contains(string(b), `"lost":{}`) {
		t.Errorf("%s, %v", b, err)
	}
}
