package config

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gswitch/escape"
	"gswitch/escape/point"
	"gswitch/frame"
	"gswitch/vswitch"
)

// escaping is a switch of two ports from whose queues frames escape.
func escaping(keys, rest string) string {
	return "version: 1\nswitches:\n  - name: s1\n    ports: [{interface: eth1}, {interface: eth2}]\n    escape: {" + keys + "}\n" + rest
}

const lossless3 = "    pfc: {classes: [3]}\n"

func TestEscape(t *testing.T) {
	c, err := Parse("", []byte("memory: {frames: 4096}\n"+escaping("ports: [eth2], slots: 8, reclaim: 2ms, printed: true", lossless3)))
	if err != nil {
		t.Fatal(err)
	}
	got := c.Resolved().Switches[0].VSwitch(nil)
	want := point.Config{Queue: 6, Period: 20 * frame.Microsecond,
		Config: escape.Config{Slots: 8, Flows: 256, PerFlow: 64, Reclaim: 2 * frame.Millisecond, Printed: true}}
	if got.Options[point.Name] != want || got.Ports[0].Options[point.Name] != nil || got.Ports[1].Options[point.Name] != (point.Neighbor{}) {
		t.Errorf("%+v, ports %v %v", got.Options, got.Ports[0].Options, got.Ports[1].Options)
	}
	if !slices.Equal(got.Class.Queue[:], []uint8{0, 1, 2, 3, 4, 5, 7, 7}) {
		t.Errorf("queues %v", got.Class.Queue)
	}
	// What the decoder lets pass the switch takes.
	arena := frame.MustArena(4096, 2048, 128)
	if _, err := vswitch.New(got, []*frame.Pool{frame.NewPool(arena)}); err != nil {
		t.Error(err)
	}
}

func TestEscapeRefusals(t *testing.T) {
	for name, tc := range map[string]struct{ doc, want string }{
		"no ports":      {escaping("slots: 8", lossless3), "switches[0].escape.ports: is missing"},
		"empty ports":   {escaping("ports: []", lossless3), "switches[0].escape.ports: names no port"},
		"no such port":  {escaping("ports: [eth3]", lossless3), `x.yaml:5:22: switches[0].escape.ports[0]: there is no port "eth3"`},
		"nothing":       {escaping("ports: [eth1]", ""), "x.yaml:5:13: switches[0].escape: has nothing to escape from"},
		"taken":         {escaping("ports: [eth1]", lossless3+"    classes: {queue: [0, 1, 2, 3, 4, 5, 6, 7]}\n"), "switches[0].escape.queue: 6 is the queue of class 6"},
		"below":         {escaping("ports: [eth1], queue: 2", lossless3), "switches[0].escape.queue: 2 is below queue 3 of lossless class 3, and what escapes must go first; put the class in a lower queue (classes.queue), or use a lossless class below 2"},
		"other profile": {escaping("ports: [eth1]", lossless3+"    qos: {q: {queues: [{queue: 6, weight: 3}]}}\n"), ""},
		"no such queue": {escaping("ports: [eth1], queue: 7", lossless3), "7 is not between 0 and 6"},
		"no time":       {escaping("ports: [eth1], period: 10ns", lossless3), "switches[0].escape.period: 10ns is less than a microsecond"},
		"short":         {escaping("ports: [eth1], reclaim: 10ns", lossless3), "switches[0].escape.reclaim: 10ns is not between 1us and 1h"},
		"long":          {escaping("ports: [eth1], reclaim: 2h", lossless3), "switches[0].escape.reclaim: 7200s is not between 1us and 1h"},
		"unknown key":   {escaping("ports: [eth1], period_us: 4", lossless3), "switches[0].escape.period_us: unknown key"},
		"workers":       {"workers: [{}, {}]\n" + escaping("ports: [eth1]", lossless3), "x.yaml:6:13: switches[0].escape: cannot stand beside ports of several workers, of which each would have a part of the places; give all ports of the switch to one (ports[].workers)"},
		"profile": {strings.Replace(escaping("ports: [eth1]", lossless3+"    qos: {q: {queues: [{queue: 6, weight: 3}]}}\n"), "{interface: eth2}", "{interface: eth2, qos: q}", 1),
			"switches[0].escape.queue: 6 has a weight in the profile of port eth2"},
		"lossradar": {strings.Replace(escaping("ports: [eth1]", lossless3+"    qos: {q: {lossradar: {queues: [0]}}}\n"), "{interface: eth2}", "{interface: eth2, qos: q}", 1),
			".lossradar: cannot stand beside escape, which puts something before the frames of a link, too; take one of the two out"},
	} {
		_, err := Parse("x.yaml", []byte(tc.doc))
		if tc.want == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
	}
}

// The example of the operating manual is one that a switch takes.
func TestEscapeExample(t *testing.T) {
	page, err := os.ReadFile("../docs/OPERATING.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("`escape: (\\{.*?\\})`").FindAllSubmatch(page, -1)
	if len(found) == 0 {
		t.Fatal("docs/OPERATING.md has no example of escape")
	}
	for _, m := range found {
		doc := "version: 1\nmemory: {frames: 4096}\nswitches:\n  - name: s1\n    ports: [{interface: up1}, {interface: up2}, {interface: eth1}]\n" + lossless3 + "    escape: " + string(m[1]) + "\n"
		c, err := Parse("", []byte(doc))
		if err != nil {
			t.Errorf("%s: %v", m[0], err)
			continue
		}
		got := c.Resolved().Switches[0].VSwitch(nil)
		takesPart := func(port int) bool { return got.Ports[port].Options[point.Name] != nil }
		if got.Options[point.Name] == nil || !takesPart(0) || !takesPart(1) || takesPart(2) {
			t.Errorf("%s: %+v", m[0], got.Options)
		}
		if _, err := vswitch.New(got, []*frame.Pool{frame.NewPool(frame.MustArena(4096, 2048, 128))}); err != nil {
			t.Errorf("%s: %v", m[0], err)
		}
	}
}

// Places are kept for flows that leave by one port.
func TestEscapeWantsPathsByFlow(t *testing.T) {
	elsewhere := spread("choose: scatter", bothUplinks) + lossless3 + "    escape: {ports: [h1]}\n"
	if _, err := Parse("x.yaml", []byte(elsewhere)); err != nil {
		t.Errorf("no way is one by which frames escape: %v", err)
	}
	for _, tc := range []struct{ paths, route, want string }{
		{"choose: hash", "", ""},
		{"choose: scatter", ", choose: weighted", ""},
		{"choose: adaptive", "", "x.yaml:9:21: switches[0].paths.choose: adaptive divides the frames of a flow: it cannot stand beside escape, which keeps places for a flow at one port; choose by flow (hash, weighted), or take escape out"},
		{"choose: hash", ", choose: flowlet", "switches[0].routes[0].choose: flowlet divides the frames"},
	} {
		_, err := Parse("x.yaml", []byte(spread(tc.paths, bothUplinks+tc.route)+lossless3+"    escape: {ports: [up1, up2]}\n"))
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s%s: %v, want %q", tc.paths, tc.route, err, tc.want)
		}
	}
}
