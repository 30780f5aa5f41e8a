package control

import (
	"context"
	"slices"

	"gswitch/control/api"
	"gswitch/metrics"
)

func (s *server) ListCounters(_ context.Context, r *api.ListRequest) (*api.Counters, error) {
	if err := s.d.known(r.Switch, r.Port); err != nil {
		return nil, err
	}
	out := &api.Counters{}
	s.view(s.d.Snapshot(), r).ports(func(sw *metrics.Switch, p, base *metrics.Port) {
		for i := range p.Features {
			m := &p.Features[i]
			if r.Feature != "" && r.Feature != m.Feature {
				continue
			}
			c := &api.Counter{Switch: sw.Name, Port: p.Config.Name, Feature: m.Feature, Name: m.Counter.Name, Gauge: m.Counter.Gauge, Value: m.Value}
			if was := slices.IndexFunc(base.Features, m.Same); was >= 0 && !c.Gauge {
				c.Value = max(0, m.Value-base.Features[was].Value)
			}
			for k, name := range m.Counter.Labels {
				if k == len(m.Counter.Labels)-1 && m.Counter.Values != nil {
					c.Kind = m.Labels[k]
					break
				}
				c.Labels = append(c.Labels, &api.Label{Name: name, Value: m.Labels[k]})
			}
			out.Counters = append(out.Counters, c)
		}
	})
	return out, nil
}
