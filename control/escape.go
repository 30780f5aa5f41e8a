package control

import (
	"context"

	"gswitch/control/api"
	"gswitch/escape/point"
	"gswitch/metrics"
)

func (s *server) ListEscape(_ context.Context, r *api.ListRequest) (*api.Escape, error) {
	if err := s.d.known(r.Switch, r.Port); err != nil {
		return nil, err
	}
	out := &api.Escape{}
	s.view(s.d.Snapshot(), r).ports(func(sw *metrics.Switch, p, base *metrics.Port) {
		now, was := p.Escape, base.Escape
		if now == nil {
			return
		}
		if was == nil {
			was = &point.View{}
		}
		out.Ports = append(out.Ports, &api.EscapePort{Switch: sw.Name, Port: p.Config.Name, On: now.On,
			Free: uint64(now.Free), Kept: uint64(now.Kept), Taken: uint64(now.Taken), Parked: uint64(now.Parked), Flows: uint64(now.Flows),
			Made: since(now.Made, was.Made), Forwarded: since(now.Forwarded, was.Forwarded), Hits: since(now.Hits, was.Hits), Dropped: since(now.Dropped, was.Dropped),
			Arrived: since(now.Arrived, was.Arrived), Strays: since(now.Strays, was.Strays), Reclaimed: since(now.Reclaimed, was.Reclaimed),
			Unmarked: since(now.Unmarked, was.Unmarked), UnknownFrames: since(now.Full, was.Full),
			Asked: since(now.Asked, was.Asked), Requested: since(now.Requests, was.Requests), Refused: since(now.Refused, was.Refused)})
	})
	return out, nil
}
