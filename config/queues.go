package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gswitch/frame"
	"gswitch/scheduler"
	"gswitch/scheduler/orders"
	"gswitch/units"
	"gswitch/vswitch"
)

// Order is how the frames of a queue leave.
type Order struct {
	Kind     string         `yaml:"kind" need:"yes" enum:"fifo,lifo,random,ranked,levels,buckets,sp-pifo,packs,srpt,fq,calendar,voq,registered" doc:"fifo: first in, first out. lifo: the newest first. random: any. ranked: the least rank first. levels: the least rank first, of few. buckets: the least rank first, to within width. sp-pifo, packs: ranked as hardware with strict queues approximates it. srpt: the flow with the least rank, its frames in order (pFabric). fq: flows take turns (RFC 8290). calendar: each flow at rate. voq: ingress ports take turns. registered: that of name."`
	Name     string         `yaml:"name" doc:"registered: the name of the order, by which a module of its own has made it known to the program (scheduler.Register)."`
	Levels   int            `yaml:"levels" range:"1,64" default:"8" doc:"Levels; of sp-pifo and packs, strict queues."`
	Depth    int            `yaml:"depth" range:"0,1000000" doc:"sp-pifo, packs: frames in each strict queue. None at sp-pifo and 10 at packs if left out."`
	Width    int            `yaml:"width" range:"1,1000000000" default:"1" doc:"buckets: ranks that count as one."`
	Quantum  units.Size     `yaml:"quantum" range:"0,4294967295" default:"1514B" doc:"fq: bytes of a turn."`
	Flows    int            `yaml:"flows" range:"1,65536" default:"1024" doc:"fq, calendar: flows that are distinguished, by hash."`
	Rate     units.Rate     `yaml:"rate" doc:"calendar: of each flow."`
	Target   units.Duration `yaml:"target" doc:"fq: wait from which CoDel drops, of each flow (5ms is usual). No CoDel if left out."`
	Interval units.Duration `yaml:"interval" default:"100ms" doc:"fq: time for which the wait must be above target."`
	ECN      bool           `yaml:"ecn" doc:"fq: true: CoDel marks frames that can be marked."`
	Window   int            `yaml:"window" range:"1,4096" default:"20" doc:"packs: ranks that are kept."`
	Sample   int            `yaml:"sample" range:"1,65536" default:"1" doc:"packs: one in so many frames is."`
	Headroom float64        `yaml:"headroom" range:"0,0.99" doc:"packs: share of the room that is left to bursts, k."`
}

// ranked are the orders that go by rank, or may.
var ranked = []string{"ranked", "levels", "buckets", "sp-pifo", "packs", "srpt", "registered"}

// Config returns the order of a resolved section.
func (o *Order) Config() scheduler.Order {
	switch o.Kind {
	case "lifo":
		return orders.LIFO{}
	case "random":
		return orders.Random{}
	case "ranked":
		return orders.Ranked{}
	case "levels":
		return orders.Levels{N: o.Levels}
	case "buckets":
		return orders.Buckets{Width: int64(o.Width)}
	case "sp-pifo":
		return orders.SPPIFO{Queues: o.Levels, Depth: o.Depth}
	case "packs":
		return orders.PACKS{Queues: o.Levels, Depth: cmp.Or(o.Depth, 10), Window: o.Window, Sample: o.Sample, K: thousandths(o.Headroom)}
	case "srpt":
		return orders.SRPT{}
	case "fq":
		q := orders.FQ{Quantum: uint32(o.Quantum), Flows: o.Flows}
		if o.Target > 0 {
			q.CoDel = orders.CoDel{Target: frame.Time(o.Target), Interval: frame.Time(o.Interval), ECN: o.ECN}
		}
		return q
	case "calendar":
		return orders.Calendar{Rate: uint64(o.Rate), Flows: o.Flows}
	case "voq":
		return orders.VOQ{}
	case "registered":
		return scheduler.Registered(o.Name)
	}
	return scheduler.FIFO{}
}

func thousandths(share float64) int { return int(float64(share*1000) + 0.5) }

