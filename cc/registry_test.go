package cc

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"gswitch/frame"
)

func TestEveryAlgorithmIsDescribed(t *testing.T) {
	if got := Names(); len(got) != len(Infos()) || !slices.IsSorted(got) || !slices.Contains(got, "hpcc") {
		t.Errorf("algorithms are %v", got)
	}
	for _, in := range Infos() {
		if in.Title == "" || in.Paper == "" || in.Cite == "" || in.Kind == "" || in.Needs == 0 && in.Name != "none" {
			t.Errorf("%s: the description is not complete: %+v", in.Name, in)
		}
		if got, ok := Lookup(in.Name); !ok || got.Name != in.Name {
			t.Errorf("%s is not found by its name", in.Name)
		}
		a := build(t, &hundredGig, in.Name)
		if a.Rate() != hundredGig.Rate {
			t.Errorf("%s starts at %.0f, want line rate", in.Name, a.Rate())
		}
		if _, ok := a.(Resetter); !ok {
			t.Errorf("%s cannot be reset", in.Name)
		}
		if _, err := Factory(in.Name, in.Machines); err != nil {
			t.Errorf("%s: what machines have in place of the defaults is refused: %v", in.Name, err)
		}
		for _, p := range in.Params {
			if p.Rule() {
				continue
			}
			// What is shown as the default is what is in force.
			if _, err := Factory(in.Name, map[string]string{p.Name: p.Default}); err != nil {
				t.Errorf("%s: the default of %s is refused: %v", in.Name, p.Name, err)
			}
		}
	}
}

func TestPresetsShowWhatTheySet(t *testing.T) {
	in, _ := Lookup("dcqcn-original")
	for _, p := range in.Params {
		if p.Name == "ti" && p.Default != "55us" {
			t.Errorf("dcqcn-original shows ti %s", p.Default)
		}
	}
	if base, _ := Lookup("dcqcn"); base.Params[0].Default != "300us" {
		t.Errorf("the preset changed its base: ti %s", base.Params[0].Default)
	}
	if in.Of != "dcqcn" {
		t.Errorf("dcqcn-original is a preset of %q", in.Of)
	}
	if w := build(t, &hundredGig, "timely+win").Window(); w != 162_500 {
		t.Errorf("timely+win has W %.0f", w)
	}
	if w := build(t, &hundredGig, "dcqcn", "window", "bdp").Window(); w != 162_500 {
		t.Errorf("window=bdp is %.0f", w)
	}
	if w := build(t, &hundredGig, "timely+win", "window", "none").Window(); w != 0 {
		t.Errorf("an option does not override the preset: W %.0f", w)
	}
}

func TestFactoryRefuses(t *testing.T) {
	for _, c := range []struct{ name, key, value, want string }{
		{"hpcc", "etta", "1", "unknown option \"etta\"; known are eta, maxStage"},
		{"hpcc", "eta", "1.5", "eta: 1.5 is out of range; it must be from 0.01 to 1"},
		{"hpcc", "eta", "95%", "has a unit"},
		{"hpcc", "eta", "", "does not begin with a number"},
		{"hpcc", "eta", "NaN", "does not begin with a number"},
		{"hpcc", "wai", "80", "the unit is missing"},
		{"hpcc", "wai", "-80B", "out of range"},
		{"hpcc", "wai", "80us", "unknown unit \"us\""},
		{"hpcc", "maxStage", "2.5", "not a whole number"},
		{"hpcc", "reaction", "perack", "is not one of hpcc, perAck, perRtt"},
		{"hpcc", "multirate", "maybe", "neither true nor false"},
		{"timely", "tlow", "1s", "tlow: 1s is above thigh, which is 500us"},
		{"dcqcn", "byte_counter", "100B", "byte_counter: 100B is less than a frame"},
		{"timely", "delta", "1e400Mbps", "unknown unit"},
	} {
		_, err := Factory(c.name, map[string]string{c.key: c.value})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.key) || !strings.HasPrefix(err.Error(), c.name+": ") {
			t.Errorf("%s %s=%s: %v, want %q", c.name, c.key, c.value, err, c.want)
		}
	}
	_, err := Factory("cubic", nil)
	var unknown UnknownError
	if !errors.As(err, &unknown) || !strings.Contains(err.Error(), "aimd, dcqcn") {
		t.Errorf("cubic: %v", err)
	}
}

