// Package point makes a switch copy the packets that matter (package mirror) to
// where they are looked at. Importing it registers the feature.
package point

import (
	"fmt"
	"slices"

	"gswitch/frame"
	"gswitch/mirror"
	"gswitch/pipeline"
	"gswitch/vswitch"
	"gswitch/wire"
)

// Name is the key of a Config in vswitch.Config.Options.
const Name = "watch"

// maxSessions is how many sessions a switch has at most.
const maxSessions = 8

// Config says what a switch copies, and where to.
type Config struct {
	Sessions []SessionConfig
	Rules    []mirror.Rule // of all sessions
	Groups   []Group       // of analyzers
	Probes   ProbeConfig
}

// SessionConfig is one session.
type SessionConfig struct {
	Name  string
	Wrap  mirror.Session // of one that goes to an address
	Port  uint16         // where copies leave by without headers; frame.NoPort: Wrap says where to
	Class uint8
	Rate  int64 // bit/s, of each worker; 0 = no limit
	Burst int64 // bytes
	Rules uint64
	OneIn uint32 // at random one of so many frames; 0 = none
	// Counters is how often those of interfaces are sent, of sFlow; 0: not.
	Counters frame.Time
	Drops    Reasons
	Pauses   bool
}

func init() {
	vswitch.Register(vswitch.Feature{Name: Name, Aliases: []string{"mirrors"}, Check: check, New: newPoint, Counters: counters,
		Whole: func() vswitch.WholeSection { return new(Section) },
		Doc:   "Copies of packets that matter go to where they are looked at: sessions of ERSPAN, GRE or a port (SPAN), with rules, samples and drops (Everflow), and of sFlow; and copies to a virtual address are divided among analyzers."})
}

func check(cfg *vswitch.Config) error {
	c, _ := cfg.Options[Name].(Config)
	if _, err := mirror.NewClassifier(c.Rules); err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	if len(c.Groups) > maxGroups {
		return fmt.Errorf("watch: %d virtual addresses: at most %d are possible", len(c.Groups), maxGroups)
	}
	for _, g := range c.Groups {
		if _, err := mirror.NewAnalyzers(g.To); err != nil || !g.VIP.Is4() {
			return fmt.Errorf("watch: virtual address %v: %w", g.VIP, err)
		}
	}
	for i := range c.Sessions {
		s := &c.Sessions[i]
		if s.Port != frame.NoPort && int(s.Port) >= len(cfg.Ports) {
			return fmt.Errorf("watch: session %s: there is no port %d", s.Name, s.Port)
		}
		if s.Rate > 0 {
			if _, err := pipeline.NewMeter(s.Rate, s.Burst); err != nil {
				return fmt.Errorf("watch: session %s: %w", s.Name, err)
			}
		}
	}
	return nil
}

// point is what one worker copies.
type point struct {
	node     *vswitch.Node
	arena    *frame.Arena
	classes  *mirror.Classifier
	sessions []session
	groups   []group
	probes   ProbeConfig
	sampled  bool // some session takes frames at random
	drops    Reasons
	pauses   bool
	rng      frame.Rand
	ports    []*portCounts // by the port that originals came by
	hits     [64]uint64    // of the vector that arrives
}

type session struct {
	SessionConfig
	meter   pipeline.Meter
	group   int             // whose address the copies go to, -1: none
	skip    uint32          // frames until the next that is taken at random
	samples *mirror.Samples // that wait, of a session of sFlow
	due     frame.Time      // when they leave

	counters *mirror.Samples // of interfaces
	poll     frame.Time      // when they are sent the next time
}

func newPoint(n *vswitch.Node) vswitch.Instance {
	p := &point{node: n, arena: n.Arena(), rng: frame.NewRand(n.Config().Seed)}
	return vswitch.Instance{State: p, Adopt: p.adopt, Port: p.port, Listens: p.listens, Arrives: p.arrives, Departs: p.departs, Dropped: p.dropped, Advance: p.advance, Read: p.read}
}

