package hostnic

import (
	"slices"
	"testing"

	"gswitch/frame"
	"gswitch/wire"
)

// The queue pair that First puts first sends, those that are equal take turns, and
// without it all do. A change counts from the next frame on.
func TestFirst(t *testing.T) {
	shortest := func(next, best *Waiting) bool { return next.Left < best.Left }
	longest := func(next, best *Waiting) bool { return next.Left > best.Left }
	for name, c := range map[string]struct {
		first func(next, best *Waiting) bool
		want  []int
	}{
		"in turn":           {nil, []int{1, 2, 0, 1, 2, 0, 0}},
		"the shortest":      {shortest, []int{1, 1, 2, 2, 0, 0, 0}},
		"the longest":       {longest, []int{0, 1, 2, 0, 1, 2, 0}},
		"equal, so in turn": {func(_, _ *Waiting) bool { return false }, []int{1, 2, 0, 1, 2, 0, 0}},
		"the last posted":   {func(next, best *Waiting) bool { return next.Since > best.Since }, []int{2, 2, 1, 1, 0, 0, 0}},
	} {
		p := newPair(t, func(_ int, cfg *Config) { cfg.First = c.first })
		number, sent := map[uint32]int{}, []int{}
		p.seen = func(from int, _ *frame.Meta, b []byte) {
			if from == 0 {
				sent = append(sent, number[wire.BTH(b[wire.EthernetLen+wire.IPv4Len+wire.UDPLen:]).DestQP()])
			}
		}
		for i, packets := range []uint64{3, 2, 2} {
			qa, qb := p.connect(nil)
			number[qb] = i
			must(t, p.a.SendMessage(frame.Time(i), qa, packets*1000, 0))
		}
		p.run(frame.Millisecond)
		if !slices.Equal(sent, c.want) {
			t.Errorf("%s: frames of %v, want %v", name, sent, c.want)
		}
		p.drained()
	}

	p := newPair(t, func(_ int, c *Config) { c.First = longest })
	var qs [2]uint32
	for i := range qs {
		qs[i], _ = p.connect(nil)
		must(t, p.a.SendMessage(0, qs[i], uint64(1000*(100+100*i)), 0))
	}
	p.run(2 * frame.Microsecond)
	cfg := p.a.cfg
	cfg.First = shortest
	must(t, p.a.Reconfigure(p.now, &cfg))
	p.run(frame.Millisecond)
	if v := take(p.a); len(v) != 2 || v[0].Bytes != 100_000 {
		t.Errorf("after the change: %+v", v)
	}
	cfg.Turn = 100
	if p.a.Reconfigure(p.now, &cfg) == nil {
		t.Error("turns are taken beside it")
	}
}
