package config

import (
	"slices"
	"testing"
	"time"

	"gswitch/buffer"
	"gswitch/frame"
)

// Headroom and what it stands for are reported port by port, alike ones together.
func TestReserves(t *testing.T) {
	read := func(text string) []Reserved {
		t.Helper()
		c, err := Parse("document", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return c.Resolved().Reserves()
	}
	const ports = "    ports: [{interface: a, rate: 1Gbps}, {interface: b, rate: 10Gbps}, {interface: c, rate: 1Gbps}]\n"
	if v := read("version: 1\nswitches:\n  - name: s\n" + ports); len(v) != 0 {
		t.Errorf("without lossless classes: %+v", v)
	}
	v := read("version: 1\nswitches:\n  - name: s\n    pfc: {classes: [3]}\n    buffer: {lossless: {response: 200us}}\n" + ports)
	if len(v) != 2 || !slices.Equal(v[0].Ports, []string{"a", "c"}) || !slices.Equal(v[1].Ports, []string{"b"}) {
		t.Fatalf("%+v", v)
	}
	// Ten times the rate for the 200 us of both ends; frames and cable are the same.
	for i, rate := range []uint64{1e9, 10e9} {
		more := buffer.Headroom(buffer.Link{Rate: rate, MaxFrame: 1518, Overhead: 24, Response: 200 * frame.Microsecond}, 0).Total()
		less := rate / 8 * 200 / 1e6
		if r := v[i]; r.Switch != "s" || !r.Computed || uint64(r.Rate) != rate || r.Response != 200*time.Microsecond || r.Bytes < less || r.Bytes > more+4000 {
			t.Errorf("%+v: want %d to %d B", r, less, more+4000)
		}
	}
	v = read("version: 1\nswitches:\n  - name: s\n    pfc: {classes: [3]}\n    buffer: {lossless: {headroom: 64KiB}}\n    ports: [{interface: a, rate: 1Gbps}]\n")
	if len(v) != 1 || v[0].Bytes != 64<<10 || v[0].Computed || v[0].Response != 50*time.Microsecond {
		t.Errorf("given: %+v", v)
	}
	if v := read("version: 1\nswitches:\n  - name: s\n    crossbar: {ingress: 1MiB}\n    pfc: {classes: [3]}\n" + ports); len(v) != 0 {
		t.Errorf("of input queues: %+v", v)
	}
}