func TestNS3Options(t *testing.T) {
	for _, c := range []struct {
		name string
		gbps float64
		of   string
		key  string
		want string
	}{
		{"hpcc", 100, "hpcc", "ai", "50Mbps"}, {"hpcc", 25, "hpcc", "ai", "12Mbps"}, {"hpcc", 100, "hpcc", "maxStage", "0"}, {"hpcc_mi5", 100, "hpcc", "maxStage", "5"},
		{"dcqcn", 100, "dcqcn", "rai", "20Mbps"}, {"dcqcn", 40, "dcqcn", "rhai", "80Mbps"}, {"dcqcn_win", 25, "dcqcn", "window", "rate"},
		{"timely", 25, "timely", "delta", "25Mbps"}, {"timely", 100, "timely", "window", "none"}, {"timely_win", 100, "timely", "window", "rate"},
		{"dctcp", 100, "dctcp", "ai_rate", "615Mbps"}, {"dctcp", 25, "dctcp", "minrate", "1000Mbps"},
	} {
		of, params, ok := NS3(c.name, c.gbps)
		if !ok || of != c.of || params[c.key] != c.want {
			t.Errorf("%s at %g Gb/s: %s, %s=%s, want %s, %s", c.name, c.gbps, of, c.key, params[c.key], c.of, c.want)
		}
	}
	for _, name := range NS3Names {
		of, params, _ := NS3(name, 100)
		f, err := Factory(of, params)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		a := f(&hundredGig)
		wantW := 162_500.
		if name == "dcqcn" || name == "timely" {
			wantW = 0
		}
		if a.Rate() != 100e9 || a.Window() != wantW {
			t.Errorf("%s starts with R %.0f W %.0f", name, a.Rate(), a.Window())
		}
	}
	if _, _, ok := NS3("hpcc_pint", 100); ok {
		t.Error("a name that is not there was found")
	}
}

// A recycled state behaves as a new one, and recycling allocates nothing.
func TestResetIsAsNew(t *testing.T) {
	other := Env{Rate: 25e9, BaseRTT: 9 * frame.Microsecond, MTU: 1048, Payload: 1000, Range: hundredGig.Range}
	for _, name := range Names() {
		used, fresh := build(t, &other, name), build(t, &hundredGig, name)
		torment(used, 1, 500)
		used.(Resetter).Reset(&hundredGig)
		for seed := range uint64(20) {
			torment(used, seed, 50)
			torment(fresh, seed, 50)
			if used.Rate() != fresh.Rate() || used.Window() != fresh.Window() || used.Timer() != fresh.Timer() {
				t.Errorf("%s: recycled R %g W %g, new R %g W %g", name, used.Rate(), used.Window(), fresh.Rate(), fresh.Window())
				break
			}
		}
		if n := testing.AllocsPerRun(10, func() { used.(Resetter).Reset(&hundredGig) }); n != 0 {
			t.Errorf("%s: Reset allocates %v times", name, n)
		}
	}
}

// Whatever the options, they are refused by name or give a working algorithm.
func FuzzFactory(f *testing.F) {
	f.Add("hpcc", "eta", "0.9", "maxStage", "5")
	f.Add("hpcc", "multirate", "true", "alpha_fair", "2")
	f.Add("timely", "tlow", "100us", "segment", "16kB")
	f.Add("dcqcn", "ti", "55us", "byte_counter", "10MB")
	f.Add("dctcp", "ai", "0.1B", "minrate", "1bps")
	f.Add("aimd", "decrease", "1", "max", "1GiB")
	f.Add("none", "bytes", "1kB", "rate", "=")
	f.Fuzz(func(t *testing.T, name, k1, v1, k2, v2 string) {
		make, err := Factory(name, map[string]string{k1: v1, k2: v2})
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without words")
			}
			return
		}
		a := make(&hundredGig)
		torment(a, 1, 50)
		if why := unsound(a, &hundredGig); why != "" {
			t.Error(why)
		}
	})
}
