// Package point has a switch count the packets of every flow in every slot of time
// (package flowradar). Importing it registers the feature.
package point

import (
	"fmt"

	"gswitch/frame"
	"gswitch/telemetry/flowradar"
	"gswitch/units"
	"gswitch/vswitch"
)

// Name is the key of a Config in vswitch.Config.Options.
const Name = "flowradar"

// Config is what a switch counts flows in.
type Config struct {
	Slot    frame.Time
	Encoded flowradar.Params // no Cells: none
	Exact   int              // flows of an exact table; 0: none
}

// Section is flowradar in documents.
type Section struct {
	Mode   string         `yaml:"mode" enum:"encoded,exact,both" default:"encoded" doc:"What flows are counted in. encoded: FlowRadar's table, of fixed size whatever comes, which a collector decodes. exact: a hash table, which costs less and needs no decoding, and counts no flow that finds it full. both: the one to check the other by."`
	Slot   units.Duration `yaml:"slot" range:"1ms,60s" default:"10ms" doc:"How long a table counts before it is reported."`
	Flows  int            `yaml:"flows" range:"64,1000000" default:"10000" doc:"Flows of a slot, of each worker, that the tables are for."`
	Decode string         `yaml:"decode" enum:"alone,network" default:"alone" doc:"How encoded tables are decoded, which says how large they are. alone: each by itself. network: with the tables of the switches around, in a fifth less."`
	Seed   int            `yaml:"seed" range:"0,2147483647" doc:"Of the hash functions, which are others in each switch."`
}

// Options returns the Config of a switch.
func (s *Section) Options(cfg *vswitch.Config) (any, error) {
	c := Config{Slot: frame.Time(s.Slot)}
	if s.Mode != "exact" {
		d := flowradar.Alone
		if s.Decode == "network" {
			d = flowradar.Helped
		}
		c.Encoded = flowradar.Fixed(s.Flows, d, uint64(s.Seed)<<32|uint64(cfg.ID)<<8)
	}
	if s.Mode != "encoded" {
		c.Exact = s.Flows
	}
	if s.Mode == "both" {
		c.Exact *= spare
	}
	if err := c.validate(); err != nil {
		return nil, &vswitch.KeyError{Key: "flows", Err: err}
	}
	return c, nil
}

// spare is how many times more flows an exact table has room for that checks an
// encoded one: it is to know them when that one is too full.
const spare = 4

// maxMemory is what the tables of a worker may take: they are resident, and one of
// them is sent in every slot.
const maxMemory = 512 << 20

// tables is how many a worker has: one is counted in, one is sent, and two wait for
// an exporter that is late.
const tables = 4

// Bytes is what the tables of a worker take.
func (c *Config) Bytes() int {
	n := 0
	if c.Encoded.Cells > 0 {
		n += int(c.Encoded.FilterBits)/8 + int(c.Encoded.Cells)*32
	}
	if c.Exact > 0 {
		n += flowradar.ExactBytes(c.Exact)
	}
	return n * tables
}

func (c *Config) validate() error {
	switch {
	case c.Slot <= 0:
		return fmt.Errorf("a slot of %v", c.Slot.Duration())
	case c.Encoded.Cells == 0 && c.Exact == 0:
		return fmt.Errorf("there is no table to count in")
	case c.Bytes() > maxMemory:
		return fmt.Errorf("the tables of a worker take %d MiB, at most %d are possible: count fewer flows", c.Bytes()>>20, maxMemory>>20)
	case c.Encoded.Cells > 0:
		return c.Encoded.Validate()
	}
	return nil
}

func init() {
	vswitch.Register(vswitch.Feature{Name: Name, Aliases: []string{"flows"}, Check: check, New: newPoint, Counters: counters,
		Whole: func() vswitch.WholeSection { return new(Section) },
		Doc:   "The packets and bytes of every flow, slot by slot, in tables of fixed size that a collector decodes (FlowRadar), or in exact ones."})
}

func check(cfg *vswitch.Config) error {
	c, _ := cfg.Options[Name].(Config)
	if err := c.validate(); err != nil {
		return fmt.Errorf("flowradar: %w", err)
	}
	return nil
}

const (
	packets = iota
	flows
	others
	overflows
	slots
	merged
	memory
)

var counters = []vswitch.Counter{
	packets:   {Name: "flowradar_packets_total", Help: "Frames that were counted for their flow."},
	flows:     {Name: "flowradar_flows_total", Help: "Flows that slots were reported with: one that lasts counts in each slot. Of an encoded table it is how many were new to its filter."},
	others:    {Name: "flowradar_other_frames_total", Help: "Frames of no flow: not IP."},
	overflows: {Name: "flowradar_overflow_packets_total", Help: "Frames whose flow found the exact table full."},
	slots:     {Name: "flowradar_slots_total", Help: "Slots that were reported, empty ones among them."},
	merged:    {Name: "flowradar_merged_slots_total", Help: "Slots that ran on into the next, since the reports were not taken."},
	memory:    {Name: "flowradar_memory_bytes", Help: "Memory of the tables.", Gauge: true},
}