// adopt takes a configuration. A session that goes on as it was keeps its tokens
// and its sequence numbers; samples that waited leave.
func (p *point) adopt(now frame.Time) {
	for i := range p.sessions {
		p.flush(i, p.sessions[i].samples, now)
	}
	c, _ := p.node.Config().Options[Name].(Config)
	before := names(p)
	old := p.sessions
	p.groups, p.probes = newGroups(c.Groups), c.Probes
	p.classes, _ = mirror.NewClassifier(c.Rules) // check has tried it
	p.sessions, p.drops, p.sampled, p.pauses = make([]session, len(c.Sessions)), Reasons{}, false, false
	for i := range c.Sessions {
		s := &p.sessions[i]
		s.SessionConfig = c.Sessions[i]
		s.Wrap.Engine = uint8(p.node.Index())
		s.group = p.groupOf(s.Wrap.Dst)
		s.fill(now)
		if k := slices.IndexFunc(old, func(o session) bool { return o.Name == s.Name }); k >= 0 {
			s.Wrap.Continue(&old[k].Wrap)
			if old[k].Rate == s.Rate && old[k].Burst == s.Burst {
				s.meter = old[k].meter
			}
		}
		if s.OneIn > 0 {
			s.skip = p.gap(s.OneIn)
		}
		if s.Wrap.Format == mirror.SFlow {
			s.samples = mirror.NewSamples(&s.Wrap, p.subAgent(s), p.mtu())
			s.counters = mirror.NewSamples(&s.Wrap, p.subAgent(s), p.mtu())
			if s.Counters > 0 {
				s.poll = now + s.Counters
				p.node.Arm(s.poll)
			}
		}
		p.sampled = p.sampled || s.OneIn > 0
		p.pauses = p.pauses || s.Pauses
		for w := range p.drops {
			p.drops[w] |= s.Drops[w]
		}
	}
	p.keep(before)
}

func (s *session) fill(now frame.Time) {
	if s.Rate > 0 {
		s.meter, _ = pipeline.NewMeter(s.Rate, s.Burst) // check has tried it
		s.meter.Take(now, 0)
	}
}

// gap is how many frames there are up to the next that is taken: uniform, so that
// no period of the traffic is matched, with the mean n (sFlow version 5, 4.2.2).
func (p *point) gap(n uint32) uint32 {
	return 1 + uint32(p.rng.Uint64()%uint64(2*n-1))
}

func (p *point) listens(port uint16, _ *vswitch.PortConfig) bool {
	p.counted(port)
	return len(p.sessions)+len(p.groups) > 0 || p.probes.on()
}

func (p *point) port(frame.Time, uint16, *vswitch.PortConfig) vswitch.Stages {
	if p.pauses {
		return vswitch.AtDeparts
	}
	return 0
}

// arrives looks at frames as they came.
func (p *point) arrives(now frame.Time, port uint16, v []frame.Ref) []frame.Ref {
	if len(p.groups) > 0 {
		v = p.reshuffle(port, v)
	}
	if len(p.sessions) > 0 {
		p.watch(now, port, v)
	}
	if p.probes.on() {
		v = p.guide(port, v)
	}
	return v
}

// watch copies what sessions want of the frames that came by a port.
func (p *point) watch(now frame.Time, port uint16, v []frame.Ref) {
	if p.classes.MatchAll(p.arena, v, &p.hits) != 0 {
		for i, r := range v {
			if hit := p.hits[i]; hit != 0 {
				p.matched(now, port, r, p.arena.Meta(r), hit)
			}
		}
	}
	if p.sampled {
		p.sample(now, port, v)
	}
}

// matched copies a frame to each session of which a rule matches it.
func (p *point) matched(now frame.Time, port uint16, r frame.Ref, m *frame.Meta, hit uint64) {
	p.at(port).hit(hit)
	for i := range p.sessions {
		if p.sessions[i].Rules&hit != 0 {
			p.copy(i, r, m, port, mirror.Info{At: now, Port: port, VLAN: m.TCI & 0xfff, Class: uint8(m.TCI >> 13)})
		}
	}
}

// sample takes frames at random. A frame that a rule of the session took is not
// taken again.
func (p *point) sample(now frame.Time, port uint16, v []frame.Ref) {
	for i := range p.sessions {
		s := &p.sessions[i]
		if s.OneIn == 0 {
			continue
		}
		k := 0
		for uint32(len(v)-k) >= s.skip {
			k += int(s.skip)
			s.skip = p.gap(s.OneIn)
			r := v[k-1]
			m := p.arena.Meta(r)
			switch {
			case s.samples != nil:
				p.gather(now, i, r, m, port, uint32(k))
			case s.Rules == 0 || p.classes.Match(m, p.arena.Bytes(r))&s.Rules == 0:
				p.copy(i, r, m, port, mirror.Info{At: now, Port: port, VLAN: m.TCI & 0xfff, Class: uint8(m.TCI >> 13)})
			}
		}
		s.skip -= uint32(len(v) - k)
		if s.samples != nil {
			p.at(port).pool[i] += uint32(len(v))
		}
	}
}

