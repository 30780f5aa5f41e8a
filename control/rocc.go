package control

import (
	"context"

	"gswitch/control/api"
	"gswitch/metrics"
	"gswitch/rocc"
	"gswitch/rocc/point"
)

func (s *server) ListRoCC(_ context.Context, r *api.ListRequest) (*api.RoCC, error) {
	if err := s.d.known(r.Switch, r.Port); err != nil {
		return nil, err
	}
	out := &api.RoCC{}
	s.view(s.d.Snapshot(), r).ports(func(sw *metrics.Switch, p, base *metrics.Port) {
		for q := range p.RoCC {
			now, was := p.RoCC[q], base.RoCC[q]
			if now == nil {
				continue
			}
			if was == nil {
				was = &point.View{}
			}
			out.Points = append(out.Points, &api.CongestionPoint{Switch: sw.Name, Port: p.Config.Name, Queue: uint32(q),
				FairRate: now.Fair, Bytes: now.QueueBytes, Reference: now.Reference, Flows: uint64(now.Flows),
				Updates: since(now.Updates, was.Updates), Cuts: since(now.Branch[rocc.Cut], was.Branch[rocc.Cut]), Halvings: since(now.Branch[rocc.Halved], was.Branch[rocc.Halved]),
				Notices: since(now.Notices, was.Notices), Unsent: since(now.Unsent, was.Unsent), UntoldFrames: since(now.Full, was.Full), Table: now.Table.String(), AtHosts: now.AtHosts})
		}
	})
	return out, nil
}
