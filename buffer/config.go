package buffer

import (
	"fmt"
	"math"
)

// Config divides a buffer among ports. The zero value of a Group or Queue is
// lossy, without reserve, and limited by the shared pool alone.
type Config struct {
	Size  uint64 // bytes
	Cell  uint32 // a frame is charged in whole cells of this many bytes; 0 or 1 = exactly
	Ports []PortConfig
}

// PortConfig is the share of one port: its groups on the way in, its queues on
// the way out.
type PortConfig struct {
	Link   Link // needed where a group is lossless
	Groups [8]Group
	Queues [8]Queue
}

// Group configures one class of an ingress port.
type Group struct {
	Reserve  uint64
	Lossless bool
	// Limit bounds the shared bytes of the group: the threshold of XOFF where
	// it is lossless, of dropping where it is not.
	Limit Threshold
	// XONOffset is how far below Limit the group must fall before XON.
	XONOffset uint64
	// Headroom of a lossless group; 0 computes it from Link. NoHeadroomCheck
	// takes less than the link needs, for experiments that want loss.
	Headroom        uint64
	NoHeadroomCheck bool
}

// Queue configures one queue of an egress port.
type Queue struct {
	Reserve uint64
	// Limit bounds what the queue holds beyond its reserve. It never drops a
	// lossless frame.
	Limit Threshold
}

// Threshold is a bound on bytes of the shared pool: Bytes where that is not 0,
// Alpha times the free bytes of the pool where that is not 0, the smaller one
// where both are set, none where neither is.
type Threshold struct {
	Bytes uint64
	Alpha float64
}

// AlphaForShare returns the alpha with which a single user of an otherwise
// empty pool may take the given share of it (0 < share < 1): the fixed point
// of q = alpha * (1 - q). An alpha of 0.11, "11 % of the free bytes", lets it
// take 0.099; AlphaForShare(0.11) = 0.1236 lets it take 0.11.
func AlphaForShare(share float64) float64 { return share / (1 - share) }

// maxAlpha bounds alpha: beyond it a threshold is no threshold.
const maxAlpha = 1024

// alphaShift is the binary point of an alpha in the hot path.
const alphaShift = 20

// limit is a Threshold as the hot path reads it.
type limit struct {
	bytes uint64 // largest value = none
	alpha uint64 // 0 = none
}

func newLimit(t Threshold) limit {
	l := limit{bytes: t.Bytes, alpha: uint64(math.Round(t.Alpha * (1 << alphaShift)))}
	if t.Bytes == 0 {
		l.bytes = math.MaxUint64
	}
	if t.Alpha > 0 && l.alpha == 0 {
		l.alpha = 1
	}
	return l
}

// at returns the threshold while free bytes of the pool are free.
func (l limit) at(free uint64) uint64 {
	if l.alpha == 0 {
		return l.bytes
	}
	return min(l.bytes, free*l.alpha>>alphaShift)
}

// maxSize keeps free*alpha within 64 bits: 16 GB.
const maxSize = 1 << 34

// layout is what a valid Config comes to.
type layout struct {
	shared   uint64
	headroom [][8]uint64
}

