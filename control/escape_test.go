package control

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"gswitch/config"
	"gswitch/frame"
	"gswitch/wire"
)

// Escape is turned on, changed and turned off while the switch runs; what is
// refused changes nothing.
func TestEscapeIsReloaded(t *testing.T) {
	d, srv := run(t, wires)
	apply := func(keys string) (int, string) {
		doc := wires
		if keys != "" {
			doc += "    pfc: {classes: [3]}\n    escape: " + keys + "\n"
		}
		body, err := json.Marshal(map[string]any{"yaml": doc, "file": "new.yaml"})
		if err != nil {
			t.Fatal(err)
		}
		code, v := call(t, srv, "Apply", string(body))
		msg, _ := v["message"].(string)
		return code, msg
	}
	if ports := escapePorts(t, srv); len(ports) != 0 {
		t.Fatalf("before: %v", ports)
	}
	for _, step := range []struct {
		keys    string
		on      float64
		free    float64
		dropped float64 // tokens that were understood and found no frame
	}{
		{"{ports: [p1], slots: 8}", 1, 8, 1},
		{"{ports: [p1], slots: 16, period: 50us}", 1, 16, 1}, // other places are counted anew
		{"{ports: [p1], slots: 16, period: 30us}", 1, 16, 2}, // the same places
		{"{ports: [p2], slots: 16}", 1, 16, 2},               // p1's neighbour does not take part any more
		{"", 0, 16, 2},
		{"{ports: [p1], slots: 16}", 1, 16, 3},
	} {
		if code, msg := apply(step.keys); code != 200 {
			t.Fatalf("%q: %d %s", step.keys, code, msg)
		}
		sendToken(t, d)
		p := escapePorts(t, srv)["p1"]
		got := [3]float64{p["escape_on"], p["escape_places free"], p["escape_tokens_total dropped"]}
		if got != [3]float64{step.on, step.free, step.dropped} {
			t.Errorf("%q: on, free, dropped %v, want %v %v %v", step.keys, got, step.on, step.free, step.dropped)
		}
	}
	before := string(d.Config().YAML())
	for keys, want := range map[string]string{
		"{ports: [p9]}":                `there is no port "p9"`,
		"{ports: []}":                  "names no port",
		"{ports: [p1], slots: 0}":      "0 is not between 1 and 65536",
		"{ports: [p1], period: 1}":     "unit",
		"{ports: [p1], queue: 2}":      "queue 3 of lossless class 3",
		"{ports: [p1], place: 3}":      "unknown key",
		"{ports: [p1], reclaim: 10ns}": "is not between 1us and 1h",
	} {
		if code, msg := apply(keys); code == 200 || !strings.Contains(msg, want) || !strings.HasPrefix(msg, "new.yaml:") {
			t.Errorf("%s: %d %s, want %s", keys, code, msg, want)
		}
	}
	if now := string(d.Config().YAML()); now != before {
		t.Errorf("what was refused changed the configuration:\n%s", now)
	}
	if p := escapePorts(t, srv)["p1"]; p["escape_on"] != 1 || p["escape_places free"] != 16 {
		t.Errorf("what was refused changed the switch: %v", p)
	}
	if s, err := config.Parse("", d.Config().YAML()); err != nil || s.Switches[1].Features.Get("escape") == nil {
		t.Errorf("the configuration that runs cannot be read again: %v", err)
	}
}

// escapePorts is what was counted at the ports of s2 by which frames may escape, by
// the names of the counters and what they distinguish.
func escapePorts(t *testing.T, srv *httptest.Server) map[string]map[string]float64 {
	t.Helper()
	code, v := call(t, srv, "ListCounters", `{"switch":"s2","feature":"escape"}`)
	if code != 200 {
		t.Fatal(code, v)
	}
	out := map[string]map[string]float64{}
	list, _ := v["counters"].([]any)
	for _, c := range list {
		c := c.(map[string]any)
		port, name := c["port"].(string), c["name"].(string)
		if kind, _ := c["kind"].(string); kind != "" {
			name += " " + kind
		}
		if out[port] == nil {
			out[port] = map[string]float64{}
		}
		out[port][name] = c["value"].(float64)
	}
	return out
}

// sendToken lets a token for a flow of which nothing waits come to s2 by p1.
func sendToken(t *testing.T, d *Daemon) {
	t.Helper()
	b := make([]byte, wire.MinFrame)
	f := wire.TokenFields{Src: wire.MAC{2, 0, 0, 0, 0, 9}, Hops: 1, Flow: wire.FlowID{Addrs: 1<<32 | 2, Ports: 3<<16 | 4, Proto: wire.ProtoUDP}}
	f.Encode(b)
	receive(t, d, b)
}

// A request for a flow without a route is counted where it came, and shown.
func TestRefusedRequestIsShown(t *testing.T) {
	d, srv := run(t, wires+"    pfc: {classes: [3]}\n    escape: {ports: [p1]}\n")
	b := make([]byte, wire.MinFrame)
	f := wire.RequestFields{Src: wire.MAC{2, 0, 0, 0, 0, 9}, Hops: 1, Class: 3, Flow: wire.FlowID{Addrs: 1<<32 | 2, Ports: 3<<16 | 4, Proto: wire.ProtoUDP}}
	f.Encode(b)
	receive(t, d, b)
	p := escapePorts(t, srv)["p1"]
	if p["escape_requests_total refused"] != 1 || p["escape_requests_total asked"] != 0 || p["escape_requests_total requested"] != 0 || p["escape_places parked"] != 0 {
		t.Errorf("%v", p)
	}
}

// receive lets a frame come to s2 by p1.
func receive(t *testing.T, d *Daemon, b []byte) {
	t.Helper()
	w := d.engine.Worker(0)
	if err := w.Do(func(now frame.Time) {
		d.units[1].sw.Nodes[0].Receive(now, 0, []frame.Ref{w.Pool().New(b)})
	}); err != nil {
		t.Fatal(err)
	}
}
