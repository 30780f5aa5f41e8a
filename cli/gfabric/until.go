package gfabric

import (
	"math/bits"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gswitch/control"
	"gswitch/frame"
	"gswitch/hostnic"
	"gswitch/tcp"
	"gswitch/tcp/endpoint"
	"gswitch/units"
	"gswitch/vswitch"
)

// condition is what a replay runs until: a drop, or a comparison of a value of the
// switch, which is looked at behind every call.
type condition struct {
	text   string
	drop   bool
	reason frame.Reason // Keep: any

	value  string
	node   string // "": all
	port   string // "": all
	queue  int    // -1: all
	op     string
	number float64
}

// untilValues are the values that can be compared.
var untilValues = []string{"drops", "queue_bytes", "queue_frames", "received", "sent", "paused", "storms", "timeouts", "retransmissions"}

var (
	comparison = regexp.MustCompile(`^\s*([a-z_]+)\s*(?:\{([^}]*)\})?\s*(>=|<=|==|!=|>|<)\s*(\S+)\s*$`)
	label      = regexp.MustCompile(`^\s*([a-z]+)\s*=\s*"?([^"]*)"?\s*$`)
)

// parseUntil reads what a replay runs until: drop, drop:REASON, or a comparison such
// as queue_bytes{port="b",queue="0"} > 100KB.
func parseUntil(s string) (*condition, error) {
	c := &condition{text: s, queue: -1}
	if what, name, given := strings.Cut(s, ":"); what == "drop" {
		c.drop = true
		if !given {
			return c, nil
		}
		r, err := frame.ParseReason(name)
		if err != nil {
			return nil, usagef("--until %s: %w", s, err)
		}
		c.reason = r
		return c, nil
	}
	m := comparison.FindStringSubmatch(s)
	if m == nil {
		return nil, usagef("--until %s: say drop, drop:REASON, or a comparison such as 'queue_bytes{port=\"p1\"} > 100KB'", s)
	}
	if c.value, c.op = m[1], m[3]; !slices.Contains(untilValues, c.value) {
		return nil, usagef("--until %s: there is no value %s; there are %s", s, c.value, strings.Join(untilValues, ", "))
	}
	for pair := range strings.SplitSeq(m[2], ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		l := label.FindStringSubmatch(pair)
		if l == nil {
			return nil, usagef("--until %s: %s is not label=\"value\"", s, pair)
		}
		if err := c.label(l[1], l[2]); err != nil {
			return nil, usagef("--until %s: %w", s, err)
		}
	}
	n, err := strconv.ParseFloat(m[4], 64)
	if err != nil {
		bytes, wrong := units.Bytes.Whole(m[4], 1<<62)
		if n = float64(bytes); wrong != nil {
			return nil, usagef("--until %s: %s is neither a number nor a size such as 100KB", s, m[4])
		}
	}
	c.number = n
	return c, nil
}

func (c *condition) label(name, value string) (err error) {
	queues := strings.HasPrefix(c.value, "queue_") || c.value == "paused"
	switch {
	case name == "port":
		c.port = value
	case name == "node":
		c.node = value
	case name == "queue" && queues:
		if c.queue, err = strconv.Atoi(value); err != nil || c.queue < 0 || c.queue > 7 {
			return usagef("queue %q is none of 0 to 7", value)
		}
	case name == "reason" && c.value == "drops":
		c.reason, err = frame.ParseReason(value)
		return err
	default:
		return usagef("%s has no label %s", c.value, name)
	}
	return nil
}

// hostValues are those that hosts have; the others are of switches.
var hostValues = []string{"drops", "received", "sent", "paused", "timeouts", "retransmissions"}

// fits refuses what a record of this kind has not.
func (c *condition) fits(kind string) error {
	isHost := programs[kind] == "ghost"
	if of := slices.Contains(hostValues, c.value); isHost && !of && !c.drop || !isHost && (c.value == "timeouts" || c.value == "retransmissions") {
		return usagef("--until %s: a %s has no %s", c.text, kind, c.value)
	}
	return nil
}

