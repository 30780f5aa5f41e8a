package hostnic

import (
	"testing"

	"gswitch/frame"
)

// Where planned departures are kept, a change of rate shows in the gap after.
func TestPacingKeepsPlanned(t *testing.T) {
	for name, c := range map[string]struct {
		from, to float64
		want     []frame.Time
	}{
		// 1058 bytes take 8464 ns at 1 Gb/s, 4232 at 2.
		"doubles at 1000": {1e9, 2e9, []frame.Time{0, 8464, 12696}},
		"halves at 1000":  {2e9, 1e9, []frame.Time{0, 4232, 12696}},
	} {
		p := newPair(t, nil)
		got := p.starts(1000)
		f := newFixed(c.from)
		f.later(1000, c.to)
		qa, _ := p.connect(func(q *QPConfig) { q.CC, q.KeepPlanned = f.make, true })
		must(t, p.a.SendMessage(0, qa, 20_000, 0))
		p.run(30 * frame.Microsecond)
		equal(t, name, *got, c.want)
	}
}
