// Package point gives a switch combined input and output queues (package
// crossbar): a frame waits at the port it came by until there is room in its
// egress queue. They take the place of the shared buffer, which only holds what
// the switch itself sends then, and PFC follows the ingress queues. Importing it
// registers the feature.
package point

import (
	"fmt"
	"math/bits"
	"sort"

	"gswitch/buffer"
	"gswitch/crossbar"
	"gswitch/frame"
	"gswitch/vswitch"
)

// Name is the key of a Config in vswitch.Config.Options.
const Name = "crossbar"

// Config gives a switch a crossbar.
//
// Each worker has the crossbar of its egress ports, with queues of their own
// for all ingress ports: of a switch on w workers a port can hold up to w times
// Ingress, its neighbour is paused as soon as one of them asks for it, and up to
// w frames cross from it at once. Each queue has the whole room for what is
// under way, so nothing is lost within a worker; between workers as long as the
// ring does not overflow.
type Config struct {
	Ingress, Egress uint32 // bytes of the queue at each port; 0 = 128 KiB
	// Reserve and TotalCap say what counts against Egress, SkipBlocked whether a
	// full egress queue holds up lower classes: see crossbar.Config. Reserve 0
	// is Egress.
	Reserve     uint32
	TotalCap    bool
	SkipBlocked bool
	// Speedup is the rate of the crossbar in rates of the fastest port; 0 = 4.
	Speedup int
	// Pause and Unpause are the thresholds of lossless classes in drain bytes;
	// both 0: the usual ones, of the port that needs the most.
	Pause, Unpause uint32
	Latency        frame.Time // from arrival until a frame can cross
	// Batch is how many bytes a port may hand to its device ahead of its link
	// where a worker was late: PortConfig.Burst is cut to it. What was handed
	// out is in no queue any more, and no pause stops it. 0 = two full frames.
	Batch uint32
}

// Limits of a Config.
const (
	MaxPorts = crossbar.MaxPorts
	MaxQueue = 1 << 30
)

const (
	defaultQueue   = 128 << 10
	defaultSpeedup = 4
	maxSpeedup     = 1000
	smallest       = 60      // bytes of a frame of Ethernet, without
	mostChunks     = 1 << 24 // of a packet memory
	fcs            = 4       // bytes of the frame check sequence, which links count and queues do not
)

func init() {
	vswitch.Register(vswitch.Feature{Name: Name, Check: check, Memory: memory, Divide: divide, New: newPoint, Counters: counters, InputQueued: true,
		Whole: func() vswitch.WholeSection { return new(Section) },
		Doc:   "Queues at the ingress ports and a crossbar to those at the egress ports, in place of the shared buffer (DeTail)."})
}

// Of returns the options of a switch, and whether it has any.
func Of(cfg *vswitch.Config) (Config, bool) {
	c, on := cfg.Options[Name].(Config)
	return c, on
}

// Rate returns the bit/s at which frames cross in a switch whose fastest port
// has the given rate.
func (c Config) Rate(fastest uint64) uint64 {
	if c.Speedup <= 0 {
		return max(fastest, 1) * defaultSpeedup
	}
	return max(fastest, 1) * uint64(c.Speedup)
}

// Wait returns Latency.
func (c Config) Wait() frame.Time { return c.Latency }

// Queues returns the bytes of the queue of an ingress port, and the most that
// the queue of an egress port can hold.
func (c Config) Queues() (ingress, egress uint32) {
	if ingress, egress = c.Ingress, c.Egress; ingress == 0 {
		ingress = defaultQueue
	}
	if egress == 0 {
		egress = defaultQueue
	}
	switch {
	case c.TotalCap:
		return ingress, egress
	case c.Reserve == 0:
		return ingress, 2 * egress
	}
	return ingress, egress + c.Reserve
}

// batch returns Batch, or two full frames of a link.
func (c *Config) batch(l *buffer.Link) uint32 {
	if c.Batch != 0 {
		return c.Batch
	}
	return 2 * (l.MaxFrame - fcs + l.Overhead)
}

// burst is how far the link of a port may catch up.
func (c *Config) burst(p *vswitch.PortConfig, l *buffer.Link) frame.Time {
	return min(p.Scheduler.Burst, frame.Time(uint64(c.batch(l))*8e9/l.Rate))
}

func check(cfg *vswitch.Config) error {
	c, on := Of(cfg)
	if !on {
		return nil
	}
	if _, err := c.made(cfg); err != nil {
		return fmt.Errorf("crossbar: %w", err)
	}
	return nil
}

// memory reports headroom of lossless classes for which there are not enough chunks: they
// have less than that, see crossbar.Divide.
func memory(cfg *vswitch.Config, workers, chunks int) error {
	c, on := Of(cfg)
	if !on {
		return nil
	}
	x, err := c.made(cfg)
	if err != nil {
		return nil // which check reports
	}
	ports := 0
	for i := range cfg.Ports {
		if cfg.Ports[i].Name != "" {
			ports++
		}
	}
	want := x.Chunks.Headroom
	has := func(chunks int) uint32 {
		return crossbar.Divide(1, cfg.InputChunks(workers, chunks), ports, ports, want).Headroom
	}
	got := has(chunks)
	if got >= want {
		return nil
	}
	how := "have fewer lossless classes, less response or shorter cables"
	if enough := sort.Search(mostChunks+1, func(n int) bool { return has(n) >= want }); enough <= mostChunks {
		how = fmt.Sprintf("set memory.frames to at least %d, or ", enough) + how
	}
	return fmt.Errorf("after a pause lossless classes may still get %d small frames at each port, and the packet memory of %d has headroom for %d; others are lost: %s", want, chunks, got, how)
}

