package sim

import (
	"encoding/binary"
	"fmt"

	"gswitch/frame"
)

// Storm makes a direction of a link carry pause frames without end, as a host
// does whose NIC is broken (Guo et al., "RDMA over Commodity Ethernet at
// Scale", SIGCOMM 2016, section 4.3).
type Storm struct {
	Classes  uint8      // bitmap of the classes to pause
	Quanta   uint16     // pause time to ask for, in 512 bit times
	Interval frame.Time // between two frames, ns
	Until    frame.Time // when it ends; Never for good
}

// Storm starts a storm on one direction of a link now. Its frames come beside
// those of the port, and take none of its time.
func (e *Engine) Storm(id LinkID, way Way, s Storm) error {
	if _, err := e.direction(id, way); err != nil {
		return err
	}
	if s.Interval <= 0 {
		return fmt.Errorf("link %d: a storm needs an interval of at least 1 ns", id)
	}
	d, b := int32(2*id)+int32(way), s.frame()
	var tick func(now frame.Time)
	tick = func(now frame.Time) {
		if now < s.Until {
			e.inject(d, b)
			e.At(now+s.Interval, tick)
		}
	}
	e.At(e.now, tick)
	return nil
}

// frame returns a priority-based pause (IEEE 802.1Q annex 36, 802.3 annex 31D):
// group address, EtherType 0x8808, opcode 0x0101, enable vector, eight times.
func (s *Storm) frame() []byte {
	b := make([]byte, 60)
	copy(b, []byte{0x01, 0x80, 0xc2, 0, 0, 0x01, 0x02, 0, 0, 0, 0, 0xfe, 0x88, 0x08, 0x01, 0x01})
	b[17] = s.Classes
	for c := range 8 {
		if s.Classes>>c&1 != 0 {
			binary.BigEndian.PutUint16(b[18+2*c:], s.Quanta)
		}
	}
	return b
}

// inject puts a frame on a direction that no node sent. A link that is down
// and an arena that is used up take none.
func (e *Engine) inject(d int32, b []byte) {
	dir := &e.dirs[d]
	if !dir.up {
		return
	}
	p := e.receiver(dir)
	r := p.pool.New(b)
	if r == frame.Nil {
		return
	}
	f := e.faulty(d)
	f.injected++
	at := max(e.now+dir.delay, dir.last)
	dir.last = at
	dir.flight.add(inFlight{at: at, ref: r})
	p.queue.set(d, max(dir.nextArrival(), e.now))
}
