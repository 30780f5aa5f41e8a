package pfc

import (
	"math/bits"

	"gswitch/frame"
	"gswitch/wire"
)

// Request says for which classes the neighbour should pause, all others may
// go on. NextFrame writes the frame that asks for it. With Config.Stages those classes get
// the last stage.
func (p *Port) Request(want uint8) {
	if p.cfg.Stages != 0 {
		var s Stages
		for m := want; m != 0; m &= m - 1 {
			s = s.With(bits.TrailingZeros8(m), p.cfg.Stages)
		}
		p.RequestStages(s)
		return
	}
	p.request(want)
}

func (p *Port) request(want uint8) {
	p.requested = want
	want &= p.scope()
	if p.cfg.Mode == Pause && want != 0 {
		want = 0xff
	}
	for m := want &^ p.want; m != 0; m &= m - 1 {
		p.stats.Requests[bits.TrailingZeros8(m)]++
	}
	p.want = want
}

// Due reports whether NextFrame has a frame.
func (p *Port) Due(now frame.Time) bool {
	return p.sent != p.want || p.sentStages != p.stages || p.sent != 0 && (now >= p.renewAt || p.sentMode != p.cfg.Mode)
}

// renewal returns the time from one XOFF to the next: half of what the neighbour pauses
// for each.
func (p *Port) renewal() frame.Time { return Span(p.cfg.quanta(), p.cfg.rate()) / 2 }

// NextFrame writes the next flow control frame that must leave at now to b,
// without FCS, and returns its length of wire.MinFrame bytes: 0 if there is
// none, or if b is shorter. Call it after Request and whenever Wake is due,
// until it returns 0. A frame for some classes renews all others too.
func (p *Port) NextFrame(now frame.Time, b []byte) int {
	if len(b) < wire.MinFrame || !p.Due(now) {
		return 0
	}
	mode, want := p.cfg.Mode, p.want
	if p.sent != 0 && p.sentMode != mode {
		mode, want = p.sentMode, 0 // end in the old mode what began there
	}
	ended := p.sent &^ want
	p.noteSent(now, want)
	p.sentMode = mode
	if mode == Pause {
		f := wire.PauseFields{Src: p.cfg.Source}
		if want != 0 {
			f.Quanta = p.cfg.quanta()
		}
		p.stats.TxPause++
		return f.Encode(b)
	}
	f := wire.PFCFields{Src: p.cfg.Source, Enable: want | ended}
	for m := want; m != 0; m &= m - 1 {
		c := bits.TrailingZeros8(m)
		f.Quanta[c] = p.quantaOf(c)
	}
	p.stats.TxFrames++
	return f.Encode(b)
}

// noteSent notes that the classes of want are XOFF at the neighbour from now on,
// and no others.
func (p *Port) noteSent(now frame.Time, want uint8) {
	for m := want; m != 0; m &= m - 1 {
		c := bits.TrailingZeros8(m)
		p.stats.TxXOFF[c]++
		if p.sent>>c&1 == 0 {
			p.since[c] = now
		}
		p.expectStop(now, c, p.sent>>c&1 == 0)
	}
	for m := p.sent &^ want; m != 0; m &= m - 1 {
		c := bits.TrailingZeros8(m)
		p.stats.TxXON[c]++
		p.stats.RequestTime[c] += now - p.since[c]
	}
	p.sent, p.sentStages, p.renewAt = want, p.stages, frame.Never
	if want != 0 {
		p.renewAt = now + p.renewal()
	}
}

// XOFFSent returns the classes that are XOFF at the neighbour.
func (p *Port) XOFFSent() uint8 { return p.sent }
