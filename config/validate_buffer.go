package config

import (
	"errors"
	"fmt"

	"gswitch/buffer"
	"gswitch/units"
)

// validateBuffers refuses headroom and thresholds with which lossless classes
// would lose frames, with those that are safe. It is the arithmetic by which
// the node divides its buffer, and needs a document that is right otherwise.
func (d decoder) validateBuffers(c *Config) {
	if !d.OK() {
		return
	}
	c = c.Resolved()
	for i := range c.Switches {
		s, path := &c.Switches[i], fmt.Sprintf("switches[%d]", i)
		v := s.VSwitch(nil)
		if share := uint64(s.Buffer.Size) / uint64(max(1, len(s.WorkersUsed()))); s.Buffer.Size > 0 && share < s.largestFrame() {
			d.Fail(path+".buffer.size", "holds no frame: ports of this switch take frames of %d bytes%s", s.largestFrame(), ofWorkers(len(s.WorkersUsed())))
			continue
		}
		err := v.CheckBuffer(len(s.WorkersUsed()))
		var wrong *buffer.Error
		switch {
		case errors.As(err, &wrong):
			key := bufferKeys[wrong.What]
			if p := wrong.Port; wrong.What == buffer.OfHeadroom && p >= 0 && s.Ports[p].Lossless != nil && s.Ports[p].Lossless.Headroom != 0 {
				key = fmt.Sprintf(".ports[%d].lossless.headroom", p)
			}
			d.Fail(path+key, "%s", s.unsafe(wrong))
		case err != nil:
			d.Fail(path+".buffer", "%v", err)
		}
	}
}

// largestFrame is the most that a frame may have at any port, with its header
// and a VLAN tag, in bytes.
func (s *Switch) largestFrame() uint64 {
	most := 0
	for i := range s.Ports {
		most = max(most, s.Ports[i].MTU)
	}
	return uint64(most) + 18
}

// ofWorkers says that a buffer is divided.
func ofWorkers(n int) string {
	if n < 2 {
		return ""
	}
	return fmt.Sprintf(" (each of %d workers has its share of the buffer)", n)
}

var bufferKeys = map[buffer.Setting]string{
	buffer.OfBuffer: ".buffer.size", buffer.OfReserve: ".buffer.lossless.reserve", buffer.OfLimit: ".buffer.lossless.xoff",
	buffer.OfXON: ".buffer.lossless.hysteresis", buffer.OfHeadroom: ".buffer.lossless.headroom", buffer.OfLink: ".buffer.lossless",
}

// unsafe says what is wrong with the division of a buffer in the words of the
// document.
func (s *Switch) unsafe(e *buffer.Error) string {
	workers := len(s.WorkersUsed())
	share := ofWorkers(workers)
	if e.Port < 0 {
		if e.Safe != 0 {
			share += fmt.Sprintf("; size: at least %s", units.Size(e.Safe*uint64(workers)))
		}
		return e.Problem + share
	}
	p := &s.Ports[e.Port]
	text := fmt.Sprintf("port %s, class %d: %s%s", p.Name, e.Class, e.Problem, share)
	if e.What == buffer.OfHeadroom && e.Safe != 0 {
		b := &e.Budget
		text += fmt.Sprintf("; they are %d B of frames, %d B of pause frame, %d B of cable and %d B of response (gfabric headroom shows how); allow_loss: true accepts the loss",
			b.Own+b.Peer+b.Trigger, b.Control, b.Cable, b.Response)
	}
	return text
}
