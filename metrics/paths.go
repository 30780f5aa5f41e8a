package metrics

import "gswitch/pipeline"

// paths says how frames chose among next hops. A class appears with its first
// frame.
func (e emitter) paths(s *Switch) {
	c := &s.Paths
	if c.Flowlets > 0 {
		e.count(flowlets, c.Flowlets, s.Name)
	}
	tiers := s.Program.Config.Paths.Tiers()
	for class := range c.Tier {
		t := &c.Tier[class]
		if *t == [pipeline.MaxTiers + 1]uint64{} {
			continue
		}
		for i := range tiers {
			e.count(pathChoices, t[i], s.Name, digit(class), digit(i+1))
		}
		e.count(pathChoices, t[pipeline.MaxTiers], s.Name, digit(class), "any")
	}
}
