package units

import (
	"math"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSpellings(t *testing.T) {
	for _, c := range []struct {
		kind *Kind
		same string // the one that is written first
		want float64
	}{
		{Bits, "10Gbps 10Gbit 10Gbit/s 10Gb/s 10000Mbps 0.01Tb/s 10000000Kbit", 10e9},
		{Bits, "40kbps 40kbit 40Kbps 40kb/s 40 kbit/s", 40e3},
		{Bytes, "30kB 30KB 30000B 0.03MB", 30e3},
		{Bytes, "64KiB 64kiB 65536B 65.536kB", 65536},
		{Time, "5us 5µs 5000ns 0.005ms", 5e3},
		{Time, "2min 120s", 120e9},
	} {
		for text := range strings.SplitSeq(strings.ReplaceAll(c.same, " k", "_k"), " ") {
			text = strings.ReplaceAll(text, "_", " ")
			if v, err := c.kind.Whole(text, math.MaxUint64); err != nil || v != uint64(c.want) {
				t.Errorf("Whole(%q) = %d, %v, want %g", text, v, err, c.want)
			}
			if v, err := c.kind.Number(text); err != nil || math.Abs(v-c.want) > 1e-9*c.want {
				t.Errorf("Number(%q) = %g, %v, want %g", text, v, err, c.want)
			}
		}
	}
}

func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		"10":        "the unit is missing",
		"Gbps":      "it must begin with a number",
		"1.Gbps":    "it must begin with a number",
		"1..5Gbps":  "it must begin with a number",
		"10Gps":     `unknown unit "Gps", did you mean "Gbps"?`,
		"10MB":      `unknown unit "MB"`,
		"1.5bps":    "finer than one bps",
		"20000Tbps": "too large",
	} {
		if v, err := Bits.Whole(text, 100e12); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %d, %v, want an error with %q", text, v, err, want)
		}
	}
	for _, text := range []string{"", "-", "1e3us", "NaN", "inf", "--1us", "5"} {
		if v, err := Time.Number(text); err == nil {
			t.Errorf("%q is read as %g", text, v)
		}
	}
	var r Rate
	if err := r.UnmarshalText([]byte("0bps")); err == nil {
		t.Error("a rate of 0 is taken, but 0 stands for unlimited")
	}
}

// What is written is read back, and fits the schema.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Size(rapid.Uint64Range(0, 1<<50).Draw(t, "size"))
		var back Size
		if err := back.UnmarshalText([]byte(s.String())); err != nil || back != s {
			t.Fatalf("%d bytes are written %s, which reads %d, %v", s, s, back, err)
		}
		if p := s.JSONSchema()["pattern"].(string); !regexp.MustCompile(p).MatchString(s.String()) {
			t.Fatalf("%s does not match %s", s, p)
		}
		d := Duration(rapid.Int64Range(0, math.MaxInt64/4).Draw(t, "duration"))
		var same Duration
		if err := same.UnmarshalText([]byte(d.String())); err != nil || same != d {
			t.Fatalf("%d ns are written %s, which reads %d, %v", d, d, same, err)
		}
		r := Rate(rapid.Uint64Max(maxRate).Draw(t, "rate"))
		var again Rate
		if err := again.UnmarshalText([]byte(r.String())); err != nil || again != r {
			t.Fatalf("%d bit/s are written %s, which reads %d, %v", r, r, again, err)
		}
		v := rapid.Float64Range(-1e14, 1e14).Draw(t, "number")
		if got, err := Bits.Number(Bits.Full(v)); math.Abs(v) >= 1 && (err != nil || math.Abs(got-v) > 1e-9*math.Abs(v)) {
			t.Fatalf("%g is written %s, which reads %g, %v", v, Bits.Full(v), got, err)
		}
	})
}

func TestBrief(t *testing.T) {
	for _, c := range []struct {
		got, want string
	}{
		{Bits.Brief(27.1234e9), "27.12Gbps"}, {Bits.Brief(999.96e6), "1Gbps"}, {Bits.Brief(999.9e6), "999.9Mbps"}, {Bits.Brief(2.5e15), "2500Tbps"},
		{Bytes.Brief(0), "0B"}, {Bytes.Brief(123456), "123.5kB"}, {Time.Brief(12340), "12.34us"}, {Time.Brief(7.2e12), "7200s"}, {Time.Brief(-1500), "-1.5us"},
	} {
		if c.got != c.want {
			t.Errorf("%s, want %s", c.got, c.want)
		}
	}
}

func FuzzWhole(f *testing.F) {
	for _, text := range []string{"10Gbps", "1.5 kB", "0.1us", "999999999999999999999999h", "1.5.5s", "µs", "-1B"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, k := range []*Kind{Bits, Bytes, Time} {
			v, err := k.Whole(text, 1<<62)
			if err != nil {
				continue
			}
			x, err := k.Number(text)
			if err != nil || math.Abs(x-float64(v)) > 1e-6*math.Max(1, float64(v)) {
				t.Fatalf("%q is %d as a whole and %g, %v, as a number", text, v, x, err)
			}
		}
	})
}
