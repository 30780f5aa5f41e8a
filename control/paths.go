package control

import (
	"context"

	"gswitch/control/api"
	"gswitch/metrics"
	"gswitch/pipeline"
	"gswitch/units"
	"gswitch/vswitch"
)

func (s *server) ListPaths(_ context.Context, r *api.ListRequest) (*api.Paths, error) {
	if err := s.d.known(r.Switch, r.Port); err != nil {
		return nil, err
	}
	out := &api.Paths{}
	snap := s.d.Snapshot()
	base := s.pathsBefore()
	for i := range snap.Switches {
		sw := &snap.Switches[i]
		if r.Switch != "" && r.Switch != sw.Name {
			continue
		}
		ports := map[uint16]*metrics.Port{}
		for j := range sw.Ports {
			ports[sw.Ports[j].Number] = &sw.Ports[j]
		}
		sw.Program.Groups(func(g vswitch.GroupInfo) bool {
			m := &api.PathGroup{Switch: sw.Name, Choose: g.Choose.String(), Routes: uint64(g.Routes)}
			for _, h := range g.Hops {
				hop := &api.PathHop{Via: h.Via.String(), Weight: h.Weight}
				if p := ports[h.Port]; p != nil {
					hop.Port, hop.Up = p.Config.Name, p.LinkUp
					for q := range p.Queues {
						hop.Bytes += p.Queues[q].Bytes
					}
				}
				m.Hops = append(m.Hops, hop)
			}
			out.Groups = append(out.Groups, m)
			return true
		})
		out.Choices = append(out.Choices, choicesOf(sw, base[sw.Name])...)
	}
	return out, nil
}

// pathsBefore returns the counters at the time they were cleared, by switch.
func (s *server) pathsBefore() map[string]vswitch.PathCounts {
	s.d.mu.RLock()
	defer s.d.mu.RUnlock()
	base := map[string]vswitch.PathCounts{}
	if s.d.baseline != nil {
		for i := range s.d.baseline.Switches {
			base[s.d.baseline.Switches[i].Name] = s.d.baseline.Switches[i].Paths
		}
	}
	return base
}

// choicesOf lists the classes whose frames chose by load.
func choicesOf(sw *metrics.Switch, was vswitch.PathCounts) (v []*api.PathChoices) {
	c := &sw.Program.Config.Paths
	var names []string
	for _, t := range c.Bytes() {
		names = append(names, units.Size(t).String())
	}
	for i, t := range c.Times {
		names = append(names[:i], units.Duration(t).String())
	}
	flowlets := since(sw.Paths.Flowlets, was.Flowlets)
	for class := range sw.Paths.Tier {
		m := &api.PathChoices{Switch: sw.Name, Class: uint32(class), Thresholds: names, Flowlets: flowlets}
		sum := uint64(0)
		for t := range sw.Paths.Tier[class] {
			k := since(sw.Paths.Tier[class][t], was.Tier[class][t])
			if sum += k; t < c.Tiers() || t == pipeline.MaxTiers {
				m.Tiers = append(m.Tiers, k)
			}
		}
		if sum > 0 || flowlets > 0 {
			v = append(v, m)
			flowlets = 0
		}
	}
	return v
}
