package agree

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gswitch/fabric/results"
	"gswitch/fabric/scenario"
)

// Two variants; a host's link has 8 Gb/s, so that T = 10 us makes a product of
// 10 kB.
const text = `version: 1
name: pair
topology: {generate: star(3), classes: {host: {rate: 8Gbps, delay: 1us}}}
workload: [{group: burst, kind: incast, from: [h1..h2], to: [h3], size: 10KB}]
duration: 1ms
variants: [{name: a}, {name: b, set: {hosts.cc: dctcp}}]
`

func pair(t testing.TB) *scenario.Scenario {
	s, err := scenario.Parse("pair.yaml", []byte(text), scenario.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func file(engine string, runs ...map[string]float64) *results.File {
	f := &results.File{}
	for i, v := range runs {
		r := results.Run{Name: string(rune('a' + i)), Seed: 1, Engine: engine, Values: v}
		if engine == "netns" {
			r.Timing = &results.Timing{Valid: true, BaseRTT: 10e-6}
		}
		f.Runs = append(f.Runs, r)
	}
	return f
}

func values(p50, p99, q50, q95 float64) map[string]float64 {
	return map[string]float64{"slowdown_p50": p50, "slowdown_p99": p99, "queue_p50_bytes": q50, "queue_p95_bytes": q95, "burst.slowdown_p50": p50, "goodput_bps": 1e9}
}

// What is within the bounds agrees, what is beyond does not, each by itself.
func TestBounds(t *testing.T) {
	for name, c := range map[string]struct {
		sim, real map[string]float64
		beyond    string // the value
	}{
		"same":             {values(1, 2, 0, 100), values(1, 2, 0, 100), ""},
		"just within":      {values(1, 2, 0, 5000), values(1.149, 2.29, 1490, 6490), ""},
		"slowdown above":   {values(1, 2, 0, 100), values(1.16, 2, 0, 100), "slowdown_p50"},
		"slowdown below":   {values(1, 2, 0, 100), values(1, 1.69, 0, 100), "slowdown_p99"},
		"queue above":      {values(1, 2, 0, 5000), values(1, 2, 1510, 5000), "queue_p50_bytes"},
		"queue below":      {values(1, 2, 0, 5000), values(1, 2, 0, 3490), "queue_p95_bytes"},
		"nothing measured": {values(1, 2, 0, 5000), map[string]float64{"slowdown_p50": 1, "queue_p50_bytes": 0, "queue_p95_bytes": 5000}, "slowdown_p99"},
	} {
		got := Compare(pair(t), file("sim", c.sim), file("netns", c.real))
		var beyond []string
		for _, v := range got.Runs[0].Values {
			if !v.OK {
				beyond = append(beyond, v.Name)
			}
		}
		if strings.Join(beyond, " ") != c.beyond || got.Agrees != (c.beyond == "") || got.Judged != 4 {
			t.Errorf("%s: beyond %q, want %q; %+v", name, beyond, c.beyond, got)
		}
		if bdp := got.Runs[0].BDP; bdp < 9999 || bdp > 10001 {
			t.Errorf("the bandwidth-delay product is %v bytes, want 10000", bdp)
		}
	}
}

// A run that did not keep time says neither yes nor no.
func TestInvalidIsNotJudged(t *testing.T) {
	live := file("netns", values(5, 9, 0, 100), values(1, 2, 0, 100))
	live.Runs[0].Timing.Valid, live.Runs[0].Timing.Why, live.Runs[0].Timing.Remedies = false, []string{"too late"}, []string{"a larger scale"}
	c := Compare(pair(t), file("sim", values(1, 2, 0, 100), values(1, 2, 0, 100)), live)
	if c.Agrees || c.Beyond != 0 || c.Invalid != 1 || c.Judged != 4 {
		t.Errorf("%+v", c)
	}
	var b bytes.Buffer
	if err := c.Text(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a is INVALID and not judged: too late. What helps: a larger scale", "not judged", "1 of 2 runs INVALID"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
	live.Runs = live.Runs[:1]
	if c := Compare(pair(t), file("sim", values(1, 2, 0, 100), values(1, 2, 0, 100)), live); c.Agrees || len(c.Missing) != 1 {
		t.Errorf("a run is missing: %+v", c)
	}
}

// Runs that virtual time separates must stand in the same order; those that
// it does not may stand in any.
func TestOrder(t *testing.T) {
	sim := file("sim", values(1, 2, 0, 2000), values(1.1, 3, 0, 5000))
	for _, c := range []struct {
		a, b     map[string]float64
		reversed string
	}{
		{values(1, 2, 0, 2000), values(1.1, 3, 0, 5000), ""},
		{values(1.1, 2, 0, 2000), values(1, 3, 0, 5000), ""}, // p50 is not distinguished
		{values(1, 3.1, 0, 2000), values(1.1, 3, 0, 5000), "slowdown_p99"},
		{values(1, 2, 0, 5000), values(1.1, 3, 0, 4000), "queue_p95_bytes"},
	} {
		got := Compare(pair(t), sim, file("netns", c.a, c.b))
		var reversed []string
		for _, o := range got.Orders {
			if o.A != "a" || o.B != "b" {
				t.Errorf("order %+v", o)
			}
			if o.Reversed {
				reversed = append(reversed, o.Value)
			}
		}
		if strings.Join(reversed, " ") != c.reversed || len(got.Orders) != 2 {
			t.Errorf("reversed %q of %+v, want %q", reversed, got.Orders, c.reversed)
		}
	}
}

// A file agrees with itself, whatever is in it, and the judgement of values
// does not depend on the other runs.
func TestSelf(t *testing.T) {
	s := pair(t)
	rapid.Check(t, func(t *rapid.T) {
		draw := func(n string) map[string]float64 {
			return values(rapid.Float64Range(1, 1e3).Draw(t, n), rapid.Float64Range(1, 1e3).Draw(t, n), rapid.Float64Range(0, 1e6).Draw(t, n), rapid.Float64Range(0, 1e6).Draw(t, n))
		}
		a, b, x := draw("a"), draw("b"), draw("x")
		if c := Compare(s, file("sim", a, b), file("netns", a, b)); !c.Agrees || c.Judged < 8 {
			t.Fatalf("%+v", c)
		}
		both, alone := Compare(s, file("sim", a, b), file("netns", x, b)), Compare(s, file("sim", a), file("netns", x))
		for i, v := range both.Runs[0].Values {
			if v.OK != alone.Runs[0].Values[i].OK {
				t.Fatalf("%+v by itself is %+v", v, alone.Runs[0].Values[i])
			}
		}
	})
}
