package lossradar

import (
	"gswitch/frame"
	"gswitch/units"
)

// Keys are what documents say of meters: those at both ends of a link say the same.
type Keys struct {
	Batch   units.Duration `yaml:"batch" default:"10ms" doc:"T: length of a batch. The same at both ends of a link, as what follows."`
	Timeout units.Duration `yaml:"timeout" default:"2ms" doc:"The longest that a frame takes from its queue at one end to its queue at the other beyond what others take: what comes later amends its batch."`
	Cells   int            `yaml:"cells" range:"4,65536" default:"400" doc:"Cells of a digest: 1.3 for each frame that may be lost in a batch, and more where these are few."`
	Hashes  int            `yaml:"hashes" range:"2,8" default:"3" doc:"Cells that a frame is folded into."`
	Seed    int            `yaml:"seed" range:"0,2147483647" doc:"Of the hash functions."`
}

// Config returns what meters are made of, and what is wrong with it.
func (k *Keys) Config() (Config, error) {
	c := Config{Shape{Cells: uint32(k.Cells), Hashes: uint8(k.Hashes), Seed: uint64(k.Seed)}, Timing{Period: frame.Time(k.Batch), Timeout: frame.Time(k.Timeout)}}
	return c, c.Validate()
}

// Config is what the meters at both ends of a link must have in common: others could
// not be compared.
type Config struct {
	Shape  Shape
	Timing Timing
}

// Validate reports what is wrong with a configuration.
func (c *Config) Validate() error {
	if err := c.Shape.Validate(); err != nil {
		return err
	}
	return c.Timing.Validate()
}

// Counts are those of the two meters at an end of a link.
type Counts struct {
	Sent     uint64 // frames that left with a tag
	Arrived  uint64 // frames with a tag that were counted
	Wild     uint64 // frames with a tag that the parser found wrong
	Roomless uint64 // frames that had no room for a tag, and went without
	Foreign  uint64 // frames that had a tag of a node without a meter, and went uncounted behind another one
}

// ReportsOfPort is how many digests the two meters at an end of a link need: one that
// the upstream meter fills and one that is exported, three batches that may be open
// downstream, an amendment, and one of each that waits for the exporter.
const ReportsOfPort = 8

// NewReports returns the digests that meters at so many ends of links need.
func NewReports(ends int, s Shape) []*Report {
	v := make([]*Report, ReportsOfPort*ends)
	for i := range v {
		v[i] = &Report{Digest: NewDigest(s)}
	}
	return v
}