// plan checks c and computes headroom and the shared pool.
func plan(c *Config) (layout, error) {
	var l layout
	if c.Size == 0 || c.Size > maxSize {
		return l, fmt.Errorf("buffer size %d B is not within 1 B and %d B", c.Size, uint64(maxSize))
	}
	if len(c.Ports) >= math.MaxUint16 {
		return l, fmt.Errorf("buffer: %d ports are too many", len(c.Ports))
	}
	var taken, largest uint64
	l.headroom = make([][8]uint64, len(c.Ports))
	for p := range c.Ports {
		pc := &c.Ports[p]
		for i := range pc.Groups {
			g := &pc.Groups[i]
			where := fmt.Sprintf("buffer: port %d class %d", p, i)
			if err := checkThreshold(g.Limit, where); err != nil {
				return l, err
			}
			if g.Reserve > c.Size || g.Headroom > c.Size {
				return l, fmt.Errorf("%s: reserve %d B and headroom %d B do not fit into the buffer of %d B", where, g.Reserve, g.Headroom, c.Size)
			}
			taken += g.Reserve
			if !g.Lossless {
				if g.Headroom != 0 || g.XONOffset != 0 {
					return l, fmt.Errorf("%s: headroom and XON offset are for lossless classes: set lossless or take them away", where)
				}
				continue
			}
			h, err := planHeadroom(c, pc, g, where)
			if err != nil {
				return l, err
			}
			l.headroom[p][i] = h
			taken += h
			largest = max(largest, roundUp(uint64(pc.Link.MaxFrame), uint64(c.Cell)))
		}
		for i := range pc.Queues {
			q := &pc.Queues[i]
			where := fmt.Sprintf("buffer: port %d queue %d", p, i)
			if err := checkThreshold(q.Limit, where); err != nil {
				return l, err
			}
			if q.Reserve > c.Size {
				return l, fmt.Errorf("%s: reserve %d B does not fit into the buffer of %d B", where, q.Reserve, c.Size)
			}
			taken += q.Reserve
		}
	}
	if need := taken + largest; need > c.Size {
		return l, fmt.Errorf("buffer of %d B is too small: reserves and headroom take %d B and the shared pool must hold a frame: make it at least %d B, or have fewer lossless classes, smaller frames or shorter cables", c.Size, taken, need)
	}
	l.shared = c.Size - taken
	return l, checkStatic(c, &l)
}

func planHeadroom(c *Config, pc *PortConfig, g *Group, where string) (uint64, error) {
	if pc.Link.Rate == 0 || pc.Link.MaxFrame == 0 {
		return 0, fmt.Errorf("%s: a lossless class needs the rate and the largest frame of the link to compute its headroom", where)
	}
	if pc.Link.Delay < 0 || pc.Link.Response < 0 {
		return 0, fmt.Errorf("%s: delay %v and response %v of the link must not be negative", where, pc.Link.Delay.Duration(), pc.Link.Response.Duration())
	}
	if g.Limit.Bytes != 0 && g.XONOffset > g.Limit.Bytes {
		return 0, fmt.Errorf("%s: XON offset %d B is above the XOFF threshold of %d B", where, g.XONOffset, g.Limit.Bytes)
	}
	need := Headroom(pc.Link, c.Cell).Total()
	switch {
	case need > c.Size:
		return 0, fmt.Errorf("%s: the link needs %d B of headroom, more than the buffer of %d B: shorten delay or response, or enlarge the buffer", where, need, c.Size)
	case g.NoHeadroomCheck:
		return g.Headroom, nil
	case g.Headroom == 0:
		return need, nil
	case g.Headroom < need:
		return 0, fmt.Errorf("%s: headroom of %d B is not safe, the link can deliver more after a pause: at least %d B, or none to have it computed (auto)", where, g.Headroom, need)
	}
	return g.Headroom, nil
}

// checkStatic refuses static thresholds that can never be reached: such a
// group would fill the pool and pause only by its headroom.
func checkStatic(c *Config, l *layout) error {
	for p := range c.Ports {
		for i := range c.Ports[p].Groups {
			g := &c.Ports[p].Groups[i]
			if g.Lossless && g.Limit.Bytes > l.shared {
				return fmt.Errorf("buffer: port %d class %d: XOFF threshold of %d B is above the shared pool of %d B: at most %d B", p, i, g.Limit.Bytes, l.shared, l.shared)
			}
		}
	}
	return nil
}

func checkThreshold(t Threshold, where string) error {
	if !(t.Alpha >= 0 && t.Alpha <= maxAlpha) {
		return fmt.Errorf("%s: alpha %v is not within 0 and %d", where, t.Alpha, maxAlpha)
	}
	return nil
}
