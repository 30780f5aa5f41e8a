package vswitch

import (
	"gswitch/buffer"
	"gswitch/frame"
	"gswitch/pfc"
)

// CheckBuffer checks whether the shared buffer can be divided as a configuration says,
// for a number of workers. The error is a *buffer.Error with the safe value, or one that
// names the safe thresholds of input queues. If the size is not set it depends on the
// memory for frames; then only headroom is checked, not sizes.
func (cfg *Config) CheckBuffer(workers int) error {
	if err := cfg.checkInputs(); err != nil {
		return err
	}
	b := dividedBuffer(cfg, workers, cfg.Buffer.Size)
	if cfg.Buffer.Size == 0 {
		b.Size = maxBuffer
	}
	return buffer.Check(b)
}

// maxBuffer exceeds what any division can require; a buffer accepts it as its size.
const maxBuffer = 1 << 34

// bufferConfig divides the shared buffer among the ports, for one of several workers:
// each has its share of the memory and judges its own frames.
func bufferConfig(cfg *Config, workers int, pool *frame.Pool) buffer.Config {
	size := cfg.Buffer.Size
	if size == 0 {
		size = DefaultBuffer(pool.Chunks(), pool.Room())
	}
	out := dividedBuffer(cfg, workers, size)
	if cfg.Buffer.Chunks {
		all, lossy := cfg.mayHold(workers, pool.Chunks())
		if cfg.inputQueued() { // they have the rest: see InputMemory
			all, lossy = all/ownPart, lossy/ownPart
		}
		out.Chunks = buffer.Chunks{Bytes: uint32(pool.Room()), All: all, Lossy: lossy}
	}
	return out
}

// mayHold returns how many frames one of several workers may have in its queues, and how
// many of them may be lossy: the rest is the headroom of lossless classes.
func (cfg *Config) mayHold(workers, chunks int) (all, lossy int) {
	if all = cfg.MaxFrames / workers; all == 0 {
		all = chunks / 2 / max(cfg.Sharing, 1) / workers
	}
	if cfg.PFC.Mode != pfc.Off {
		return all, all * 3 / 4
	}
	return all, all
}

// ownPart is the divisor for the part of a switch with input queues that is left to the
// shared buffer, of the memory for waiting frames: for copies and for frames that the
// switch itself sends.
const ownPart = 4

// inputQueued reports whether frames wait in input queues instead of the shared buffer.
func (cfg *Config) inputQueued() bool {
	for _, f := range features {
		if f.InputQueued && cfg.uses(f) {
			return true
		}
	}
	return false
}

// InputMemory returns how many bytes of a frame fit into a chunk, and how many chunks the
// frames that wait in, and behind, this worker's input queues may take: bytes is 0 if
// chunks are not counted.
func (n *Node) InputMemory() (bytes uint32, chunks int) {
	cfg := n.prog.Config
	if !cfg.Buffer.Chunks {
		return 0, 0
	}
	return uint32(n.pool.Room()), cfg.InputChunks(len(n.others.in), n.arena.Chunks())
}

// InputChunks returns the number of those chunks for one of several workers, in a packet
// memory with the given number of chunks.
func (cfg *Config) InputChunks(workers, chunks int) int {
	all, _ := cfg.mayHold(workers, chunks)
	return all - all/ownPart
}

func dividedBuffer(cfg *Config, workers int, size uint64) buffer.Config {
	c := &cfg.Buffer
	alpha := c.Alpha
	if alpha == 0 {
		alpha = 1
	}
	out := buffer.Config{Size: size / uint64(workers), OwnFrames: c.OwnFrames, Ports: make([]buffer.PortConfig, len(cfg.Ports))}
	for i := range cfg.Ports {
		p := &cfg.Ports[i]
		if p.Name == "" {
			continue
		}
		b := &out.Ports[i]
		b.Link = p.Link(c)
		b.Link.Response += c.Lateness
		for q := range b.Queues {
			b.Queues[q] = buffer.Queue{Reserve: uint64(c.QueueReserve), Limit: buffer.Threshold{Bytes: uint64(c.QueueLimit), Alpha: alpha}}
		}
		for q := range b.Queues {
			if out := cfg.pushOut(p); out.On() && out.Exempt>>q&1 == 0 {
				b.Queues[q].Limit = buffer.Threshold{} // which frame has to go is decided when a frame is queued
			}
		}
		for class := range b.Groups {
			if cfg.Lossless(class) {
				b.Groups[class] = losslessGroup(c, p)
			} else {
				b.Groups[class].Limit.Bytes = uint64(c.IngressLimit)
			}
		}
		for _, f := range features {
			if f.Divide != nil && cfg.uses(f) {
				f.Divide(cfg, p, b)
			}
		}
	}
	return out
}

// DefaultBuffer returns the size of a shared buffer that is given none, in bytes, in a
// packet memory of so many chunks that hold so many bytes each.
func DefaultBuffer(chunks, room int) uint64 {
	return min(defaultBuffer, uint64(chunks)*uint64(room)/2)
}

// defaultBuffer is the shared buffer of a switch chip with 32 ports at 40 Gb/s (12 MB in
// Broadcom's Trident II).
const defaultBuffer = 12 << 20

// Lossless reports whether a class is under flow control.
func (cfg *Config) Lossless(class int) bool {
	return cfg.PFC.Mode != pfc.Off && cfg.PFC.Classes>>class&1 != 0
}

// losslessGroup is the account of a lossless class at an ingress port.
func losslessGroup(c *BufferConfig, p *PortConfig) buffer.Group {
	limit := buffer.Threshold{Bytes: uint64(c.XOFF), Alpha: c.LosslessAlpha}
	if p.LosslessAlpha != 0 {
		limit.Alpha = p.LosslessAlpha
	}
	if limit == (buffer.Threshold{}) {
		limit.Alpha = defaultLosslessAlpha
	}
	headroom := uint64(c.Headroom)
	if p.Headroom != 0 {
		headroom = uint64(p.Headroom)
	}
	return buffer.Group{Reserve: uint64(c.GroupReserve), Lossless: true, Limit: limit, XONOffset: uint64(c.XONOffset),
		Headroom: headroom, NoHeadroomCheck: c.AllowLoss}
}

// defaultLosslessAlpha lets a single congested ingress port hold a ninth of the shared
// bytes before it requests a pause.
const defaultLosslessAlpha = 1.0 / 8

// Link is what headroom depends on.
func (p *PortConfig) Link(c *BufferConfig) buffer.Link {
	return buffer.Link{Rate: p.rate(), Delay: p.CableDelay, MaxFrame: uint32(p.mtu()) + 14 + 4, Overhead: p.Scheduler.Overhead, Response: c.Response}
}

// rate is the speed of the link in bit/s, or the nominal rate if it is unlimited.
func (p *PortConfig) rate() uint64 {
	switch {
	case p.Scheduler.Rate != 0:
		return p.Scheduler.Rate
	case p.NominalRate != 0:
		return p.NominalRate
	}
	return pfc.DefaultRate
}

func (p *PortConfig) mtu() int {
	if p.MTU == 0 {
		return defaultMTU
	}
	return p.MTU
}

const defaultMTU = 1500
