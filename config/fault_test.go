package config

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gswitch/fault"
	"gswitch/frame"
)

func TestShare(t *testing.T) {
	for text, want := range map[string]Share{"1%": 0.01, "0.1%": 0.001, "0.07%": 0.0007, "100%": 1, "0": 0, "0.25": 0.25, "1e-3": 0.001, "5 %": 0.05} {
		var s Share
		if err := s.UnmarshalText([]byte(text)); err != nil || s != want {
			t.Errorf("%q is %v, %v", text, float64(s), err)
		}
	}
	for _, text := range []string{"", "%", "101%", "-1%", "2", "NaN", "1%%", "0x1p-4", "1_0%", "1e-3%", "half"} {
		if err := new(Share).UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), "write 0.1%") {
			t.Errorf("%q: %v", text, err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s, again := Share(rapid.Float64Range(0, 1).Draw(t, "share")), Share(0)
		if err := again.UnmarshalText([]byte(s.String())); err != nil || again != s {
			t.Fatalf("%v is written %s and read %v: %v", float64(s), s, float64(again), err)
		}
	})
}

const faultyPort = "version: 1\nswitches:\n  - name: s\n    ports:\n      - {wire: w, rate: 10Gbps}\n      - name: p\n        wire: w\n        faults: "

func TestFaultsOfAPort(t *testing.T) {
	c, err := Parse("f.yaml", []byte(faultyPort+"{loss: 1%, burst: 8, corrupt: 0.1%, reorder: 0.2%, reorder_delay: 50us, jitter: 10us, duplicate: 0.003}\n"))
	if err != nil {
		t.Fatal(err)
	}
	p := &c.Resolved().Switches[0].Ports[1]
	got, seed := p.Fault()
	want := fault.Config{Burst: fault.Bursts(0.01, 8), Corrupt: 0.001, Reorder: 0.002, ReorderBy: 50 * frame.Microsecond, Jitter: 10 * frame.Microsecond, Duplicate: 0.003}
	if got.Burst != want.Burst || got.Loss != 0 || got.Corrupt != want.Corrupt || got.Reorder != want.Reorder || got.ReorderBy != want.ReorderBy ||
		got.Jitter != want.Jitter || got.Duplicate != want.Duplicate || seed == 0 {
		t.Errorf("%+v, seed %d", got, seed)
	}
	if err := got.Validate(); err != nil {
		t.Error(err)
	}
	if f, _ := c.Resolved().Switches[0].Ports[0].Fault(); f != nil {
		t.Errorf("a port without faults has %+v", f)
	}
}

// What is refused is refused with its place; all that is taken can be set.
func TestFaultRefusals(t *testing.T) {
	for text, want := range map[string]string{
		"{loss: 2}":             `f.yaml:8:24: switches[0].ports[1].faults.loss: "2" is not a share`,
		"{los: 1%}":             `did you mean "loss"?`,
		"{burst: 3}":            "f.yaml:8:25: switches[0].ports[1].faults.burst: needs loss",
		"{loss: 1%, burst: -1}": "faults.burst: -1 is not between 0 and 1e+06",
		"{loss: 90%, burst: 2}": "66.6",
		"{reorder: 1%}":         "faults.reorder: needs reorder_delay",
		"{reorder_delay: 1us}":  "faults.reorder_delay: needs reorder",
		"{slow: 2}":             "faults.slow: needs rate",
		"{slow: 0.5}":           "faults.slow: 0.5 is not between 1 and 1e+06",
		"{jitter: 2s}":          "faults.jitter: 2s is more than 1s",
		"{jitter: -1us}":        "faults.jitter:",
	} {
		if _, err := Parse("f.yaml", []byte(faultyPort+text+"\n")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestSetFault(t *testing.T) {
	p := &Port{Name: "p"}
	for _, c := range []struct{ key, value, want string }{
		{"loss", "1%", "{loss: 1%}"},
		{"burst", "4", "{loss: 1%, burst: 4}"},
		{"jitter", "10us", "{loss: 1%, burst: 4, jitter: 10us}"},
		{"loss", "none", "{burst: 4, jitter: 10us}"},
		{"slow", "2", "{burst: 4, jitter: 10us, slow: 2}"},
		{"none", "", ""},
		{"loss", "1%", "{loss: 1%}"},
		{"seed", "7", "{loss: 1%, seed: 7}"},
		{"loss", "0", "{seed: 7}"},
		{"seed", "none", ""},
		{"seed", "8", "{seed: 8}"}, // what comes first stays, whatever the order
		{"loss", "2%", "{loss: 2%, seed: 8}"},
	} {
		if err := p.SetFault(c.key, c.value); err != nil {
			t.Fatal(err)
		}
		if got := p.Faults.String(); got != c.want {
			t.Errorf("after %s %s: %s, want %s", c.key, c.value, got, c.want)
		}
	}
	for key, want := range map[string]string{"los": `did you mean "loss"?`, "colour": "there are loss,", "loss": `loss: "x" is not a share`} {
		if err := p.SetFault(key, "x"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", key, err)
		}
	}
}
