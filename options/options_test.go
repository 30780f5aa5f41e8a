package options

import (
	"math"
	"testing"
)

func TestQuantities(t *testing.T) {
	for _, c := range []struct {
		text string
		unit Unit
		want float64
	}{
		{"50us", Time, 50_000}, {"1.5 ms", Time, 1.5e6}, {"2µs", Time, 2000}, {"40Mbps", Rate, 40e6}, {"0.5Gbps", Rate, .5e9},
		{"80B", Bytes, 80}, {"0.5B", Bytes, .5}, {"10MB", Bytes, 10e6}, {"4KiB", Bytes, 4096}, {"0", Bytes, 0}, {"0.95", Number, .95}, {"5", Count, 5},
	} {
		got, err := quantity(c.text, c.unit)
		if err != nil || math.Abs(got-c.want) > 1e-9*c.want {
			t.Errorf("%q: %g, %v; want %g", c.text, got, err, c.want)
		}
		if back, err := quantity(Format(got, c.unit), c.unit); err != nil || math.Abs(back-got) > 1e-9*got {
			t.Errorf("%q is written %q, which reads %g, %v", c.text, Format(got, c.unit), back, err)
		}
	}
}