// departs looks for the pauses that the switch itself sends.
func (p *point) departs(port uint16, v []frame.Ref) {
	for _, r := range v {
		b := p.arena.Bytes(r)
		if m := p.arena.Meta(r); isMACControl(b) {
			for i := range p.sessions {
				if p.sessions[i].Pauses {
					p.copy(i, r, m, port, mirror.Info{At: m.Depart, Port: port, Egress: true})
				}
			}
		}
	}
}

func isMACControl(b []byte) bool {
	return len(b) >= wire.EthernetLen && wire.Ethernet(b).EtherType() == wire.EtherTypeMACControl
}

// dropped copies what is dropped, and counts copies that are.
func (p *point) dropped(v []frame.Ref) {
	for _, r := range v {
		m := p.arena.Meta(r)
		switch {
		case m.Flags&frame.IsClone != 0:
			p.lostCopy(r, m)
		case p.drops.has(m.Reason):
			for i := range p.sessions {
				if p.sessions[i].Drops.has(m.Reason) {
					p.copy(i, r, m, m.InPort, mirror.Info{At: p.node.Now(), Port: m.InPort, VLAN: m.VID, Class: m.Class, Reason: m.Reason})
				}
			}
		}
	}
}

// may reports whether a session may report a frame, and counts why not. Copies are
// not copied: those of switches that sample, or report drops, towards each other
// would multiply.
func (p *point) may(i int, r frame.Ref, m *frame.Meta, port uint16) bool {
	s, c := &p.sessions[i], p.at(port)
	if m.Flags&frame.HasIPv4 != 0 && mirror.IsCopy(p.arena.Bytes(r), int(m.L3)) {
		c.lost[i][isCopy]++
		return false
	}
	if s.Port != frame.NoPort && isMACControl(p.arena.Bytes(r)) { // it would pause the port where the copy arrives
		c.lost[i][isControl]++
		return false
	}
	if s.Rate > 0 && !s.meter.Take(p.node.Now(), s.Wrap.Length(m.Wire, s.Port == frame.NoPort)) {
		c.lost[i][overRate]++
		return false
	}
	return true
}

// copy makes a copy of a frame and has it sent.
func (p *point) copy(i int, r frame.Ref, m *frame.Meta, port uint16, info mirror.Info) {
	if !p.may(i, r, m, port) {
		return
	}
	s, c := &p.sessions[i], p.at(port)
	to := p.node.Alloc()
	if to == frame.Nil {
		c.lost[i][noMemory]++
		return
	}
	cm := p.arena.Meta(to)
	cm.Len = uint16(p.arena.Room())
	info.At, info.Cut = p.node.Synchronised(info.At), m.Next != frame.Nil
	n, length := s.Wrap.Write(p.arena.Bytes(to), p.arena.Bytes(r), m.Wire, info, s.Port == frame.NoPort)
	if n == 0 {
		p.node.Discard(to)
		c.lost[i][noRoom]++
		return
	}
	if s.group >= 0 {
		p.divert(&p.groups[s.group], &c.groups[s.group], p.arena.Bytes(to)[:n])
	}
	cm.Len, cm.Wire, cm.Flags = uint16(n), length, frame.IsClone
	cm.InPort, cm.OutPort, cm.Class = port, s.Port, s.Class
	if !p.node.Send(to) {
		c.lost[i][tooMany]++
		return
	}
	c.copies[i]++
	c.bytes[i] += uint64(length)
}

// lostCopy counts a copy that the switch dropped on its way to its port. What
// was flooded is marked as copies are, and is in a VLAN.
func (p *point) lostCopy(r frame.Ref, m *frame.Meta) {
	for i := range p.sessions {
		s := &p.sessions[i]
		copies := 0
		switch {
		case s.group >= 0:
			for _, a := range p.groups[s.group].To {
				copies = max(copies, s.Wrap.Made(p.arena.Bytes(r), a))
			}
		case s.Port == frame.NoPort:
			copies = s.Wrap.Made(p.arena.Bytes(r), s.Wrap.Dst)
		case m.OutPort == s.Port && m.VID == 0:
			copies = 1
		}
		if copies > 0 {
			p.at(m.InPort).lost[i][dropped] += uint64(copies)
			return
		}
	}
}
