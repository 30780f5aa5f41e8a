package hostnic

import (
	"testing"

	"gswitch/frame"
)

// With jitter gaps differ by up to its share, and agree with the pace in the
// mean; at line rate there is none.
func TestPaceJitter(t *testing.T) {
	const gap = 8464 // ns of 1058 bytes at 1 Gb/s
	for _, rate := range []float64{1e9, 100e9} {
		p := newPair(t, func(_ int, c *Config) { c.PaceJitter = 0.1 })
		got := p.starts(1000)
		f := newFixed(rate)
		qa, _ := p.connect(func(q *QPConfig) { q.CC = f.make })
		must(t, p.a.SendMessage(0, qa, 1_000_000, 0))
		p.run(9 * frame.Millisecond)
		v := *got
		if len(v) != 1000 {
			t.Fatalf("%d frames of 1000 left", len(v))
		}
		least, most := frame.Never, frame.Time(0)
		for i := range v[1:] {
			least, most = min(least, v[i+1]-v[i]), max(most, v[i+1]-v[i])
		}
		mean := float64(v[999]-v[0]) / 999
		if rate == 1e9 && (least < gap*9/10-10 || least > gap*92/100 || most > gap*11/10+10 || most < gap*108/100 || mean < gap*0.99 || mean > gap*1.01) {
			t.Errorf("gaps from %d to %d ns, mean %.0f; want %d +- 10 %%", least, most, mean, gap)
		}
		if rate == 100e9 && most-least > 1 {
			t.Errorf("at line rate gaps differ, from %d to %d ns", least, most)
		}
	}
}
