package hostnic

import (
	"testing"

	"gswitch/frame"
	inband "gswitch/int"
	"gswitch/transport"
)

// With the sizes and the clock of the HPCC authors' ns-3 model frames count
// 1048 bytes (1090 with telemetry) and 83 ns (87) at 100 Gb/s, replies 60 (88)
// and 4 ns (7), and flow control frames 43. Payload is right to the byte even
// where the frame must be raised to hold its headers.
func TestSizesOfAnotherSimulator(t *testing.T) {
	for _, telem := range []inband.Mode{inband.None, inband.HPCC} {
		for tail := uint64(0); tail < 9; tail++ {
			p := newPair(t, func(_ int, c *Config) {
				c.WholeNs, c.Sizes = true, Sizes{Data: 48, Ack: 60, AckINT: 88, PFC: 43}
				c.PFC, c.PFCClasses = true, 8
			})
			full, span, ack, ackSpan := uint32(1048), uint32(83), uint32(60), uint32(4)
			if telem == inband.HPCC {
				full, span, ack, ackSpan = 1090, 87, 88, 7
			}
			data := 0
			p.seen = func(from int, m *frame.Meta, _ []byte) {
				switch {
				case from == 1 && (m.Wire != ack || m.Span != ackSpan):
					t.Fatalf("%v: an acknowledgement of %d bytes, %d ns", telem, m.Wire, m.Span)
				case from == 0:
					if data++; data <= 3 && (m.Wire != full || m.Span != span) {
						t.Fatalf("%v: a data frame of %d bytes, %d ns", telem, m.Wire, m.Span)
					}
				}
			}
			qa, _ := p.connect(func(c *QPConfig) { c.INT = telem })
			must(t, p.a.SendMessage(0, qa, 3000+tail, 0))
			p.run(100 * frame.Microsecond)
			if v := take(p.b); len(v) != 1 || v[0].Bytes != 3000+tail || len(take(p.a)) != 1 {
				t.Fatalf("%v: %d bytes arrived as %+v", telem, 3000+tail, v)
			}
			p.seen = func(_ int, m *frame.Meta, b []byte) {
				if m.Wire != 43 || len(b) != 43 {
					t.Fatalf("a flow control frame of %d bytes", m.Wire)
				}
			}
			p.a.SetReceiver(p.now, 0, true)
			p.a.flow.Request(8)
			p.a.queueFlowControl(p.now)
			p.run(p.now + 2000)
			if p.b.Paused() != 8 {
				t.Fatal("not paused")
			}
			p.drained()
		}
	}
}

// A congestion notification leaves at most once per queue pair and interval.
func TestCNPInterval(t *testing.T) {
	p := newPair(t, func(_ int, c *Config) { c.CNP.Frames = true })
	p.lose = func(m *frame.Meta, b []byte) bool {
		if m.Wire > 1000 {
			b[15] |= 3
			reseal(b)
		}
		return false
	}
	var qs [2]uint32
	for i := range qs {
		qs[i], _ = p.connect(func(c *QPConfig) { c.Transport = transport.Config{} })
		must(t, p.a.SendMessage(0, qs[i], 1_000_000, 0))
	}
	p.run(frame.Millisecond)
	// Each takes 168 us: the first mark, and each 50 us after it.
	for _, q := range qs {
		if v, _ := p.a.QP(q); v.Stats.CNPs != 4 {
			t.Errorf("%d congestion notifications in 168 us", v.Stats.CNPs)
		}
	}
	if s := p.b.Counts(); s.CNPsSent != 8 || s.BECNs != 0 || s.CEMarked != 2000 {
		t.Errorf("%d sent for %d marks, %d BECNs", s.CNPsSent, s.CEMarked, s.BECNs)
	}
	// Without frames each acknowledgement of a marked frame echoes it.
	p2 := newPair(t, nil)
	p2.lose = p.lose
	qa, _ := p2.connect(nil)
	must(t, p2.a.SendMessage(0, qa, 10_000, 0))
	p2.run(frame.Millisecond)
	if v, _ := p2.a.QP(qa); v.Stats.CEs != 10 || p2.b.Counts().BECNs != 10 {
		t.Errorf("%d acknowledgements reported 10 marks", v.Stats.CEs)
	}
}
