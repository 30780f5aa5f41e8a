package scenario

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"gswitch/section"
	"gswitch/units"
	"gswitch/vswitch"
)

// Sizes of switches and hosts that nothing keeps in 32 bits.
var wide = []string{"switch.buffer.size", "switch.paths.thresholds", "switch.push_out.port", "switch.push_out.queue", "hosts.payload"}

// A size that switches or hosts keep in 32 bits has that range: no key is cut
// to what is left of it.
func TestNothingIsCut(t *testing.T) {
	seen, limit := 0, "0B and 4294967295B"
	var walk func(path string, typ reflect.Type)
	walk = func(path string, typ reflect.Type) {
		for _, f := range section.Fields(typ) {
			key := path + "." + f.Key
			if s := sectionOf(f.Type); s != nil {
				if f.Type.Kind() == reflect.Struct || key == "switch.ecn.pi" {
					walk(key, s)
				}
				continue
			}
			if f.Type != reflect.TypeFor[units.Size]() || slices.Contains(wide, key) {
				continue
			}
			seen++
			keys := strings.Split(key, ".")
			inner := "5GiB"
			for _, k := range slices.Backward(keys) {
				inner = "{" + k + ": " + inner + "}"
			}
			text := small + strings.TrimSuffix(strings.TrimPrefix(inner, "{"), "}") + "\n"
			if _, err := Parse("s.yaml", []byte(text), Options{}); err == nil || !strings.Contains(err.Error(), "s.yaml:9:") || !strings.Contains(err.Error(), key+": 5GiB is not between "+limit) {
				t.Errorf("%s: %v", key, err)
			}
		}
	}
	walk("switch", reflect.TypeFor[Switch]())
	walk("hosts", reflect.TypeFor[Hosts]())
	walk("pfc", reflect.TypeFor[PFC]())
	limit = "" // which a system may set lower
	for _, f := range vswitch.Features() {
		if f.Whole != nil && !f.Daemons {
			walk("switch."+f.Name, reflect.TypeOf(f.Whole()).Elem())
		}
	}
	if seen < 20 {
		t.Errorf("%d sizes seen", seen)
	}
}

// Nor does what is in range grow out of it at a faster link.
func TestNothingGrowsTooLarge(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"switch: {ecn: {kmin: 1GB, kmax: 4GB, at: 50Gbps}}\n", "s.yaml:9:42: switch.ecn.at: makes 8e+09 bytes of the link of 100Gbps between h1 and s1; at most 4294967295B are possible"},
		{"switch: {ecn: {at: 1Gbps, pi: {ref: 100MB, a: 0.00001, b: 0.000001, period: 1us}}}\n", "switch.ecn.at: makes 1e+10 bytes"},
		{"switch: {buffer: {headroom_delays: 1000}}\n", ""}, // 12.5 MB
		{"switch: {ecn: {kmin: 1GB, kmax: 4GB, at: 100Gbps}}\n", ""},
		{"topology: {generate: star(4), classes: {host: {rate: 100Gbps, delay: 1ms}}}\nswitch: {buffer: {headroom_delays: 1000}}\n", "switch.buffer.headroom_delays: makes 1.25e+10 bytes"},
	} {
		text := small + c.text
		if strings.HasPrefix(c.text, "topology") {
			text = strings.Replace(small, "topology:\n  generate: star(4)\n  classes: {host: {rate: 100Gbps, delay: 1us}}\n", "", 1) + c.text
		}
		switch _, err := Parse("s.yaml", []byte(text), Options{}); {
		case c.want == "" && err != nil:
			t.Errorf("%q: %v", c.text, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%q\n gave %v\n want %s", c.text, err, c.want)
		}
	}
}