// Check returns what is wrong with a section, and with which key.
func (o *Order) Check() (key, problem string) {
	switch {
	case o.Kind == "calendar" && o.Rate == 0:
		return "rate", "is missing: calendar sends each flow at it"
	case o.Kind != "calendar" && o.Rate != 0:
		return "rate", "is of calendar alone"
	case o.Kind != "fq" && (o.Target != 0 || o.ECN):
		return "target", "is of fq alone; the admission of a queue may be codel"
	case o.Kind != "registered" && o.Name != "":
		return "name", "is of registered alone"
	case o.Kind == "registered" && scheduler.Registered(o.Name) == nil && len(scheduler.Names()) == 0:
		return "name", "this program has no orders of other modules (examples/own-switch has one)"
	case o.Kind == "registered" && scheduler.Registered(o.Name) == nil:
		return "name", fmt.Sprintf("%q is not the name of an order; registered are %s", o.Name, strings.Join(scheduler.Names(), ", "))
	}
	return "", ""
}

// Admission is what a queue drops of itself.
type Admission struct {
	Kind     string         `yaml:"kind" need:"yes" enum:"codel,red,aifo" doc:"codel: at the head, while frames wait too long (RFC 8289). red: as they come, the more the longer the queue is on average. aifo: as they come, those of high rank (AIFO)."`
	Target   units.Duration `yaml:"target" default:"5ms" doc:"codel: wait from which it drops."`
	Interval units.Duration `yaml:"interval" default:"100ms" doc:"codel: time for which the wait must be above target."`
	ECN      bool           `yaml:"ecn" doc:"codel, red: true: frames that can be marked are, and not dropped."`
	Min      units.Size     `yaml:"min" range:"0,4294967295" doc:"red: mean length up to which nothing is dropped."`
	Max      units.Size     `yaml:"max" range:"0,4294967295" doc:"red: mean length at which pmax is dropped; from twice that on, everything."`
	PMax     float64        `yaml:"pmax" range:"0,1" default:"0.1" doc:"red: share that is dropped at max."`
	Weight   int            `yaml:"weight" range:"0,16" default:"9" doc:"red: the mean follows the length by 1/2^weight of the difference."`
	Frames   int            `yaml:"frames" range:"0,1000000" doc:"aifo: frames that the queue holds."`
	Window   int            `yaml:"window" range:"1,4096" default:"20" doc:"aifo: ranks that are kept."`
	Sample   int            `yaml:"sample" range:"1,65536" default:"1" doc:"aifo: one in so many frames is."`
	Headroom float64        `yaml:"headroom" range:"0,0.99" doc:"aifo: share of the room that is left to bursts, k."`
}

// Config returns the admission of a resolved section.
func (a *Admission) Config() scheduler.Admission {
	switch a.Kind {
	case "red":
		return orders.RED{Min: uint32(a.Min), Max: uint32(a.Max), PMax: a.PMax, Weight: uint8(a.Weight), ECN: a.ECN}
	case "aifo":
		return orders.AIFO{Size: a.Frames, Window: a.Window, Sample: a.Sample, K: thousandths(a.Headroom)}
	}
	return orders.CoDel{Target: frame.Time(a.Target), Interval: frame.Time(a.Interval), ECN: a.ECN}
}

// Check returns what is wrong with a section, and with which key.
func (a *Admission) Check() (key, problem string) {
	switch {
	case a.Kind == "red" && (a.Max == 0 || a.Min >= a.Max):
		return "max", "must be above min, both in bytes"
	case a.Kind == "aifo" && a.Frames == 0:
		return "frames", "is missing: aifo judges by how much of them is free"
	}
	return "", ""
}

// rankBy are the keys by which ranked orders go.
var rankBy = map[string]scheduler.RankBy{"dscp": scheduler.RankDSCP, "dscp-rising": scheduler.RankDSCPRising, "class": scheduler.RankClass, "size": scheduler.RankSize, "slack": scheduler.RankSlack, "priority": scheduler.RankKept}

// byRank reports whether an order or an admission goes by rank.
func byRank(o *Order, a *Admission) bool {
	return o != nil && slices.Contains(ranked, o.Kind) || a != nil && a.Kind == "aifo"
}

// QueuePolicy joins the keys that say how one queue is served.
func QueuePolicy(o *Order, rank string, a *Admission, inversions bool) (c scheduler.QueueConfig) {
	c.Inversions = inversions
	by := rankBy[cmp.Or(rank, "dscp")]
	if o != nil && o.Kind != "" {
		c.Order = o.Config()
	}
	if a != nil && a.Kind != "" {
		c.Admission = a.Config()
	}
	if byRank(o, a) || inversions {
		c.Rank = by
	}
	return c
}

