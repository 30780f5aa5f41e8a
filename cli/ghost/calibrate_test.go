package ghost

import (
	"bytes"
	"strings"
	"testing"

	"gswitch/config"
)

// What follows from measurements follows by the formulas of the help.
func TestDerive(t *testing.T) {
	for name, c := range map[string]struct {
		rtts []uint64
		wake uint64
		want derived
	}{
		"the worst peer":      {[]uint64{18e6, 10e6}, 50e3, derived{T: 18.9e6, RTOHigh: 246e6, RTOLow: 75.6e6, Cap: 945, BDP: 945_000}},
		"timers have a floor": {[]uint64{100e3}, 10e3, derived{T: 105e3, RTOHigh: 20.1e6, RTOLow: 1e6, Cap: 5, BDP: 5250}},
		"a late machine":      {[]uint64{100e3}, 27e3, derived{T: 105e3, RTOHigh: 20.1e6, RTOLow: 1e6, Cap: 5, BDP: 5250, Late: true}},
	} {
		r := calibration{Wake: spread{P99: c.wake}}
		for _, rtt := range c.rtts {
			r.Peers = append(r.Peers, peerSpread{"10.0.0.2", spread{P50: rtt, Min: 1, P99: 10 * rtt}})
		}
		h := config.Host{Rate: 400e6, Payload: 1000}
		if r.derive(&h); r.Derived != c.want {
			t.Errorf("%s: %+v, want %+v", name, r.Derived, c.want)
		}
		if uint64(h.BaseRTT) != c.want.T || uint64(h.Timeout) != c.want.RTOHigh {
			t.Errorf("%s: the configuration has %v and %v", name, h.BaseRTT, h.Timeout)
		}
	}
	for in, want := range map[uint64]uint64{0: 0, 999: 999, 1000: 1000, 1001: 1010, 123456: 124000, 999001: 1000000} {
		if got := threeDigits(in); got != want {
			t.Errorf("%d rounds to %d, want %d", in, got, want)
		}
	}
	if s := spreadOf([]uint64{5, 1, 4, 2, 3, 6, 7, 8, 9, 10}); s != (spread{Count: 10, Min: 1, P10: 2, P50: 6, P99: 10, Max: 10}) {
		t.Errorf("%+v", s)
	}
}

// What people read has the lines to paste, and what they should know.
func TestPrintCalibration(t *testing.T) {
	r := calibration{LinkRate: 400e6, CleanRate: 200e6, Rates: []rateProbe{{Rate: 200e6, Clean: true}, {Rate: 300e6, Why: "round trips grow"}},
		Derived: derived{T: 18.9e6, RTOHigh: 246e6, Late: true}, notes: []string{"a note"}}
	var out bytes.Buffer
	r.print(&out)
	for _, want := range []string{"base_rtt: 18900us", "timeout: 246ms", "rate: 200Mbps # highest", "round trips grow", "quarter of T", "a note"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	r.CleanRate = 0
	out.Reset()
	if r.print(&out); !strings.Contains(out.String(), "No rate that was tried is clean") {
		t.Errorf("nothing clean:\n%s", out.String())
	}
}
