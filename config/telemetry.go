package config

import (
	"fmt"
	"slices"

	inband "gswitch/int"
	"gswitch/vswitch"
	"gswitch/wire"
)

func (t *Telemetry) config() vswitch.TelemetryConfig {
	out := vswitch.TelemetryConfig{Enabled: t.INT, WholePort: t.Occupancy == "port"}
	if t.Signal == "rx" {
		out.Signal = inband.RxBytes
	}
	if len(t.Links) > 0 {
		rates := make([]uint64, len(t.Links))
		for i, r := range t.Links {
			rates[i] = uint64(r)
		}
		p := inband.ProfileFor(rates...)
		out.Profile = &p
	}
	return out
}

// sourceModes are the formats of the key source.
var sourceModes = map[string]inband.Mode{"hpcc": inband.HPCC, "hpcc-grow": inband.HPCCGrow, "int-md": inband.INTMD}

func (t *PortTelemetry) config() vswitch.PortTelemetry {
	out := vswitch.PortTelemetry{Source: sourceModes[t.Source], Sink: t.Sink}
	for _, p := range t.SourcePorts {
		out.SourcePorts = append(out.SourcePorts, uint16(p))
	}
	return out
}

// validateTelemetry checks what a single key cannot show: what the node would
// refuse, with the place in the file.
func (d decoder) validateTelemetry(s *Switch, path string) {
	for i, r := range s.Telemetry.Links {
		if r == 0 {
			d.Fail(fmt.Sprintf("%s.telemetry.links[%d]", path, i), "a link without a rate has no units; write the rate of the device, such as 100Gbps")
		}
	}
	for i := range s.Ports {
		t := s.Ports[i].Telemetry
		if t == nil {
			continue
		}
		at := fmt.Sprintf("%s.ports[%d].telemetry", path, i)
		hpcc := t.Source == "hpcc" || t.Source == "hpcc-grow"
		switch {
		case !s.Telemetry.INT && (t.Sink || sourceModes[t.Source] != inband.None):
			d.Fail(at, "the switch's telemetry is off; write telemetry: {int: true} beside ports")
		case hpcc && slices.ContainsFunc(t.SourcePorts, func(p int) bool { return p != int(wire.RoCEv2Port) }):
			d.Fail(at+".source_ports", "%s is for RoCEv2 (port %d) only; write source: int-md", t.Source, wire.RoCEv2Port)
		case t.SourcePorts != nil && sourceModes[t.Source] == inband.None:
			d.Fail(at+".source_ports", "the port is no source; write source: int-md")
		}
	}
}
