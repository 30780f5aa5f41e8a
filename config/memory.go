package config

import (
	"fmt"
	"time"

	"gswitch/vswitch"
)

// What the packet memory is computed from. All of it is resident: the kernel
// pins what it may receive into.
const (
	framesAPort  = 2 * 2048 // fill and receive ring of a queue of an interface
	framesAWire  = 256      // under way inside the process
	framesACable = 4096     // most that an emulated cable holds
	framesQueue  = 12 << 10 // in the queues of a switch whose buffer has no size
	framesQueues = 48 << 10 // in the queues of all such switches
)

// Frames returns how many chunks the packet memory of a resolved document has: memory.frames,
// or what the rings of the ports take and what may be queued.
func (c *Config) Frames() int {
	if c.Memory.Frames != 0 {
		return c.Memory.Frames
	}
	rings, unsized, sized := 0, 0, 0
	for i := range c.Switches {
		s := &c.Switches[i]
		for j := range s.Ports {
			switch p := &s.Ports[j]; {
			case p.Interface != "":
				rings += framesAPort * max(p.Queues, len(p.Workers))
			default:
				rings += framesAWire
			}
			rings += 2 * onCable(&s.Ports[j]) // of all memory half is for what waits in queues
		}
		if s.Buffer.Size == 0 {
			unsized += framesQueue
		}
		// Full-size frames fill their chunk to about two thirds.
		sized += int(s.Buffer.Size) / (c.Memory.Chunk / 2)
	}
	return max(16384, rings+min(unsized, framesQueues)+sized)
}

// onCable is how many frames can be on the emulated cable of a port: the smallest ones at
// the rate of its link.
func onCable(p *Port) int {
	switch {
	case p.Delay == 0:
		return 0
	case p.Rate == 0:
		return framesACable
	}
	const smallest = (60 + 24) * 8 // bits on the link
	return int(min(framesACable, 1+float64(p.Rate)*time.Duration(p.Delay).Seconds()/smallest))
}

// Shortage is what the packet memory is too small for.
type Shortage struct {
	Path string // in the document
	Err  error
}

// Shortages returns what features of the switches of a resolved document have too little
// packet memory for. It is possible, and costs frames in the worst case.
func (c *Config) Shortages() (v []Shortage) {
	for i := range c.Switches {
		s := &c.Switches[i]
		for _, f := range vswitch.Features() {
			if f.Memory == nil || s.Features.Get(f.Name) == nil {
				continue
			}
			if err := f.Memory(s.VSwitch(nil), len(s.WorkersUsed()), c.Frames()); err != nil {
				v = append(v, Shortage{fmt.Sprintf("switches[%d].%s", i, f.Name), err})
			}
		}
	}
	return v
}
