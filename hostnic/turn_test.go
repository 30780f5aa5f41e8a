package hostnic

import (
	"math"
	"strings"
	"testing"

	"gswitch/frame"
	"gswitch/wire"
)

// The frames of queue pairs of one class leave in turns of so many bytes, of a
// whole message, or one by one.
func TestTurnsOfBytes(t *testing.T) {
	// The one after the last served begins: that is b.
	for turn, want := range map[uint32]string{
		0:              "bababababa",
		1000:           "bababababa",
		1001:           "bbaabbaaba",
		2000:           "bbaabbaaba",
		3000:           "bbbaaabbaa",
		math.MaxUint32: "bbbbbaaaaa",
	} {
		p := newPair(t, func(_ int, c *Config) { c.Turn = turn })
		qa, ra := p.connect(nil)
		qb, rb := p.connect(nil)
		var order strings.Builder
		p.seen = func(from int, m *frame.Meta, b []byte) {
			if from != 0 {
				return
			}
			switch wire.BTH(b[wire.EthernetLen+wire.IPv4Len+wire.UDPLen:]).DestQP() {
			case ra:
				order.WriteByte('a')
			case rb:
				order.WriteByte('b')
			}
		}
		must(t, p.a.SendMessage(0, qa, 5000, 0))
		must(t, p.a.SendMessage(0, qb, 5000, 0))
		p.run(20 * frame.Microsecond)
		if order.String() != want {
			t.Errorf("turns of %d bytes: %s, want %s", turn, order.String(), want)
		}
		p.drained()
	}
}

// A queue pair that may not send loses its turn, and none waits for it.
func TestTurnOfABlockedQueuePair(t *testing.T) {
	p := newPair(t, func(_ int, c *Config) { c.Turn = math.MaxUint32 })
	qa, _ := p.connect(func(c *QPConfig) { c.Transport.Cap = 2 })
	qb, _ := p.connect(nil)
	must(t, p.a.SendMessage(0, qa, 50_000, 0))
	must(t, p.a.SendMessage(0, qb, 50_000, 1))
	p.run(4200) // the time of 50 frames at 100 Gb/s, less than the first acknowledgement takes twice
	if done := p.a.Counts().DataFrames; done < 45 {
		t.Errorf("%d frames left: the link stood idle", done)
	}
	p.run(frame.Millisecond)
	for _, c := range take(p.a) {
		if c.Status != StatusOK {
			t.Errorf("%+v", c)
		}
	}
	p.drained()
}