// divide takes lossless classes out of the shared buffer.
func divide(cfg *vswitch.Config, _ *vswitch.PortConfig, b *buffer.PortConfig) {
	if _, on := Of(cfg); !on {
		return
	}
	for class := range b.Groups {
		if cfg.Lossless(class) {
			b.Groups[class] = buffer.Group{Limit: buffer.Threshold{Bytes: uint64(cfg.Buffer.IngressLimit)}}
		}
	}
}

// made returns what the crossbar of a switch is made from. The error names safe
// thresholds where the ones given could lose frames.
func (c *Config) made(cfg *vswitch.Config) (crossbar.Config, error) {
	x := crossbar.Config{Ingress: c.Ingress, Egress: c.Egress, Reserve: c.Reserve, TotalCap: c.TotalCap, SkipBlocked: c.SkipBlocked,
		Pause: c.Pause, Unpause: c.Unpause, Latency: c.Latency}
	if x.Ingress == 0 {
		x.Ingress = defaultQueue
	}
	if x.Egress == 0 {
		x.Egress = defaultQueue
	}
	if x.Reserve == 0 {
		x.Reserve = x.Egress
	}
	for class := range 8 {
		if cfg.Lossless(class) {
			x.Lossless |= 1 << class
		}
	}
	switch {
	case len(cfg.Ports) > MaxPorts:
		return x, fmt.Errorf("joins at most %d ports, and the switch has %d", MaxPorts, len(cfg.Ports))
	case c.Speedup < 0 || c.Speedup > maxSpeedup:
		return x, fmt.Errorf("a speed-up of %d is not within 1 and %d", c.Speedup, maxSpeedup)
	}
	var fastest uint64
	for i := range cfg.Ports {
		if p := &cfg.Ports[i]; p.Name != "" {
			fastest = max(fastest, p.Link(&cfg.Buffer).Rate)
			x.Overhead = max(x.Overhead, p.Scheduler.Overhead)
		}
	}
	x.Rate = c.Rate(fastest)
	if x.Lossless != 0 {
		if err := c.thresholds(cfg, &x); err != nil {
			return x, err
		}
	}
	return x, x.Validate()
}

// thresholds fills in or checks the thresholds of pause, and sets aside what
// lossless classes can come to hold: bytes, and chunks where all that comes after a
// pause are the smallest frames of Ethernet.
func (c *Config) thresholds(cfg *vswitch.Config, x *crossbar.Config) error {
	auto := x.Pause == 0 && x.Unpause == 0
	var queues []buffer.InputQueue
	var names []string // of their ports
	for i := range cfg.Ports {
		p := &cfg.Ports[i]
		if p.Name == "" {
			continue
		}
		q := buffer.InputQueue{Size: uint64(x.Ingress), Classes: uint64(bits.OnesCount8(x.Lossless)), Link: p.Link(&cfg.Buffer)}
		q.Link.Response = max(q.Link.Response, cfg.PFC.Response)
		if c.burst(p, &q.Link) > 0 {
			q.Batch = uint64(c.batch(&q.Link))
		}
		queues, names = append(queues, q), append(names, p.Name)
		if !auto {
			continue
		}
		t, err := q.Thresholds()
		if err != nil {
			return fmt.Errorf("port %s: %w", p.Name, err)
		}
		if x.Pause == 0 || uint32(t.Pause) < x.Pause {
			x.Pause = uint32(t.Pause)
		}
		x.Unpause = max(x.Unpause, uint32(t.Unpause))
	}
	if auto {
		x.Unpause = min(x.Unpause, max(x.Pause, 1)-1) // of another port
	}
	peak, late := uint64(0), uint64(0)
	for i, q := range queues {
		t, err := q.Thresholds()
		if err == nil {
			err = q.Check(uint64(x.Pause), uint64(x.Unpause))
		}
		if err != nil && !cfg.Buffer.AllowLoss {
			return fmt.Errorf("port %s: %w", names[i], err)
		}
		peak = max(peak, q.Classes*(uint64(x.Pause)+t.Frame+t.Skid))
		x.Chunks.Headroom = max(x.Chunks.Headroom, uint32(q.Classes*(2+t.Skid/uint64(smallest+q.Link.Overhead))))
		late = max(late, q.Classes*buffer.Headroom(buffer.Link{Rate: q.Link.Rate, Response: cfg.Buffer.Lateness}, 0).Response)
	}
	if rest := uint64(x.Ingress) - min(peak, uint64(x.Ingress)); rest > 0 {
		x.Lossy = uint32(rest)
	}
	// The thresholds are those of exact nodes: what comes while nodes are late has room of
	// its own.
	if !cfg.Buffer.AllowLoss {
		x.Ingress = uint32(min(uint64(x.Ingress)+late, MaxQueue))
	}
	return nil
}
