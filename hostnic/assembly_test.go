package hostnic

import (
	"testing"

	"gswitch/frame"
	"gswitch/transport"
)

// A hundred thousand one-packet messages arrive behind a gap, the last first:
// what a peer that means ill can do to a queue pair without a cap. They are
// kept and completed in order, in a time that does not grow with the square of
// their number (which took minutes).
func TestMessagesBehindAGap(t *testing.T) {
	for name, place := range map[string]func(i, n uint32) uint32{
		"falling": func(i, n uint32) uint32 { return n - i },
		"rising":  func(i, n uint32) uint32 { return i + 1 },
		"mixed":   func(i, n uint32) uint32 { return i*7919%n + 1 },
	} {
		p := newPair(t, nil)
		qa, qb := p.connect(func(c *QPConfig) {
			c.Transport = transport.Config{Recovery: transport.IRN, RTOHigh: 500 * frame.Microsecond}
		})
		var sample []byte
		p.seen = func(from int, _ *frame.Meta, b []byte) {
			if from == 0 && sample == nil {
				sample = append([]byte(nil), b...)
			}
		}
		must(t, p.a.SendMessage(0, qa, 100, 0))
		p.run(frame.Millisecond)
		take(p.a)
		take(p.b)
		deliver := func(seq uint32) {
			be.PutUint32(sample[42+8:], seq)
			r := p.pool.New(sample)
			p.pool.Meta(r).Wire = 42 + 12 + 100 + 4
			p.b.Receive(p.now, 0, []frame.Ref{r})
			p.pool.Free(p.b.replies.pop(p.pool.Arena, 3))
		}
		const n = 100_003 // a prime, for the permutation
		for i := range uint32(n) {
			deliver(1 + place(i, n))
		}
		if got := p.b.Completed(); got != 0 {
			t.Fatalf("%s: %d messages are complete behind a gap", name, got)
		}
		deliver(1)
		done := take(p.b)
		if len(done) != n+1 {
			t.Fatalf("%s: %d messages are complete, not %d", name, len(done), n+1)
		}
		for i, c := range done {
			if c.QPN != qb || c.ID != uint64(i)+1 || c.Bytes != 100 {
				t.Fatalf("%s: message %d is %+v", name, i, c)
			}
		}
	}
}
