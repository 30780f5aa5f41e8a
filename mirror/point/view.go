package point

import (
	"math/bits"
	"slices"
	"strings"

	"gswitch/mirror"
	"gswitch/vswitch"
)

// portCounts is what was counted of the frames that came by one port.
type portCounts struct {
	hits   [mirror.MaxRules]uint64
	copies [maxSessions]uint64
	bytes  [maxSessions]uint64
	lost   [maxSessions][numLosses]uint64

	// Of sessions of sFlow: frames of which samples could have been taken, and
	// samples.
	pool, samples [maxSessions]uint32
	polls         [maxSessions]uint32 // samples of counters

	groups [maxGroups]groupCounts
	probes probeCounts
}

// Why a copy was not made, or did not leave.
const (
	overRate = iota
	noMemory
	noRoom
	tooMany
	dropped
	isCopy
	isControl
	numLosses
)

var losses = [numLosses]string{overRate: "rate", noMemory: "memory", noRoom: "room", tooMany: "burst", dropped: "dropped", isCopy: "copy", isControl: "control"}

// counted makes the counters of a port.
func (p *point) counted(port uint16) {
	for len(p.ports) <= int(port) {
		p.ports = append(p.ports, nil)
	}
	if p.ports[port] == nil {
		p.ports[port] = new(portCounts)
	}
}

// at returns the counters of a port; what came by none counts for the first.
func (p *point) at(port uint16) *portCounts {
	if int(port) < len(p.ports) && p.ports[port] != nil {
		return p.ports[port]
	}
	return p.ports[0]
}

func (c *portCounts) hit(hit uint64) {
	for ; hit != 0; hit &= hit - 1 {
		c.hits[bits.TrailingZeros64(hit)]++
	}
}

// places are the names of sessions and rules by their places in counters.
type places struct {
	sessions, rules []string
	groups          []group
}

func names(p *point) (v places) {
	v.groups = p.groups
	for i := range p.sessions {
		v.sessions = append(v.sessions, p.sessions[i].Name)
	}
	if p.classes != nil {
		for _, r := range p.classes.Rules() {
			v.rules = append(v.rules, r.Name)
		}
	}
	return v
}

// keep lets sessions and rules count on that there were before.
func (p *point) keep(before places) {
	now := names(p)
	for i, old := range p.ports {
		if old == nil {
			continue
		}
		c := &portCounts{probes: old.probes}
		for to, name := range now.rules {
			if from := slices.Index(before.rules, name); from >= 0 {
				c.hits[to] = old.hits[from]
			}
		}
		for to, name := range now.sessions {
			if from := slices.Index(before.sessions, name); from >= 0 {
				c.copies[to], c.bytes[to], c.lost[to] = old.copies[from], old.bytes[from], old.lost[from]
				c.pool[to], c.samples[to], c.polls[to] = old.pool[from], old.samples[from], old.polls[from]
			}
		}
		keepGroups(&c.groups, &old.groups, now.groups, before.groups)
		p.ports[i] = c
	}
	p.counted(0)
}

const (
	hits = iota
	copied
	copiedBytes
	lost
	reshuffled
	refused
	strange
	guided
	guidedEnd
	guidedRefused
)

var counters = []vswitch.Counter{
	hits:          {Name: "watch_matched_packets_total", Help: "Frames that a rule of a mirror session matched.", Labels: []string{"session", "rule"}},
	copied:        {Name: "watch_copies_total", Help: "Copies that a mirror session sent of frames that came by the port: of sFlow, samples.", Labels: []string{"session"}},
	copiedBytes:   {Name: "watch_copied_bytes_total", Help: "Bytes of these copies, with their headers: of sFlow, of datagrams, at the port of their first sample.", Labels: []string{"session"}},
	lost:          {Name: "watch_lost_copies_total", Help: "Copies that were not made: over the rate of the session, no memory, no room for their headers, too many in one vector of frames (burst), the frame is a copy itself (copy) or one of flow control, which whoever gets the copy without headers would act on (control); or that the switch dropped on the way to their port, which watch_copies_total counts, too.", Labels: []string{"session", "reason"}, Values: losses[:]},
	reshuffled:    {Name: "watch_reshuffled_copies_total", Help: "Copies to a virtual address that came by the port, or were made of frames that did, by the analyzer that they were sent to.", Labels: []string{"vip", "to"}},
	refused:       {Name: "watch_refused_copies_total", Help: "Packets to a virtual address of copies that were dropped since they came from where no copies come from (watch.reshuffle.from).", Labels: []string{"vip"}},
	strange:       {Name: "watch_strange_copies_total", Help: "Packets to a virtual address of copies that are none, and went on as they were.", Labels: []string{"vip"}},
	guided:        {Name: "watch_probes_total", Help: "Headers that were taken off probes which came by the port: they went on into the network."},
	guidedEnd:     {Name: "watch_ended_probes_total", Help: "Probes whose destination was the switch, which drops them."},
	guidedRefused: {Name: "watch_refused_probes_total", Help: "Probes that were dropped since they came from where none may come from (watch.probes.from)."},
}

func (p *point) read(emit func(counter int, port uint16, value float64, labels ...string)) {
	for i, c := range p.ports {
		if c == nil {
			continue
		}
		port := uint16(i)
		for k, r := range p.classes.Rules() {
			session, rule, ok := strings.Cut(r.Name, "/")
			if ok && c.hits[k] > 0 {
				emit(hits, port, float64(c.hits[k]), session, rule)
			}
		}
		for k := range p.sessions {
			name := p.sessions[k].Name
			emit(copied, port, float64(c.copies[k]), name)
			emit(copiedBytes, port, float64(c.bytes[k]), name)
			for why, n := range c.lost[k] {
				emit(lost, port, float64(n), name, losses[why])
			}
		}
		if p.probes.on() {
			emit(guided, port, float64(c.probes.sent))
			emit(guidedEnd, port, float64(c.probes.ended))
			emit(guidedRefused, port, float64(c.probes.refused))
		}
		for k := range p.groups {
			g, n := &p.groups[k], &c.groups[k]
			vip := g.VIP.String()
			for a, to := range g.To {
				emit(reshuffled, port, float64(n.diverted[a]), vip, to.String())
			}
			emit(refused, port, float64(n.refused), vip)
			emit(strange, port, float64(n.other), vip)
		}
	}
}
