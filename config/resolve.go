package config

import (
	"fmt"
	"hash/fnv"
	"strconv"

	"gswitch/section"
)

// Resolved returns a copy in which everything that was left out has the value
// that it stands for. What depends on the machine (queues, memory, buffer
// size) stays zero.
func (c *Config) Resolved() *Config {
	c = c.Clone()
	if len(c.Workers) == 0 {
		c.Workers = make([]Worker, 1)
	}
	section.Fill(c)
	if c.Control.Socket == "" && len(c.Switches) > 0 {
		c.Control.Socket = "/run/gswitch/" + c.Switches[0].Name + ".sock"
	}
	for i := range c.Switches {
		c.Switches[i].resolve(i, len(c.Workers))
		c.Switches[i].sharing = len(c.Switches)
	}
	for i := range c.Switches {
		c.resolveResponse(&c.Switches[i])
	}
	return c
}

func (s *Switch) resolve(index, workers int) {
	if s.ID == 0 {
		s.ID = index + 1
	}
	h := fnv.New64a()
	h.Write([]byte(s.Name))
	if s.Seed == 0 {
		s.Seed = h.Sum64()
	}
	if s.MAC == nil {
		// Locally administered, so that it cannot equal an assigned one
		// (IEEE 802 8.2.2: the second bit of the first octet).
		sum := h.Sum64()
		s.MAC = &MAC{0x02, byte(sum >> 32), byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)}
	}
	if s.Classes.PCP == nil {
		s.Classes.PCP = []int{0, 1, 2, 3, 4, 5, 6, 7}
	}
	if s.Classes.Queue == nil {
		s.Classes.Queue = s.queues()
	}
	for i := range s.Ports {
		p := &s.Ports[i]
		p.Name = p.name()
		if p.Workers == nil {
			p.Workers = []int{i % workers}
		}
		s.face(p)
		if p.Tap != nil && p.Tap.Name == "" {
			p.Tap.Name = p.Name
		}
		if f := p.Faults; f != nil && f.Seed == 0 {
			h := fnv.New64a()
			h.Write([]byte(s.Name + "/" + p.Name))
			f.Seed = h.Sum64()
		}
	}
	s.resolveWhole()
	for _, rules := range s.ACLs {
		number(rules)
	}
}

// Identity is what distinguishes the port from the others of its switch.
func (p *Port) Identity() string { return p.name() }

// Identity is what distinguishes the rule from the others of its list.
func (r *Rule) Identity() string { return strconv.Itoa(r.Seq) }

// Identity is what distinguishes the entry from the others.
func (m *StaticMAC) Identity() string { return fmt.Sprintf("%s/%d", m.MAC, m.VLAN) }

// face says what the neighbour of a port is, and watches a host that may pause.
func (s *Switch) face(p *Port) {
	if p.Faces == "" {
		p.Faces = "host"
		if p.Interface == "" || s.paired(p.name()) {
			p.Faces = "switch"
		}
	}
	if p.Faces == "host" && p.Watchdog == nil && s.PFC.Watchdog == nil && (s.PFC.Pause || len(s.PFC.Classes) > 0) {
		p.Watchdog = new(Watchdog)
		section.Fill(p.Watchdog)
	}
}

// name is what a port is called if the document gives it no name.
func (p *Port) name() string {
	switch {
	case p.Name != "":
		return p.Name
	case p.Interface != "":
		return p.Interface
	case p.Tap != nil:
		return p.Tap.Of + "-tap"
	}
	return p.Wire
}

// number gives every rule without a number ten more than the one before.
func number(rules []Rule) {
	last := 0
	for i := range rules {
		if rules[i].Seq == 0 {
			rules[i].Seq = last + 10
		}
		last = rules[i].Seq
	}
}
