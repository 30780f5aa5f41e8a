package vswitch

import (
	"gswitch/buffer"
	"gswitch/frame"
	"gswitch/pfc"
)

// CheckBuffer finds out whether the shared buffer can be divided as a
// configuration says, for so many workers. The error is a *buffer.Error with
// the value that is safe, or one that names the safe thresholds of input queues.
// Where the size is left out it depends on the memory of frames: then sizes are
// not judged, only headroom.
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

// maxBuffer is larger than what any division can ask for and that a buffer
// takes.
const maxBuffer = 1 << 34

// bufferConfig divides the shared buffer among the ports, for one of several
// workers: each gets its share of the memory and judges its own frames.
func bufferConfig(cfg *Config, workers int, pool *frame.Pool) buffer.Config {
	size := cfg.Buffer.Size
	if size == 0 {
		size = min(defaultBuffer, uint64(pool.Chunks())*uint64(pool.Room())/2)
	}
	out := dividedBuffer(cfg, workers, size)
	if cfg.Buffer.Chunks {
		all, lossy := cfg.mayHold(workers, pool.Chunks())
		if cfg.inputQueued() { // which have the rest: see InputMemory
			all, lossy = all/ownPart, lossy/ownPart
		}
		out.Chunks = buffer.Chunks{Bytes: uint32(pool.Room()), All: all, Lossy: lossy}
	}
	return out
}

// mayHold returns how many frames one of several workers may have in its
// queues, and how many of them lossy ones: the rest is the headroom of lossless
// classes.
func (cfg *Config) mayHold(workers, chunks int) (all, lossy int) {
	if all = cfg.MaxFrames / workers; all == 0 {
		all = chunks / 2 / max(cfg.Sharing, 1) / workers
	}
	if cfg.PFC.Mode != pfc.Off {
		return all, all * 3 / 4
	}
	return all, all
}

// ownPart of the memory for frames that wait is, in a switch with input queues, for
// copies and what the switch itself sends, which wait in the shared buffer there.
const ownPart = 4

// inputQueued reports whether frames wait in input queues in place of the shared
// buffer.
func (cfg *Config) inputQueued() bool {
	for _, f := range features {
		if f.InputQueued && cfg.uses(f) {
			return true
		}
	}
	return false
}

// InputMemory returns how many chunks of memory frames may take that wait in the input
// queues of this worker and behind them, and how many bytes of a frame fit into one: 0
// where chunks are not counted.
func (n *Node) InputMemory() (bytes uint32, chunks int) {
	cfg := n.prog.Config
	if !cfg.Buffer.Chunks {
		return 0, 0
	}
	return uint32(n.pool.Room()), cfg.InputChunks(len(n.handIn), n.arena.Chunks())
}

// InputChunks returns how many chunks those of one of several workers are, of a packet
// memory of so many.
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
				b.Queues[q].Limit = buffer.Threshold{} // who has to go is decided when the frame is queued
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

// defaultBuffer is what a switch chip of 32 ports at 40 Gb/s shares among them
// (12 MB in Broadcom's Trident II).
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

// defaultLosslessAlpha lets a congested ingress port hold a ninth of the free
// shared bytes before it asks for pause.
const defaultLosslessAlpha = 1.0 / 8

// Link is what headroom depends on.
func (p *PortConfig) Link(c *BufferConfig) buffer.Link {
	return buffer.Link{Rate: p.rate(), Delay: p.CableDelay, MaxFrame: uint32(p.mtu()) + 14 + 4, Overhead: p.Scheduler.Overhead, Response: c.Response}
}

// rate is the speed of the link in bits/s, nominal where it is unlimited.
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
