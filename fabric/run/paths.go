package run

import (
	"fmt"

	"gswitch/pipeline"
	"gswitch/vswitch"
)

// paths adds how switches chose among paths.
func paths(c *vswitch.PathCounts, cfg *vswitch.PathsConfig, put func(name string, v float64)) {
	switch cfg.Choose {
	case pipeline.ChooseFlowlet:
		put("flowlets_total", float64(c.Flowlets))
	case pipeline.ChooseAdaptive:
		var tier [pipeline.MaxTiers + 1]uint64
		var sum uint64
		for class := range c.Tier {
			for t, k := range c.Tier[class] {
				tier[t] += k
				sum += k
			}
		}
		put("paths_choices_total", float64(sum))
		if sum == 0 {
			return
		}
		for t := range cfg.Tiers() {
			put(fmt.Sprintf("paths_tier%d_share", t+1), float64(tier[t])/float64(sum))
		}
		put("paths_any_share", float64(tier[pipeline.MaxTiers])/float64(sum))
	}
}
