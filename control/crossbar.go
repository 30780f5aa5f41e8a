package control

import (
	"context"

	"gswitch/control/api"
	"gswitch/crossbar"
	"gswitch/metrics"
)

func (s *server) ListCrossbar(_ context.Context, r *api.ListRequest) (*api.Crossbar, error) {
	if err := s.d.known(r.Switch, r.Port); err != nil {
		return nil, err
	}
	out := &api.Crossbar{}
	s.view(s.d.Snapshot(), r).ports(func(sw *metrics.Switch, p, base *metrics.Port) {
		now, was := p.Crossbar, base.Crossbar
		if now == nil {
			return
		}
		if was == nil {
			was = &crossbar.View{}
		}
		port := &api.CrossbarPort{Switch: sw.Name, Port: p.Config.Name, Shunned: p.Disabled,
			IngressBytes: uint64(now.Ingress[0]), IngressPeak: uint64(now.IngressPeak), EgressBytes: uint64(now.Egress[0]), EgressPeak: uint64(now.EgressPeak),
			CrossedFrames: since(now.Out.Frames, was.Out.Frames), CrossedBytes: since(now.Out.Bytes, was.Out.Bytes), SkippedFrames: since(now.Out.Skipped, was.Out.Skipped),
			RefusedFrames: since(now.In.Refused, was.In.Refused), RefusedLossyFrames: since(now.In.RefusedLossy, was.In.RefusedLossy)}
		for c := range now.Ingress {
			pauses := since(now.In.Pauses[c], was.In.Pauses[c])
			if now.Ingress[c]|now.Egress[c] == 0 && pauses == 0 {
				continue
			}
			port.Classes = append(port.Classes, &api.CrossbarClass{Class: uint32(c), IngressDrainBytes: uint64(now.Ingress[c]), EgressDrainBytes: uint64(now.Egress[c]),
				Pausing: now.Wants>>c&1 != 0, Pauses: pauses})
		}
		out.Ports = append(out.Ports, port)
	})
	return out, nil
}
