package control

import (
	"slices"
	"testing"

	"gswitch/frame"
)

// A switch whose port p1 is so slow that a pause of it lasts for 33 s.
const paused = `version: 1
memory: {frames: 8192}
control: {socket: /run/gswitch-test/never.sock}
switches:
  - name: s1
    ports:
      - {name: p1, wire: a, rate: 1Mbps}
      - {name: p2, wire: b}
    buffer: {size: 4MB}
    pfc: {classes: [3]}
  - name: s2
    ports:
      - {name: p1, wire: a}
      - {name: p2, wire: b}
`

// A neighbour's pause and the queue that it holds back are reported as they are,
// by the names of ports, with instants of one clock.
func TestPausesAndWaits(t *testing.T) {
	d, srv := run(t, paused)
	arrive := func(port uint16, b []byte) {
		t.Helper()
		err := d.engine.Worker(0).Do(func(now frame.Time) {
			d.units[0].sw.Nodes[0].Receive(now, port, []frame.Ref{d.engine.Worker(0).Pool().New(b)})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	list := func(method, key, body string) []any {
		t.Helper()
		code, v := call(t, srv, method, body)
		if code != 200 {
			t.Fatal(method, body, code, v)
		}
		l, _ := v[key].([]any)
		return l
	}
	if p, w := list("ListPauses", "pauses", "{}"), list("ListWaits", "waits", "{}"); len(p)+len(w) != 0 {
		t.Fatalf("before anything happens: %v, %v", p, w)
	}
	pause := append([]byte{1, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 7, 0x88, 0x08, 1, 1, 0, 1 << 3}, make([]byte, 42)...)
	pause[18+2*3], pause[19+2*3] = 0xff, 0xff
	arrive(0, pause)
	// One that its class holds back: PCP 3.
	arrive(1, append([]byte{2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 0x81, 0, 3 << 5, 0, 0x88, 0xb5}, make([]byte, 82)...))

	all := list("ListPauses", "pauses", "{}")
	if len(all) != 1 {
		t.Fatalf("%v", all)
	}
	p := all[0].(map[string]any)
	if p["switch"] != "s1" || p["port"] != "p1" || p["class"] != 3.0 || p["asked"] == true {
		t.Errorf("pause: %v", p)
	}
	waits := list("ListWaits", "waits", `{"switch":"s1","port":"p1"}`)
	if len(waits) != 1 {
		t.Fatalf("%v", waits)
	}
	w := waits[0].(map[string]any)
	from, _ := w["from"].([]any)
	if w["switch"] != "s1" || w["port"] != "p1" || w["class"] != 3.0 || w["frames"] != 1.0 || w["bytes"] == 0.0 || !slices.Contains(from, any("p2")) {
		t.Errorf("wait: %v", w)
	}
	for _, other := range []string{`{"switch":"s2"}`, `{"switch":"s1","port":"p2"}`} {
		if p, w := list("ListPauses", "pauses", other), list("ListWaits", "waits", other); len(p)+len(w) != 0 {
			t.Errorf("%s: %v, %v", other, p, w)
		}
	}
	for _, method := range []string{"ListPauses", "ListWaits"} {
		if code, v := call(t, srv, method, `{"switch":"s1","port":"p9"}`); code == 200 {
			t.Errorf("%s of no port: %v", method, v)
		}
	}
}
