package vswitch

import (
	"fmt"
	"net/netip"
	"slices"
	"sync/atomic"

	"gswitch/buffer"
	"gswitch/frame"
	"gswitch/pipeline"
	"gswitch/scheduler"
)

// Switch is a switch made of one Node for each worker that runs it. Its methods belong to
// the control plane and must be called by one goroutine at a time. The workers call only
// their Node, and carry out the commands that Prepare makes: only workers write tables.
type Switch struct {
	Nodes []*Node

	program   atomic.Pointer[Program]
	fdb       *pipeline.FDB
	neighbors *neighborTable
	ids       idSets
	learned   map[netip.Prefix]Route // by LearnRoutes: call learnedRoutes
	learning  *learning              // not yet in learned
	gen       uint32

	// Ports with a link, and how often that has changed: every worker must know the links
	// of all ports, but only those that serve a port are notified.
	carrier  [MaxPorts / 64]atomic.Uint64
	disabled [MaxPorts / 64]atomic.Uint64 // ports that are treated as down
	links    atomic.Uint32

	disabledBy [MaxPorts]atomic.Pointer[string]
}

// fdbGranularity is the age at which the time stamp of a learned address is rewritten, so
// that a busy station does not dirty a cache line per frame.
const fdbGranularity = frame.Second

// handRing is the largest number of frames that wait between two workers.
const handRing = 2048

// New makes a switch that runs on len(pools) workers. All pools share one
// arena. PortConfig.Worker of every port must be below len(pools).
func New(cfg *Config, pools []*frame.Pool) (*Switch, error) {
	if len(pools) == 0 || len(pools) > 64 {
		return nil, fmt.Errorf("switch %s: %d workers, from 1 to 64 are possible", cfg.Name, len(pools))
	}
	if cfg.Workers != nil && (len(cfg.Workers) != len(pools) || slices.Min(cfg.Workers) < 0 || slices.Max(cfg.Workers) > 63) {
		return nil, fmt.Errorf("switch %s: workers %v do not name one of 0 to 63 for each of %d pools", cfg.Name, cfg.Workers, len(pools))
	}
	size := cfg.FDB.Size
	if size == 0 {
		size = 65536
	}
	sw := &Switch{fdb: pipeline.NewFDB(size, fdbGranularity, cfg.Secret), neighbors: newNeighborTable(MaxNeighbors, cfg.Secret), ids: idSets{newIDSet(), newIDSet(), newIDSet()}, learned: map[netip.Prefix]Route{}}
	sw.ids.ifaces.get("") // 0 is noIface
	prog, err := sw.compile(cfg, len(pools))
	if err != nil {
		return nil, err
	}
	sw.program.Store(prog)
	for i, pool := range pools {
		n, err := sw.newNode(i, len(pools), pool, prog)
		if err != nil {
			return nil, err
		}
		sw.Nodes = append(sw.Nodes, n)
	}
	for i, from := range sw.Nodes {
		for j, to := range sw.Nodes {
			if i != j {
				ring := frame.NewRing(handRing)
				from.others.out[j].ring, to.others.in[i] = ring, ring
			}
		}
	}
	sw.bindAddresses(nil, prog)
	return sw, nil
}

func (sw *Switch) compile(cfg *Config, workers int) (*Program, error) {
	for _, p := range cfg.Ports {
		if p.Name != "" && (p.Worker < 0 || p.Worker >= workers) {
			return nil, fmt.Errorf("switch %s port %s: there is no worker %d (the switch runs on %d)", cfg.Name, p.Name, p.Worker, workers)
		}
	}
	sw.gen++
	p, err := compile(cfg, &sw.ids, sw.gen)
	if err != nil {
		return nil, err
	}
	return p, sw.learnAgain(p)
}

func (sw *Switch) newNode(i, workers int, pool *frame.Pool, prog *Program) (*Node, error) {
	cfg := prog.Config
	n := &Node{sw: sw, index: i, arena: pool.Arena, pool: pool, fdb: sw.fdb, neighbors: sw.neighbors,
		selfMAC: cfg.MAC.Uint64(), others: otherWorkers{out: make([]handoff, workers), in: make([]*frame.Ring, workers)}, flow: flowState{wants: make([]wantMask, MaxPorts)}}
	n.others.bit, n.others.bits = 1<<i, 1<<workers-1
	if cfg.Workers != nil {
		n.others.bit, n.others.bits = 1<<cfg.Workers[i], 0
		for _, w := range cfg.Workers {
			n.others.bits |= 1 << w
		}
	}
	if workers > 1 {
		n.shown = scheduler.NewShownLoads()
	}
	n.rng = frame.NewRand(cfg.Seed ^ uint64(i)<<48)
	n.flow.sweepAt, n.stages.due = frame.Never, frame.Never
	buf, err := buffer.New(bufferConfig(cfg, workers, pool))
	if err != nil {
		return nil, fmt.Errorf("switch %s: %w", cfg.Name, err)
	}
	n.buffer = buf
	if i == 0 {
		n.local = newLocal(n)
	}
	n.adopt(0, prog)
	return n, nil
}

// bindAddresses gives each port its share of the forwarding database, enters the static
// addresses of p and removes those of the previous program, and everything learned on
// ports that were removed or are in other VLANs now. An address that stays is never
// absent: workers forward in the meantime, and flood what they do not find.
func (sw *Switch) bindAddresses(old, p *Program) {
	share := p.Config.FDB.PerPort
	if share == 0 {
		share = sw.fdb.Cap() / 2
	}
	sw.fdb.SetShare(share)
	static := make(map[uint64]uint16, len(p.Config.FDB.Static))
	var refused []StaticMAC
	for _, s := range p.Config.FDB.Static {
		key := pipeline.MACKey(s.VLAN, s.MAC.Uint64())
		static[key] = s.Port
		if sw.fdb.SetStatic(0, key, s.Port) == pipeline.LearnFull {
			refused = append(refused, s)
		}
	}
	if old == nil {
		return
	}
	for _, s := range old.Config.FDB.Static {
		key := pipeline.MACKey(s.VLAN, s.MAC.Uint64())
		if _, stays := static[key]; !stays {
			sw.fdb.Delete(key)
		}
	}
	for i := range old.ports {
		if i >= len(p.ports) || !p.ports[i].bridgesLike(&old.ports[i]) {
			sw.fdb.FlushPort(uint16(i), false)
		}
	}
	for _, s := range refused {
		sw.fdb.SetStatic(0, pipeline.MACKey(s.VLAN, s.MAC.Uint64()), s.Port) // there is room now
	}
}

// Program returns the program in force.
func (sw *Switch) Program() *Program { return sw.program.Load() }

// Apply, SetRoute and DeleteRoute make the changes of these names. They may also be
// called by the code that steps the switch.
func (sw *Switch) Apply(cfg *Config) error               { return sw.Do(Apply{Config: cfg}) }
func (sw *Switch) SetRoute(r Route) error                { return sw.Do(SetRoute{r}) }
func (sw *Switch) DeleteRoute(prefix netip.Prefix) error { return sw.Do(DeleteRoute{prefix}) }
