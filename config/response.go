package config

import (
	"cmp"
	"slices"
	"time"

	"gswitch/buffer"
	"gswitch/frame"
	"gswitch/units"
	"gswitch/vswitch"
)

// How long both ends of a link are taken to need to act on a pause, where the document
// does not say. A worker that spins on a processor of its own looks at its ports all the
// time. Any other waits for its turn, and so does the neighbour of a port that is no NIC:
// on two processors with a load of 21 to 51 both ends took up to 10 ms
// (docs/OPERATING.md#losslessness).
const (
	spinning = 50 * time.Microsecond
	sharing  = 20 * time.Millisecond
)

// resolveResponse says how long both ends take, where the document does not: as long as
// workers that share processors may, or what half of the buffer has room for as headroom.
func (c *Config) resolveResponse(s *Switch) {
	l := &s.Buffer.Lossless
	if l.Response != 0 {
		return
	}
	l.Response = units.Duration(spinning)
	if c.spins(s) || s.headroomGiven() || s.ownThresholds() {
		return
	}
	size := cmp.Or(uint64(s.Buffer.Size), vswitch.DefaultBuffer(c.Frames(), c.Memory.Chunk))
	share := size / uint64(max(1, len(s.WorkersUsed())))
	for t := sharing; t > spinning; t /= 2 {
		if room := s.headroom(t); room <= share/2 && room+s.reserves()+uint64(l.XOFF) <= share {
			l.Response = units.Duration(t)
			return
		}
	}
}

// spins reports whether each worker of a switch has a processor and never sleeps.
func (c *Config) spins(s *Switch) bool {
	return !slices.ContainsFunc(s.WorkersUsed(), func(w int) bool {
		return w >= len(c.Workers) || c.Workers[w].Poll != "spin" || c.Workers[w].CPU == nil
	})
}

// headroomGiven reports whether the document has the headroom of some port, which is held
// against what the shorter response needs.
func (s *Switch) headroomGiven() bool {
	return s.Buffer.Lossless.Headroom != 0 || slices.ContainsFunc(s.Ports, func(p Port) bool { return p.Lossless != nil && p.Lossless.Headroom != 0 })
}

// ownThresholds reports whether a feature has thresholds of its own that follow from
// response: input queues, and stages in place of a pause.
func (s *Switch) ownThresholds() bool {
	return slices.ContainsFunc(vswitch.Features(), func(f *vswitch.Feature) bool {
		return (f.InputQueued || f.FlowControl != nil) && s.Features.Get(f.Name) != nil
	})
}

// losslessClasses is how many classes are lossless: a pause of the link is for all.
func (s *Switch) losslessClasses() uint64 {
	if s.PFC.Pause {
		return 8
	}
	return uint64(len(s.PFC.Classes))
}

// headroom is what all lossless classes of all ports need together, in bytes, where both
// ends of links take so long.
func (s *Switch) headroom(response time.Duration) (sum uint64) {
	for i := range s.Ports {
		p := &s.Ports[i]
		port := vswitch.PortConfig{MTU: p.MTU, CableDelay: frame.Time(p.Delay), Scheduler: p.link()}
		link := port.Link(&vswitch.BufferConfig{Response: frame.Time(response)})
		sum += s.losslessClasses() * buffer.Headroom(link, 0).Total()
	}
	return sum
}

// reserves is what belongs to queues and lossless classes alone, in bytes.
func (s *Switch) reserves() uint64 {
	return uint64(len(s.Ports)) * (8*uint64(s.Buffer.Reserve) + s.losslessClasses()*uint64(s.Buffer.Lossless.Reserve))
}
