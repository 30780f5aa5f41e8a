package metrics

import (
	"time"

	"gswitch/buffer"
	"gswitch/dataplane"
	"gswitch/dataplane/xsk"
	"gswitch/frame"
	"gswitch/histogram"
	"gswitch/pfc"
	"gswitch/scheduler"
	"gswitch/telemetry/export"
	"gswitch/vswitch"
)

// Unit is a switch on its workers: Switch.Nodes[i] is stepped by Workers[i].
type Unit struct {
	Switch  *vswitch.Switch
	Workers []*dataplane.Worker
}

// Source is what is read. The units stay on the engine while a snapshot is
// taken; ports may come and go.
type Source struct {
	Engine *dataplane.Engine
	Units  []Unit
	Hosts  []HostUnit
	Config ConfigState
	Export *export.Counts // nil: reports go nowhere

	// OnlyUsed leaves out the series of queues and classes that had no frame yet.
	OnlyUsed bool
}

// ConfigState reports the configuration in force.
type ConfigState struct {
	Generation    uint64
	ReloadSuccess bool      // of the last attempt
	ReloadTime    time.Time // of the last attempt
	Version       string    // of the program
}

// Snapshot is everything that was counted, at nearly one instant. It shares
// nothing with the workers.
type Snapshot struct {
	Engine   dataplane.Stats
	Switches []Switch
	Hosts    []Host
	Bumps    []Bump
	Config   ConfigState
	Export   *export.Counts // nil: reports go nowhere
}

// Switch is the state of one switch.
type Switch struct {
	Name      string
	ID        uint16
	Ports     []Port
	Counts    vswitch.Counts
	SelfDrops [frame.NumReasons]uint64
	Buffers   []buffer.Snapshot // one for each worker
	Paths     vswitch.PathCounts
	Rules     []vswitch.Traffic // by counter id
	Addresses int               // in the forwarding database
	Capacity  int               // of the forwarding database
	PerPort   int               // most addresses that are learned at one port
	Rejected  uint64            // addresses that found it full
	Program   *vswitch.Program
	OnlyUsed  bool // Source.OnlyUsed
}

// Port is the state of one port.
type Port struct {
	Number   uint16
	Config   *vswitch.PortConfig
	Counts   vswitch.PortCounts
	Learned  int        // addresses of the forwarding database
	Rejected uint64     // addresses that were not learned
	LinkUp   bool       // enabled, and there is a link
	At       frame.Time // when the queues were read
	Queues   [scheduler.NumQueues]scheduler.QueueStats
	Sojourn  [scheduler.NumQueues]histogram.Buckets
	// Order and Admission name how queues are served; Inversions is nil where
	// they are not counted.
	Order, Admission [scheduler.NumQueues]string
	Inversions       [scheduler.NumQueues]*scheduler.Inversions
	// Inside and Beside are the queues inside the order of a queue and inside its admission, nil where it has
	// none; Draining is then how many frames wait that came under an order before.
	Inside, Beside [scheduler.NumQueues]*scheduler.Inside
	Draining       [scheduler.NumQueues]int
	// Features are the counters of features that the port has.
	Features   []Measured
	DisabledBy string // pfc or a feature: err-disabled for a while; "": it is not
	PFC        pfc.Stats
	Classes    [8]pfc.ClassState
	Held       [8]frame.Time         // for how long the neighbour has held back frames of a class that wait
	Links      []dataplane.PortStats // what lies below: one for each worker that has queues of it
}

// Group returns the buffer account of an ingress port and class, over all
// workers.
func (s *Switch) Group(p *Port, class int) (t buffer.GroupSnapshot) {
	for i := range s.Buffers {
		if int(p.Number) >= len(s.Buffers[i].Ports) {
			continue
		}
		g := &s.Buffers[i].Ports[p.Number].Groups[class]
		t.Reserved += g.Reserved
		t.Shared += g.Shared
		t.Headroom += g.Headroom
		t.HeadroomSize += g.HeadroomSize
		t.Lossless = t.Lossless || g.Lossless
		t.Peak += g.Peak
		t.HeadroomPeak += g.HeadroomPeak
		t.XOFFs += g.XOFFs
		t.Drops += g.Drops
	}
	return t
}

// PortName is the name under which a port of a switch is known to the engine.
func PortName(sw, port string) string { return sw + "/" + port }

// portsAtOnce bounds how long a worker copies: about 20 KB for each port, a
// few microseconds.
const portsAtOnce = 4

// Missing lists the ports that cannot forward whatever their link is: those whose
// interface is not there, or not opened.
func (s *Snapshot) Missing() (missing []string) {
	for i := range s.Engine.Ports {
		if p := &s.Engine.Ports[i]; p.Kind == dataplane.XDP && p.Mode == xsk.Auto || p.Kind == dataplane.Tap && !p.Up {
			missing = append(missing, p.Name+" is "+p.State)
		}
	}
	return missing
}

