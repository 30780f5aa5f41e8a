package gfabric

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gswitch/config"
)

// switchOf is a document with what headroom prints for a switch.
func switchOf(r *calculation) string {
	doc := "version: 1\nswitches:\n  - name: s1\n    pfc: {classes: ["
	for c := range r.Classes {
		doc += fmt.Sprint(c, ",")
	}
	doc += "]}\n"
	for _, key := range r.Switch {
		doc += "    " + strings.Replace(key, "[{", "[{interface: eth0, ", 1) + "\n"
	}
	return doc
}

// Whatever the link and the classes: what headroom prints for input
// queues is taken, and the pause ends below where it begins.
func TestHeadroomOfInputQueuesIsTaken(t *testing.T) {
	t.Parallel()
	check := func(f headroomFlags) error {
		r, err := f.calculate()
		if err != nil {
			return nil // refused by itself
		}
		if _, err := config.Parse("x.yaml", []byte(switchOf(r))); err != nil {
			return fmt.Errorf("%+v: %w\n%s", f, err, switchOf(r))
		}
		var b, p, u uint64
		if _, err := fmt.Sscanf(r.Set[0], "switch.crossbar: {ingress: %dB, pause: %dB, unpause: %dB}", &b, &p, &u); err != nil || u < 1 || u >= p || p > b {
			return fmt.Errorf("%+v: %v: %v", f, r.Set, err)
		}
		return nil
	}
	flags := headroomFlags{queues: "input", rate: "100Gbps", cable: "100m", response: "1us", mtu: 9000, classes: 2, ports: 1}
	for _, v := range []struct {
		rate    string
		classes int
		mtu     int
	}{{"100Gbps", 2, 9000}, {"100Gbps", 4, 1500}, {"10Gbps", 4, 9000}, {"1Gbps", 4, 9000}} {
		f := flags
		f.rate, f.classes, f.mtu = v.rate, v.classes, v.mtu
		if _, err := f.calculate(); err != nil {
			t.Errorf("%+v: %v", v, err)
		}
		if err := check(f); err != nil {
			t.Error(err)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		f := flags
		f.rate = fmt.Sprint(rapid.SampledFrom([]int{1, 10, 25, 40, 100, 400, 800}).Draw(rt, "rate"), "Gbps")
		f.cable = fmt.Sprint(rapid.IntRange(0, 20000).Draw(rt, "cable"), "m")
		f.response = fmt.Sprint(rapid.IntRange(0, 100_000).Draw(rt, "response"), "ns")
		f.mtu, f.classes = rapid.IntRange(68, 9216).Draw(rt, "mtu"), rapid.IntRange(1, 8).Draw(rt, "classes")
		if rapid.Bool().Draw(rt, "sized") {
			f.buffer = fmt.Sprint(rapid.IntRange(1, 4<<20).Draw(rt, "buffer"), "B")
		}
		if rapid.Bool().Draw(rt, "batched") {
			f.batch = fmt.Sprint(rapid.IntRange(1, 64<<10).Draw(rt, "batch"), "B")
		}
		if err := check(f); err != nil {
			rt.Fatal(err)
		}
	})
}
