package scenario

import (
	"slices"
	"strings"
	"testing"

	"gswitch/transport"
)

func TestRC3Levels(t *testing.T) {
	x := RC3{Enabled: true, Cross: "flush"}
	if l := x.Loop(); !slices.Equal(l.Levels, transport.DesignLevels) || l.Cross != transport.Flush || l.Stop {
		t.Errorf("%+v", l)
	}
	if c := (&Transport{RC3: x}).LowClasses(5); !slices.Equal(c, []uint8{4, 3, 2}) {
		t.Errorf("classes %v", c)
	}
	x = RC3{Enabled: true, Cross: "push", Quotas: []int{10, 100, 1000, 10000}, Classes: []int{4, 2, 1, 0}, Stop: true, Burst: 43}
	if l := x.Loop(); !slices.Equal(l.Levels, transport.FourLevels) || l.Cross != transport.Push || !l.Stop || l.Burst != 43 || !slices.Equal((&Transport{RC3: x}).LowClasses(7), []uint8{4, 2, 1, 0}) {
		t.Errorf("%+v", l)
	}
	if off := (&Transport{}); off.RC3.Loop() != nil || off.LowClasses(5) != nil {
		t.Error("a loop that is off")
	}
}

func TestRC3IsChecked(t *testing.T) {
	for _, c := range []struct{ set, want string }{
		{"class: 2\n  transport: {mode: tcp, rc3: {enabled: true}}", "3 levels do not fit below class 2"},
		{"class: 5\n  transport: {mode: tcp, rc3: {enabled: true, classes: [4, 3]}}", "are 2 for 3 levels"},
		{"class: 5\n  transport: {mode: tcp, rc3: {enabled: true, classes: [4, 4, 3]}}", "class 4 of level 2 is not below 4"},
		{"class: 5\n  transport: {mode: go-back-n, rc3: {enabled: true}}", "go-back-n does not"},
		{"class: 5\n  weights: [0, 0, 1, 0, 0, 0, 0, 0]\n  transport: {mode: tcp, rc3: {enabled: true}}", "class 2 of level 3 has a weight"},
		{"class: 5\n  transport: {mode: tcp, rc3: {enabled: true}}\npfc: {enabled: true, classes: [5, 3]}", "class 3 of level 2 is lossless"},
		{"class: 5\n  transport: {mode: tcp, rc3: {enabled: true}}\nswitch: {one_queue: [s2]}", `there is no switch "s2"`},
		{"class: 5\n  transport: {mode: tcp, rc3: {enabled: true}}\nswitch: {one_queue: [s1..x]}", `"s1..x" is no range`},
		{"class: 5\n  transport: {mode: tcp, rc3: {enabled: true}}\nswitch: {one_queue: [s1..s1]}", ""},
		{"class: 5\n  transport: {mode: tcp, rc3: {enabled: true}}", ""},
	} {
		_, err := Parse("s.yaml", []byte("version: 1\ntopology: {generate: star(2), classes: {host: {rate: 1Gbps, delay: 1us}}}\nworkload: [{kind: flows, flows: [{from: h1, to: h2, size: 1KB}]}]\nduration: 1ms\nhosts:\n  "+c.set+"\n"), Options{})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.set, err, c.want)
		}
	}
}