// Take takes a snapshot.
func Take(src Source) *Snapshot {
	s := &Snapshot{Engine: src.Engine.Stats(), Config: src.Config, Export: src.Export, Switches: make([]Switch, len(src.Units))}
	links := map[string][]dataplane.PortStats{}
	for _, p := range s.Engine.Ports {
		links[p.Name] = append(links[p.Name], p)
	}
	for i, u := range src.Units {
		u.read(&s.Switches[i])
		s.Switches[i].OnlyUsed = src.OnlyUsed
		for j := range s.Switches[i].Ports {
			p := &s.Switches[i].Ports[j]
			p.Links = links[PortName(s.Switches[i].Name, p.Config.Name)]
		}
	}
	for _, u := range src.Hosts {
		h := Host{Name: u.Agent.NIC().Config().Name}
		u.read(&h)
		h.Links = links[u.Port]
		s.Hosts = append(s.Hosts, h)
	}
	return s
}

func (u Unit) read(s *Switch) {
	prog := u.Switch.Program()
	cfg := prog.Config
	s.Name, s.ID, s.Program = cfg.Name, cfg.ID, prog
	fdb := u.Switch.FDB()
	s.Addresses, s.Capacity, s.PerPort, s.Rejected = fdb.Len(), fdb.Cap(), fdb.Share(), fdb.Rejected()
	for i := range cfg.Ports {
		if cfg.Ports[i].Name != "" {
			s.Ports = append(s.Ports, Port{Number: uint16(i), Config: &cfg.Ports[i], Learned: fdb.Learned(uint16(i)), Rejected: fdb.RejectedAt(uint16(i))})
		}
	}
	s.Buffers = make([]buffer.Snapshot, len(u.Workers))
	for k, w := range u.Workers {
		n := u.Switch.Nodes[k]
		s.Buffers[k].Ports = make([]buffer.PortSnapshot, 0, len(cfg.Ports))
		var counts vswitch.Counts
		var paths vswitch.PathCounts
		var self [frame.NumReasons]uint64
		rules := make([]vswitch.Traffic, 0, len(s.Rules))
		// A worker that was stopped is not read: its numbers are gone.
		w.Do(func(frame.Time) {
			counts, self = n.Counts(), n.SelfDrops()
			rules = n.RuleCounts(rules)
			n.Buffer(&s.Buffers[k], false)
			paths = n.PathCounts()
			n.ReadFeatures(s.measured)
		})
		s.Paths.Plus(&paths)
		s.add(counts, self, rules)
		for from := 0; from < len(s.Ports); from += portsAtOnce {
			ports := s.Ports[from:min(from+portsAtOnce, len(s.Ports))]
			w.Do(func(now frame.Time) {
				for i := range ports {
					ports[i].read(now, n)
				}
			})
		}
	}
}

// measured enters what a worker reports of a feature.
func (s *Switch) measured(f *vswitch.Feature, counter int, port uint16, value float64, labels ...string) {
	for i := range s.Ports {
		if p := &s.Ports[i]; p.Number == port {
			p.Features = addMeasured(p.Features, f.Name, &f.Counters[counter], value, labels)
		}
	}
}

func (s *Switch) add(c vswitch.Counts, self [frame.NumReasons]uint64, rules []vswitch.Traffic) {
	t := &s.Counts
	t.Learned += c.Learned
	t.Moved += c.Moved
	t.LearnFull += c.LearnFull
	t.NeighborFull += c.NeighborFull
	t.Flooded += c.Flooded
	t.ToLocal += c.ToLocal
	t.Made += c.Made
	t.Mirrored += c.Mirrored
	t.ICMPSent += c.ICMPSent
	t.ICMPLimited += c.ICMPLimited
	t.Programs += c.Programs
	for i := range self {
		s.SelfDrops[i] += self[i]
	}
	for i := range rules {
		if i == len(s.Rules) {
			s.Rules = append(s.Rules, vswitch.Traffic{})
		}
		s.Rules[i] = s.Rules[i].Plus(rules[i])
	}
}

// read runs on the worker of n. A node that has not adopted a new port yet
// does not know it.
func (p *Port) read(now frame.Time, n *vswitch.Node) {
	if !n.HasPort(p.Number) {
		return
	}
	n.ReadPort(p.Number, &p.Counts)
	if !n.Owns(p.Number) {
		return
	}
	p.At, p.LinkUp, p.DisabledBy = now, n.LinkUp(p.Number), n.DisabledBy(p.Number)
	sched := n.Scheduler(p.Number)
	for q := range p.Queues {
		p.Queues[q] = sched.Stats(now, q, false)
		p.Sojourn[q] = *sched.Sojourn(q)
		p.Order[q], p.Admission[q] = sched.Names(q)
		if p.Inside[q], p.Beside[q] = sched.Inside(q); p.Inside[q] != nil {
			_, p.Draining[q] = sched.Serving(q)
		}
		if v, on := sched.Inversions(q); on {
			p.Inversions[q] = &v
		}
	}
	if fc := n.PFC(p.Number); fc != nil {
		p.PFC = fc.Stats(now)
		for c := range p.Classes {
			p.Classes[c] = fc.Class(c)
		}
		p.Held = n.HeldBack(now, p.Number)
	}
}
