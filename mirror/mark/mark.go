// Package mark has a host ask for traces of chosen flows: it sets the debug bit in the
// packets that it sends of them (Everflow section 3.3), and switches with Everflow's
// rules copy each at every hop. Importing it registers the feature.
package mark

import (
	"errors"
	"fmt"

	"gswitch/feature"
	"gswitch/frame"
	"gswitch/hostnic"
	"gswitch/mirror"
	"gswitch/wire"
)

// Name is the key of a Config in hostnic.Config.Options.
const Name = "debug"

// Config says what a host marks.
type Config struct {
	Rules []mirror.Rule // a packet that one of them matches is marked
	Most  uint32        // marks in a second
}

// Section is debug in documents of hosts.
type Section struct {
	Match []mirror.Match `yaml:"match" id:"name" doc:"Which packets. One that several rules match is marked once."`
	Most  int            `yaml:"most" range:"1,1000000000" default:"10000" doc:"Marks in a second: what more would be traced than collectors take leaves without one, and is counted."`
}

// Options returns the Config of a host.
func (s *Section) Options(*hostnic.Config) (any, error) {
	c := Config{Most: uint32(s.Most)}
	for i := range s.Match {
		if s.Match[i].Control {
			return nil, fmt.Errorf("match[%d]: MAC control frames have no DSCP that could be marked", i)
		}
		c.Rules = append(c.Rules, s.Match[i].Rule())
	}
	return c, c.validate()
}

func (c *Config) validate() error {
	if len(c.Rules) == 0 {
		return errors.New("no packet is to be marked; say which by match")
	}
	_, err := mirror.NewClassifier(c.Rules)
	return err
}

func init() {
	hostnic.Register(hostnic.Feature{Name: Name, Check: check, New: newMarker, Counters: counters,
		Section: func() hostnic.Section { return new(Section) },
		Doc:     "Packets of chosen flows leave with the debug bit, the lowest of the DSCP: switches with Everflow's rules copy them at every hop."})
}

func check(cfg *hostnic.Config) error {
	c, ok := cfg.Options[Name].(Config)
	if !ok {
		return errors.New("options of another kind")
	}
	return c.validate()
}

var counters = []feature.Counter{
	{Name: "host_debug_marked_frames_total", Help: "Frames that left with the debug bit."},
	{Name: "host_debug_unmarked_frames_total", Help: "Frames that a rule matched, and that left without it: there were too many in their second."},
}

// marker is what a host marks.
type marker struct {
	arena  *frame.Arena
	rules  *mirror.Classifier
	most   uint32
	second frame.Time // its number
	spent  uint32     // marks in it

	marked, unmarked uint64
}

func newMarker(n *hostnic.NIC) hostnic.Instance {
	m := &marker{arena: n.Arena()}
	return hostnic.Instance{State: m, Adopt: m.adopt, Leaves: m.leaves, Read: m.read}
}

func (m *marker) adopt(options any) hostnic.Stages {
	c, on := options.(Config)
	if !on {
		return 0
	}
	m.rules, _ = mirror.NewClassifier(c.Rules) // check has tried it
	m.most = c.Most
	return hostnic.AtLeaves
}

// leaves marks a frame that a rule matches. Neither ICRC (IBTA A17.3.3) nor the checksums
// of TCP and UDP are over the DSCP.
func (m *marker) leaves(t frame.Time, r frame.Ref) {
	f, b := m.arena.Meta(r), m.arena.Bytes(r)
	if f.Flags&frame.HasIPv4 == 0 || m.rules.Match(f, b) == 0 {
		return
	}
	if s := t / frame.Second; s != m.second {
		m.second, m.spent = s, 0
	}
	if m.spent >= m.most {
		m.unmarked++
		return
	}
	m.spent++
	m.marked++
	ip := wire.IPv4(b[f.L3:])
	before := uint16(ip[0])<<8 | uint16(ip[1])
	ip[1] |= mirror.DebugDSCP << 2
	f.DSCP |= mirror.DebugDSCP
	ip.SetChecksum(wire.PatchChecksum(ip.Checksum(), before, before|mirror.DebugDSCP<<2))
}

func (m *marker) read(emit func(counter int, value float64, labels ...string)) {
	emit(0, float64(m.marked))
	emit(1, float64(m.unmarked))
}
