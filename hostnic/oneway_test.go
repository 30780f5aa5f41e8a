package hostnic

import (
	"testing"

	"gswitch/frame"
)

// The stamp of a switch counts modulo the format's range, and is of synchronised time.
func TestOneWay(t *testing.T) {
	const modulo = 1 << 24
	for _, c := range []struct {
		left, lead frame.Time
		stamp      uint64 // as the switch has it, before the format cuts it
		want       frame.Time
	}{
		{1000, 0, 1700, 700},
		{1000, 5_000_000_000, 5_000_001_700, 700},
		{5_000_000_000, -4_999_000_000, 1_000_900, 900},
		{modulo - 100, 0, modulo + 250, 350}, // which has wrapped since
		{1000, -2000, ^uint64(0) - 499, 500}, // before the root began
		{1000, 0, 400, 0},                    // before it left
	} {
		n := &NIC{lead: c.lead, synced: true}
		if got := n.oneWay(c.left, modulo, c.stamp&(modulo-1)); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}
