package point

import (
	"fmt"
	"slices"

	inband "gswitch/int"
	"gswitch/units"
	"gswitch/vswitch"
	"gswitch/wire"
)

// Name is the key of a Config in vswitch.Config.Options, and of an Edge in those of
// ports.
const Name = "int"

// Config has a switch write its records into data frames that ask for them.
type Config struct {
	Profile *inband.Profile // units and rate codes of the network; nil: those of the HPCC paper
	Signal  inband.Signal   // which bytes the byte counter counts
	// WholePort stamps the bytes that wait in all queues of the port in place
	// of those in the frame's own.
	WholePort bool
}

// Edge is the role of a port at the edge of a telemetry domain.
type Edge struct {
	// Source is the format that data frames which arrive get; None for none.
	// HPCC's are for RoCEv2 only; INTMD serves RoCEv2 and any other datagram.
	// A frame that the port's MTU would not take with the header goes without.
	Source inband.Mode
	// SourcePorts are the UDP destination ports whose datagrams are data; nil
	// is RoCEv2. Of RoCEv2, what only answers or asks (acknowledgements, read
	// requests, congestion notifications) is left out.
	SourcePorts []uint16
	// Sink takes telemetry out of frames that leave and keeps what it says.
	// The emulated link is charged for the header all the same: what the last
	// queue does to a frame is known only when it leaves.
	Sink bool
}

// Section is the telemetry of a switch in documents.
type Section struct {
	INT   bool         `yaml:"int" doc:"true: each data frame with a telemetry header takes a record of this switch along."`
	Links []units.Rate `yaml:"links" doc:"Slowest and fastest link of the whole network, or all rates: they set the units of HPCC's records, the same on every switch and host. The paper's units (1 ns, 128 B, 80 B) if left out."`
	Stamp
}

// Stamp is what records say of a queue, in documents of switches and in scenarios.
type Stamp struct {
	Signal    string `yaml:"signal" enum:"tx,rx" default:"tx" doc:"What the byte counter counts. tx: what the port sent. rx: what entered its queues."`
	Occupancy string `yaml:"occupancy" enum:"queue,port" default:"queue" doc:"Which bytes wait behind the frame. queue: those in its own queue. port: those in all queues of the port."`
}

// Config returns the options of a switch whose INT is true.
func (s *Section) Config() Config {
	c := Config{WholePort: s.Occupancy == "port"}
	if s.Signal == "rx" {
		c.Signal = inband.RxBytes
	}
	if len(s.Links) > 0 {
		rates := make([]uint64, len(s.Links))
		for i, r := range s.Links {
			rates[i] = uint64(r)
		}
		p := inband.ProfileFor(rates...)
		c.Profile = &p
	}
	return c
}

// Check returns what is wrong with a section, and with which key.
func (s *Section) Check() (key, problem string) {
	if i := slices.Index(s.Links, 0); i >= 0 {
		return fmt.Sprintf("links[%d]", i), "a link without a rate has no units; write the rate of the device, such as 100Gbps"
	}
	return "", ""
}

// EdgeSection is the role of a port in documents.
type EdgeSection struct {
	Source      string `yaml:"source" registered:"RoCE telemetry" default:"none" doc:"Header that data frames which arrive here get. HPCC's are for RoCEv2 only."`
	SourcePorts []int  `yaml:"source_ports" range:"1,65535" doc:"UDP destination ports whose datagrams are data. RoCEv2 (4791) if left out."`
	Sink        bool   `yaml:"sink" doc:"true: frames that leave here lose the header; the last ones' content is kept."`
}

// Config returns the options of a port.
func (s *EdgeSection) Config() Edge {
	e := Edge{Sink: s.Sink}
	e.Source, _ = inband.ParseMode(s.Source) // one of the enumeration
	for _, p := range s.SourcePorts {
		e.SourcePorts = append(e.SourcePorts, uint16(p))
	}
	return e
}

// Check returns what is wrong with a section of a port, and with which key, "" for
// the section. on says whether the switch has telemetry.
func (s *EdgeSection) Check(on bool) (key, problem string) {
	e := s.Config()
	switch {
	case !on && (e.Sink || e.Source != inband.None):
		return "", "the switch's telemetry is off; write telemetry: {int: true} beside ports"
	case e.plainOnly():
		return "source_ports", fmt.Sprintf("%s is for RoCEv2 (port %d) only; write source: int-md", s.Source, wire.RoCEv2Port)
	case s.SourcePorts != nil && e.Source == inband.None:
		return "source_ports", "the port is no source; write source: int-md"
	}
	return "", ""
}

// plainOnly reports whether a source adds what other datagrams than RoCEv2 cannot
// have to such.
func (e *Edge) plainOnly() bool {
	if e.Source != inband.HPCC && e.Source != inband.HPCCGrow {
		return false
	}
	return slices.ContainsFunc(e.SourcePorts, func(p uint16) bool { return p != wire.RoCEv2Port })
}

// check reports what stands against the options of a switch and its ports.
func check(cfg *vswitch.Config) error {
	c, on := cfg.Options[Name].(Config)
	if on {
		if _, err := inband.NewStamper(uint32(cfg.ID), c.Profile); err != nil {
			return err
		}
	}
	for i := range cfg.Ports {
		name := cfg.Ports[i].Name
		e, _ := cfg.Ports[i].Options[Name].(Edge)
		switch {
		case !on && (e.Sink || e.Source != inband.None):
			return fmt.Errorf("port %s: it is a telemetry source or sink, but the switch's telemetry is off", name)
		case e.Source > inband.INTMDUDP:
			return fmt.Errorf("port %s: there is no telemetry format %d", name, e.Source)
		case e.plainOnly():
			return fmt.Errorf("port %s: %v is for RoCEv2 (UDP port %d) only; use %v", name, e.Source, wire.RoCEv2Port, inband.INTMD)
		}
	}
	return nil
}