// CheckQueuePolicy returns what is wrong with them, and under which key.
func CheckQueuePolicy(o *Order, rank string, a *Admission, inversions bool) (key, problem string) {
	if o != nil && o.Kind != "" {
		if key, problem := o.Check(); problem != "" {
			return "order." + key, problem
		}
	}
	if a != nil && a.Kind != "" {
		if key, problem := a.Check(); problem != "" {
			return "admission." + key, problem
		}
		judged := func(k string) bool {
			return k == "admission" && a.Kind == "codel" || k == "target" && o != nil && o.Kind == "fq" && o.Target > 0
		}
		if x := vswitch.Excluded(vswitch.OneQueue, "admission", judged); x != nil {
			return "admission", x.Beside()
		}
	}
	if rank != "" && !byRank(o, a) && !inversions {
		return "rank", fmt.Sprintf("%q is for nothing: neither order nor admission goes by it, and inversions are not counted", rank)
	}
	return "", ""
}

// validateQueuePolicy checks how the queue of a profile is served.
func (d decoder) validateQueuePolicy(s *Switch, profile string, q *Queue, workers int, path string) {
	key, problem := CheckQueuePolicy(q.Order, q.Rank, q.Admission, q.Inversions)
	if problem == "" {
		key, problem = CheckServe(q, s.lossless(q.Queue))
	}
	switch {
	case problem != "":
		d.Fail(path+"."+key, "%s", problem)
		return
	case q.Order == nil && q.Admission == nil && q.Policy == nil && q.Shadow == nil:
		return
	case d.excluded(s, path+".order", "order", q.Order != nil),
		d.excluded(s, path+".order", vswitch.Dropping, q.Order != nil && scheduler.Drops(q.Order.Config())),
		d.excluded(s, path+".admission", "admission", q.Admission != nil),
		d.excluded(s, path+".policy", "policy", q.Policy != nil),
		d.excluded(s, path+".shadow", "shadow", q.Shadow != nil):
		return
	}
	if q.Policy.on() && d.OK() {
		if problem := s.checkPorts(q, workers); problem != "" {
			d.Fail(path+".policy", "%s", problem)
			return
		}
	}
	for i := range s.Ports {
		if p := &s.Ports[i]; p.QoS == profile && p.Rate == 0 && d.OK() {
			d.Fail(path, "port %s has no rate: its device would hold the queue, in its own order; give it one, or another profile", p.name())
			return
		}
	}
}

// PushOut bounds what waits at a port, and drops the least valuable.
type PushOut struct {
	Port  units.Size `yaml:"port" doc:"Most bytes in all queues of a port. What goes then is of the lowest strict queue that has a frame, or the longest of a level of weights. No limit if left out."`
	Queue units.Size `yaml:"queue" doc:"Most bytes in each queue. No limit if left out."`
}

// Config returns what ports take.
func (p *PushOut) Config() scheduler.PushOut {
	return scheduler.PushOut{Port: uint64(p.Port), Queue: uint64(p.Queue)}
}

// fullFrame is a frame of the usual MTU with a VLAN tag.
const fullFrame = 1518

// Check returns what is wrong with the limits, and with which of them.
func (p *PushOut) Check() (key, problem string) {
	const small = "holds no full frame; write at least 1518B, or leave it out for no limit"
	switch {
	case p.Port != 0 && p.Port < fullFrame:
		return "port", small
	case p.Queue != 0 && p.Queue < fullFrame:
		return "queue", small
	}
	return "", ""
}

// validatePushOut checks the limits of a profile.
func (d decoder) validatePushOut(s *Switch, profile, path string) {
	p := s.QoS[profile].PushOut
	key, problem := p.Check()
	switch {
	case problem != "":
		d.Fail(path+"."+key, "%s", problem)
	case p.Port == 0 && p.Queue == 0:
		d.Fail(path, "has no limit; write port or queue, or take it out")
	default:
		d.excluded(s, path, "push_out", true)
	}
}

// excluded refuses what stands at a path under a key of vswitch.Exclusion, if it is
// on, where the switch has something that cannot stand beside it.
func (d decoder) excluded(s *Switch, path, key string, on bool) bool {
	x := vswitch.Excluded(vswitch.OneSwitch, key, func(k string) bool {
		switch k {
		case key:
			return on
		case "err_disable":
			return s.PFC.ErrDisable != 0
		}
		return s.Features.Get(k) != nil
	})
	if x != nil {
		d.Fail(path, "%s", x.Beside())
	}
	return x != nil
}
