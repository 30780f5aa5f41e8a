package control

import (
	"context"

	"gswitch/control/api"
	"gswitch/metrics"
	"gswitch/qcn/point"
)

func (s *server) ListQCN(_ context.Context, r *api.ListRequest) (*api.QCN, error) {
	if err := s.d.known(r.Switch, r.Port); err != nil {
		return nil, err
	}
	out := &api.QCN{}
	s.view(s.d.Snapshot(), r).ports(func(sw *metrics.Switch, p, base *metrics.Port) {
		for q, now := range p.QCN {
			if now == nil {
				continue
			}
			was := base.QCN[q]
			if was == nil {
				was = &point.View{}
			}
			out.Points = append(out.Points, &api.QCNPoint{Switch: sw.Name, Port: p.Config.Name, Queue: uint32(q), Bytes: now.QueueBytes, SetPoint: now.SetPoint,
				Samples: since(now.Samples, was.Samples), Messages: since(now.Messages, was.Messages), Unsent: since(now.Unsent, was.Unsent), Untold: since(now.Untold, was.Untold)})
		}
	})
	return out, nil
}
