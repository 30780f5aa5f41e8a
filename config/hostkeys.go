package config

import (
	inband "gswitch/int"
	"gswitch/scheduler"
	"gswitch/section"
	"gswitch/transport"
	"gswitch/units"
)

// What several documents say of hosts and links, each key once: those of switches, hosts and
// transparent hosts, and scenarios (fabric/scenario) embed these structs. Their words are
// those of what is registered, and of the formats that there are.

// Framing is what a frame takes of a link besides its own length.
type Framing struct {
	Overhead string `yaml:"overhead" enum:"ethernet,none" default:"ethernet" doc:"ethernet: preamble, checksum and gap take their 24 bytes of time on the link. none: frames take their own length only."`
}

// Bytes is the overhead of a frame.
func (f *Framing) Bytes() uint32 {
	if f.Overhead == "ethernet" {
		return scheduler.EthernetOverhead
	}
	return 0
}

// Sending is how data leaves a host.
type Sending struct {
	MarkAbove  units.Size `yaml:"mark_above" range:"0,4294967295" doc:"Data frames leave with a congestion mark while more of their class and those above waits for the host's own link (DeTail). No marks if left out."`
	PaceJitter float64    `yaml:"pace_jitter" range:"0,0.5" doc:"Each paced gap is longer or shorter by up to this share of it, at random, so that flows of the same rate do not keep step (RoCC)."`
}

// Quench is what counts as a long pause.
type Quench struct {
	QuenchAfter *units.Duration `yaml:"quench_after" default:"10ms" doc:"A class that the neighbour pauses for longer counts as quenched. 0s: none does."`
}

// Notifying is how congestion marks come back to the sender. Scenarios have a section in its
// place, since they also set how often notification packets may follow each other.
type Notifying struct {
	CNP bool `yaml:"cnp" doc:"true: congestion marks are reported by RoCEv2 notification packets (DCQCN). false: by a bit of acknowledgements."`
}

func init() {
	section.Words("recovery", transport.Names)
	section.Words("transparent recovery", transport.TransparentNames)
	section.Words("telemetry", inband.Names)
	section.Words("RoCE telemetry", inband.RoCENames)
	section.Words("RoCE telemetry, or none said", func() []string { return append([]string{""}, inband.RoCENames()...) })
}
