// Package point gives the links of a switch LossRadar's meters (package
// lossradar): each frame that leaves by a metered port carries the batch that it
// was counted in, and the port at the other end counts it for that batch. Importing
// it registers the feature.
package point

import (
	"fmt"

	"gswitch/telemetry/lossradar"
	"gswitch/vswitch"
)

// Name is the key of a Config in vswitch.PortConfig.Options.
const Name = "lossradar"

// Config meters the link of a port. The port at its other end must be metered in
// the same way: others cannot read frames with a tag.
type Config struct {
	Queues uint8 // bitmap of the egress queues whose frames are metered
	lossradar.Config
}

// Section is lossradar in documents.
type Section struct{ lossradar.Keys }

// Options returns the Config of a port.
func (s *Section) Options(queues uint8, _ uint64) (any, error) {
	c, err := s.Config()
	return Config{queues, c}, err
}

func init() {
	vswitch.Register(vswitch.Feature{Name: Name, Aliases: []string{"losses"}, Check: check, New: newMeters, Counters: counters, BothEnds: true,
		Section: func() vswitch.Section { return new(Section) },
		Doc:     "Meters at both ends of links, whose digests name each lost packet (LossRadar). The neighbour must have the same: frames leave with a tag that others cannot read."})
}

// maxMemory is what the digests of a worker may take: all of it is resident.
const maxMemory = 512 << 20

func check(cfg *vswitch.Config) error {
	var first *Config
	ports := 0
	for i := range cfg.Ports {
		p := &cfg.Ports[i]
		o, on := p.Options[Name].(Config)
		if !on {
			continue
		}
		if err := o.Validate(); err != nil {
			return fmt.Errorf("port %s: lossradar: %w", p.Name, err)
		}
		ports++
		if need := ports * lossradar.ReportsOfPort * o.Shape.Bytes(); need > maxMemory {
			return fmt.Errorf("port %s: lossradar: the digests of %d ports with %d cells take %d MiB at each worker, at most %d are possible: meter fewer ports, or have fewer cells", p.Name, ports, o.Shape.Cells, need>>20, maxMemory>>20)
		}
		if first == nil {
			first = &o
		} else if first.Config != o.Config {
			return fmt.Errorf("port %s: lossradar: batch, timeout, cells, hashes and seed must be the same at all ports of a switch", p.Name)
		}
	}
	return nil
}

var counters = []vswitch.Counter{
	{Name: "lossradar_sent_frames_total", Help: "Frames that left with a tag and were counted at the entrance of their link."},
	{Name: "lossradar_arrived_frames_total", Help: "Frames that were counted at the exit of their link."},
	{Name: "lossradar_wild_frames_total", Help: "Frames with a tag that the parser found wrong, which count as lost."},
	{Name: "lossradar_roomless_frames_total", Help: "Frames that had no room for a tag and were not counted."},
	{Name: "lossradar_stray_frames_total", Help: "Frames whose batch was gone or could not be kept apart."},
	{Name: "lossradar_foreign_frames_total", Help: "Frames that came with a link tag from who has no meter, such as a host: they left uncounted, behind another tag."},
	{Name: "lossradar_merged_batches_total", Help: "Batches that ran on since the reports were not taken."},
}

func (m *Meters) read(emit func(counter int, port uint16, value float64, labels ...string)) {
	for i, p := range m.ports {
		if p == nil {
			continue
		}
		for k, v := range [...]uint64{p.count.Sent, p.count.Arrived, p.count.Wild, p.count.Roomless, p.down.Strays(), p.count.Foreign, p.up.Merged()} {
			emit(k, uint16(i), float64(v))
		}
	}
}
