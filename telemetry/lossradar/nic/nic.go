// Package nic gives a host's NIC LossRadar's meters (package lossradar), so that the
// link between a host and its switch is watched like those between switches.
// Importing it registers the feature.
package nic

import (
	"errors"

	"gswitch/feature"
	"gswitch/hostnic"
	"gswitch/telemetry/lossradar"
	"gswitch/wire"
)

// Name is the key of a lossradar.Config in hostnic.Config.Options.
const Name = "lossradar"

// Section is lossradar in documents of hosts.
type Section struct{ lossradar.Keys }

// Options returns the lossradar.Config of a host.
func (s *Section) Options(*hostnic.Config) (any, error) {
	c, err := s.Config()
	if err != nil {
		return nil, err
	}
	return c, nil
}

func init() {
	hostnic.Register(hostnic.Feature{Name: Name, Check: check, New: newMeters, Counters: counters, Before: wire.LinkTagLen,
		Section: func() hostnic.Section { return new(Section) },
		Doc:     "Meters at the host's end of its link, whose digests name each lost packet (LossRadar). The switch must have the same at its port: frames leave with a tag that others cannot read."})
}

func check(cfg *hostnic.Config) error {
	o, ok := cfg.Options[Name].(lossradar.Config)
	if !ok {
		return errors.New("options of another kind")
	}
	return o.Validate()
}

var counters = []feature.Counter{
	{Name: "host_lossradar_sent_frames_total", Help: "Frames that left with a tag and were counted at the entrance of the link."},
	{Name: "host_lossradar_arrived_frames_total", Help: "Frames that were counted at the exit of the link."},
	{Name: "host_lossradar_wild_frames_total", Help: "Frames with a tag that the parser found wrong, which count as lost."},
	{Name: "host_lossradar_roomless_frames_total", Help: "Frames that had no room for a tag and were not counted."},
	{Name: "host_lossradar_stray_frames_total", Help: "Frames whose batch was gone or could not be kept apart."},
	{Name: "host_lossradar_merged_batches_total", Help: "Batches that ran on since the reports were not taken."},
}

func (m *Meters) read(emit func(counter int, value float64, labels ...string)) {
	if m.up == nil {
		return
	}
	c := &m.count
	for k, v := range [...]uint64{c.Sent, c.Arrived, c.Wild, c.Roomless, m.down.Strays(), m.up.Merged()} {
		emit(k, float64(v))
	}
}
