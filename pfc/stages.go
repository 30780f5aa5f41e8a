package pfc

import "math/bits"

// Gentle Flow Control (Qian, Cheng, Zhang and Ren, "Gentle Flow Control:
// Avoiding Deadlock in Lossless Networks", SIGCOMM 2019), as it works by
// buffers (section 5): a neighbour is not stopped but slowed, to C/2^k in stage
// k, so that no port ever waits for good and no circle of waits can close.
//
// The frame is that of priority flow control (IEEE 802.1Q clause 36, opcode
// 0x0101). The time of a class that is enabled in it holds the stage: 0 is full
// rate. A stage holds for as long as a pause of the longest time would,
// and is renewed like one. A neighbour that knows only pauses reads a stage as
// a pause of a few quanta, so that both ends must be configured alike.

// MaxStages is the last stage that there can be: C/32768.
const MaxStages = 15

// Stages are the stages of eight classes, four bits each.
type Stages uint32

// Of returns the stage of a class.
func (s Stages) Of(class int) uint8 { return uint8(s >> (class & 7 * 4) & 15) }

// With returns s with another stage of a class, at most MaxStages.
func (s Stages) With(class int, stage uint8) Stages {
	shift := class & 7 * 4
	return s&^(15<<shift) | Stages(min(stage, MaxStages))<<shift
}

// Classes returns the classes that are slowed.
func (s Stages) Classes() (m uint8) {
	for ; s != 0; s &^= 15 << (bits.TrailingZeros32(uint32(s)) &^ 3) {
		m |= 1 << (bits.TrailingZeros32(uint32(s)) / 4)
	}
	return m
}

// RequestStages says how much the neighbour should be slowed, where
// Config.Stages is not 0.
func (p *Port) RequestStages(s Stages) {
	p.stages = 0
	for m := s.Classes() & p.scope(); m != 0; m &= m - 1 {
		c := bits.TrailingZeros8(m)
		p.stages = p.stages.With(c, min(s.Of(c), p.cfg.Stages))
	}
	p.request(p.stages.Classes())
}

// Stage returns the stage to which the neighbour slows a class: frames of it
// may leave at the rate of the link divided by 2^stage. 0 without Gentle Flow
// Control.
func (p *Port) Stage(class int) uint8 {
	c := class & 7
	if p.cfg.Stages == 0 || p.paused>>c&1 == 0 {
		return 0
	}
	return p.rx[c].stage
}

// quantaOf is what the frame says for a class of which the neighbour must know.
func (p *Port) quantaOf(c int) uint16 {
	if p.cfg.Stages != 0 {
		return uint16(p.stages.Of(c))
	}
	return p.cfg.quanta()
}