// in returns the value of what a record is of, whose ports have names.
func (c *condition) in(x replayable, names map[uint16]string) float64 {
	switch x := x.(type) {
	case hostLike:
		return c.ofNIC(x.NIC())
	case *runSwitch:
		return c.of(x.Switch.Nodes[0], names)
	}
	return c.of(x.(*control.Replayed).Node, names)
}

// hostLike is what a record is of, if that is a host.
type hostLike interface{ NIC() *hostnic.NIC }

// repairs returns how often a host's timers expired, and what it sent again: for its queue
// pairs, and for its connections of TCP.
func repairs(nic *hostnic.NIC) (timeouts, retransmissions uint64) {
	n, streams := nic.Counts(), tcp.Stats{}
	if e := endpoint.Of(nic); e != nil {
		streams = e.Counts().Stats
	}
	return n.Timeouts + streams.Timeouts, n.Retransmissions + streams.Retransmitted
}

// ofNIC returns the value of a host: of its queue pairs, and of its connections of TCP.
func (c *condition) ofNIC(nic *hostnic.NIC) float64 {
	if !slices.Contains(hostValues, c.value) || c.port != "" {
		return 0 // of switches
	}
	n := nic.Counts()
	timeouts, retransmissions := repairs(nic)
	switch c.value {
	case "drops":
		return c.drops(n.Drops)
	case "received":
		return float64(n.RxFrames)
	case "sent":
		return float64(n.TxFrames)
	case "timeouts":
		return float64(timeouts)
	case "retransmissions":
		return float64(retransmissions)
	case "paused":
		return float64(bits.OnesCount8(nic.Paused()))
	}
	return 0
}

// of returns the value of a switch whose ports have names.
func (c *condition) of(n *vswitch.Node, names map[uint16]string) (sum float64) {
	if c.value == "drops" && c.port == "" {
		sum += c.drops(n.SelfDrops())
	}
	for port, name := range names {
		if !n.HasPort(port) || c.port != "" && name != c.port {
			continue
		}
		switch c.value {
		case "drops":
			var d [frame.NumReasons]uint64
			n.AddDrops(port, &d)
			sum += c.drops(d)
		case "received", "sent":
			var p vswitch.PortCounts
			n.ReadPort(port, &p)
			if c.value == "sent" {
				p.Rx = p.Tx
			}
			sum += float64(p.Rx.Frames)
		case "storms":
			if n.Owns(port) && n.PFC(port).Storms() != 0 {
				sum++
			}
		default:
			sum += c.queues(n, port)
		}
	}
	return sum
}

func (c *condition) drops(by [frame.NumReasons]uint64) (sum float64) {
	for r, k := range by {
		if c.reason == frame.Reason(r) || c.reason == frame.Keep && frame.Reason(r).Loss() {
			sum += float64(k)
		}
	}
	return sum
}

func (c *condition) queues(n *vswitch.Node, port uint16) (sum float64) {
	s := n.Scheduler(port)
	if s == nil {
		return 0
	}
	for q := range 8 {
		if c.queue >= 0 && q != c.queue {
			continue
		}
		frames, bytes := s.QueueLen(q)
		switch c.value {
		case "queue_bytes":
			sum += float64(bytes)
		case "queue_frames":
			sum += float64(frames)
		case "paused":
			if s.Paused(n.Now())>>q&1 != 0 {
				sum++
			}
		}
	}
	return sum
}

// holds reports whether a value is as it was to be.
func (c *condition) holds(v float64) bool {
	switch c.op {
	case ">":
		return v > c.number
	case ">=":
		return v >= c.number
	case "<":
		return v < c.number
	case "<=":
		return v <= c.number
	case "==":
		return v == c.number
	}
	return v != c.number
}
