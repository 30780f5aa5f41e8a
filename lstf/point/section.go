package point

import (
	"fmt"

	"gswitch/frame"
	"gswitch/lstf"
	"gswitch/units"
)

// Section is slack in documents.
type Section struct {
	Write     string         `yaml:"write" enum:"constant,size,remaining,fair,deadline,class" default:"constant" doc:"What packets get where they enter. constant: all the same (FIFO+). size: of, for each packet of the RDMA write that they belong to. remaining: of, for each that is still to come of it. fair: what their flow is ahead of rate. deadline: what is left of of since the first packet of the message. class: of, for each class below the highest."`
	Of        units.Duration `yaml:"of" range:"0s,68s" default:"1s" doc:"What slack is made of: see write."`
	Rate      units.Rate     `yaml:"rate" doc:"fair: the share of each flow: not more than it gets where all send."`
	Rates     []units.Rate   `yaml:"rates" doc:"fair: the share of each flow by its class, from class 0 on, in place of rate: flows share links in proportion. Classes beyond the list have rate."`
	Fixed     bool           `yaml:"fixed" doc:"true: queues with rank priority go by the slack with which packets entered, on all of their way: write size is the shortest message first, remaining with order srpt is pFabric. Waits are counted as ever."`
	Trust     bool           `yaml:"trust" doc:"true: packets of hosts that come with slack keep it, within min and max. Otherwise it is replaced."`
	Min       units.Duration `yaml:"min" doc:"trust: the least slack that a host may write."`
	Max       units.Duration `yaml:"max" default:"1s" doc:"trust: the most."`
	Late      units.Duration `yaml:"late" doc:"From how much on packets without slack count as overdue."`
	MarkAbove units.Duration `yaml:"mark_above" doc:"Edge-ECN: packets that leave the network and waited longer, in all queues of their way, are marked. None if left out."`
	Target    units.Duration `yaml:"target" doc:"Edge-CoDel: wait in all queues of the way from which on it drops packets that leave the network, of each flow (5ms is usual). None if left out."`
	Interval  units.Duration `yaml:"interval" default:"100ms" doc:"Edge-CoDel: time for which the wait must be above target."`
	Refresh   units.Duration `yaml:"refresh" default:"20ms" doc:"Edge-CoDel: a flow that sent nothing for so long starts anew. Two to four times target."`
	ECN       bool           `yaml:"ecn" doc:"Edge-CoDel: true: packets that can be marked are, and not dropped."`
}

var kinds = map[string]lstf.Kind{"constant": lstf.Constant, "size": lstf.Size, "remaining": lstf.Remaining, "fair": lstf.Fair, "deadline": lstf.Deadline, "class": lstf.Class}

// Options returns the Config of a port.
func (s *Section) Options(queues uint8, _ uint64) (any, error) {
	c := Config{Queues: queues, Policy: lstf.Policy{Kind: kinds[s.Write], Of: frame.Time(s.Of), Rate: uint64(s.Rate)},
		Fixed: s.Fixed, Trusted: s.Trust, Min: int64(s.Min), Max: int64(s.Max), Late: frame.Time(s.Late),
		Edge: lstf.Edge{MarkAbove: frame.Time(s.MarkAbove), Target: frame.Time(s.Target), Interval: frame.Time(s.Interval), Refresh: frame.Time(s.Refresh), ECN: s.ECN}}
	if len(s.Rates) > len(c.Policy.Rates) {
		return nil, fmt.Errorf("rates has %d numbers; there are eight classes", len(s.Rates))
	}
	for class, r := range s.Rates {
		c.Policy.Rates[class] = uint64(r)
	}
	return c, c.validate()
}
