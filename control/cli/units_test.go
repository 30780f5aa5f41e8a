package cli

import (
	"math"
	"testing"
)

func TestUnits(t *testing.T) {
	for _, v := range []struct{ got, want string }{
		{Span(0), "0ns"}, {Span(999), "999ns"}, {Span(1000), "1us"}, {Span(5476), "5.476us"}, {Span(999_949), "999.9us"}, {Span(999_999), "1ms"},
		{Span(50_000), "50us"}, {Span(3_120_000_000), "3.12s"}, {Span(36_000e9), "36000s"}, {Span(math.MaxUint64), "18446744074s"},
		{Rate(0), "0bps"}, {Rate(18_487_500), "18.49Mbps"}, {Rate(1e9), "1Gbps"}, {Rate(400e9), "400Gbps"}, {Rate(999_960), "1Mbps"}, {Rate(2.5e15), "2500Tbps"},
	} {
		if v.got != v.want {
			t.Errorf("%s, want %s", v.got, v.want)
		}
	}
}
