package run

import (
	"fmt"

	"github.com/gswitch/gswitch/pipeline"
	"github.com/gswitch/gswitch/vswitch"
)

// paths adds how switches chose among paths.
func paths(c *vswitch.PathCounts, put func(name string, v float64)) {
	var tier [pipeline.MaxTiers + 1]uint64
	var sum uint64
	for class := range c.Tier {
		for t, k := range c.Tier[class] {
			tier[t] += k
			sum += k
		}
	}
	put("flowlets_total", float64(c.Flowlets))
	put("paths_choices_total", float64(sum))
	if sum == 0 {
		return
	}
	for t, k := range tier[:pipeline.MaxTiers] {
		put(fmt.Sprintf("paths_tier%d_share", t+1), float64(k)/float64(sum))
	}
	put("paths_any_share", float64(tier[pipeline.MaxTiers])/float64(sum))
}
