package buffer

import (
	"fmt"
	"math"
)

// Setting is the part of a Config that an Error is about.
type Setting uint8

const (
	OfBuffer   Setting = iota // the size, or the number of ports
	OfReserve                 // reserves of groups or queues
	OfLimit                   // thresholds
	OfXON                     // how far below its threshold a pause ends
	OfHeadroom                // headroom
	OfLink                    // the link from which headroom is computed
)

// Error reports a division of a buffer that is impossible or unsafe.
type Error struct {
	What  Setting
	Port  int // -1: the whole buffer
	Class int
	Queue bool // Class is the number of a queue
	// Safe is the safe value in bytes: the least buffer or headroom, the highest
	// threshold. 0: no other value of this setting would be safe.
	Safe    uint64
	Budget  Budget // of a headroom that is not safe
	Problem string // what is wrong and what to do, without the location
}

func (e *Error) Error() string {
	switch {
	case e.Port < 0:
		return e.Problem
	case e.Queue:
		return fmt.Sprintf("buffer: port %d queue %d: %s", e.Port, e.Class, e.Problem)
	}
	return fmt.Sprintf("buffer: port %d class %d: %s", e.Port, e.Class, e.Problem)
}

func whole(safe uint64, format string, args ...any) error {
	return &Error{What: OfBuffer, Port: -1, Safe: safe, Problem: fmt.Sprintf(format, args...)}
}

// Check checks whether New would accept a division. The error is an *Error.
func Check(cfg Config) error {
	_, err := plan(&cfg)
	return err
}

// layout is the result of a valid Config.
type layout struct {
	shared   uint64
	headroom [][8]uint64 // including the span of stages
	span     [][8]uint64 // of stages
}

// plan checks c and computes headroom and the shared pool.
func plan(c *Config) (layout, error) {
	var l layout
	if c.Size == 0 || c.Size > maxSize {
		return l, whole(0, "buffer size %d B is not within 1 B and %d B", c.Size, uint64(maxSize))
	}
	if len(c.Ports) >= math.MaxUint16 {
		return l, whole(0, "buffer: %d ports are too many", len(c.Ports))
	}
	var taken, largest uint64
	l.headroom = make([][8]uint64, len(c.Ports))
	l.span = make([][8]uint64, len(c.Ports))
	for p := range c.Ports {
		pc := &c.Ports[p]
		for i := range pc.Groups {
			g := &pc.Groups[i]
			wrong := func(what Setting, safe uint64, format string, args ...any) *Error {
				return &Error{What: what, Port: p, Class: i, Safe: safe, Problem: fmt.Sprintf(format, args...)}
			}
			if !validAlpha(g.Limit.Alpha) {
				return l, wrong(OfLimit, 0, "alpha %v is not within 0 and %d", g.Limit.Alpha, maxAlpha)
			}
			if g.Reserve > c.Size || g.Headroom > c.Size {
				return l, wrong(OfReserve, 0, "reserve %d B and headroom %d B do not fit into the buffer of %d B", g.Reserve, g.Headroom, c.Size)
			}
			taken += g.Reserve
			if !g.Lossless {
				if g.Headroom != 0 || g.XONOffset != 0 {
					return l, wrong(OfHeadroom, 0, "headroom and XON offset are for lossless classes: set lossless or take them away")
				}
				continue
			}
			h, err := planHeadroom(c, pc, g, wrong)
			if err != nil {
				return l, err
			}
			if l.span[p][i], err = planStages(c, pc, g, wrong); err != nil {
				return l, err
			}
			h += l.span[p][i]
			l.headroom[p][i] = h
			taken += h
			largest = max(largest, roundUp(uint64(pc.Link.MaxFrame), uint64(c.Cell)))
		}
		for i := range pc.Queues {
			q := &pc.Queues[i]
			if !validAlpha(q.Limit.Alpha) {
				return l, &Error{What: OfLimit, Port: p, Class: i, Queue: true, Problem: fmt.Sprintf("alpha %v is not within 0 and %d", q.Limit.Alpha, maxAlpha)}
			}
			if q.Reserve > c.Size {
				return l, &Error{What: OfReserve, Port: p, Class: i, Queue: true, Problem: fmt.Sprintf("reserve %d B does not fit into the buffer of %d B", q.Reserve, c.Size)}
			}
			taken += q.Reserve
		}
	}
	if need := taken + largest; need > c.Size {
		return l, whole(need, "buffer of %d B is too small: reserves and headroom take %d B and the shared pool must hold a frame: make it at least %d B, or have fewer lossless classes, smaller frames or shorter cables", c.Size, taken, need)
	}
	l.shared = c.Size - taken
	return l, checkStatic(c, &l)
}

func planHeadroom(c *Config, pc *PortConfig, g *Group, wrong func(Setting, uint64, string, ...any) *Error) (uint64, error) {
	if pc.Link.Rate == 0 || pc.Link.MaxFrame == 0 {
		return 0, wrong(OfLink, 0, "a lossless class needs the rate and the largest frame of the link to compute its headroom")
	}
	if pc.Link.Delay < 0 || pc.Link.Response < 0 {
		return 0, wrong(OfLink, 0, "delay %v and response %v of the link must not be negative", pc.Link.Delay.Duration(), pc.Link.Response.Duration())
	}
	if g.Limit.Bytes != 0 && g.XONOffset > g.Limit.Bytes {
		return 0, wrong(OfXON, g.Limit.Bytes, "XON offset %d B is above the XOFF threshold of %d B", g.XONOffset, g.Limit.Bytes)
	}
	budget := Headroom(pc.Link, c.Cell)
	need := budget.Total()
	switch {
	case need > c.Size:
		return 0, wrong(OfHeadroom, 0, "the link needs %d B of headroom, more than the buffer of %d B: shorten delay or response, or enlarge the buffer", need, c.Size)
	case g.NoHeadroomCheck:
		return g.Headroom, nil
	case g.Headroom == 0:
		return need, nil
	case g.Headroom < need:
		err := wrong(OfHeadroom, need, "headroom of %d B is not safe, the link can deliver more after a pause: at least %d B, or none to have it computed (auto)", g.Headroom, need)
		err.Budget = budget
		return 0, err
	}
	return g.Headroom, nil
}

// checkStatic rejects static thresholds that can never be reached: such a group would
// fill the pool and pause only because of its headroom.
func checkStatic(c *Config, l *layout) error {
	for p := range c.Ports {
		for i := range c.Ports[p].Groups {
			g := &c.Ports[p].Groups[i]
			if g.Lossless && g.Limit.Bytes > l.shared {
				return &Error{What: OfLimit, Port: p, Class: i, Safe: l.shared,
					Problem: fmt.Sprintf("XOFF threshold of %d B is above the shared pool of %d B: at most %d B", g.Limit.Bytes, l.shared, l.shared)}
			}
		}
	}
	return nil
}

func validAlpha(alpha float64) bool { return alpha >= 0 && alpha <= maxAlpha }
