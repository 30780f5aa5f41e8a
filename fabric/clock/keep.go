package clock

import (
	"slices"

	"gswitch/clocksync"
	"gswitch/clocksync/boundary"
	"gswitch/clocksync/ordinary"
	"gswitch/fabric/vnet"
	"gswitch/feature"
	"gswitch/frame"
	"gswitch/hostnic"
	"gswitch/vswitch"
)

// Keeper keeps the clocks of a network, of which one thread steps all nodes: it plans anew when
// something has failed, and knows how wrong every clock is.
type Keeper struct {
	n      *vnet.Network
	spec   *Spec
	live   Live
	nodes  []member // by node of the topology
	now    []clocksync.Options
	epoch  uint32
	byID   map[uint64]int
	rnd    frame.Rand
	Counts Counts
}

// Counts are what a controller did.
type Counts struct {
	Plans     int // after the first
	Unplanned int // times that there was none
	Devices   int // configured anew
	Disagreed int // times that what a node received in a mesh could not be true together
}

// member is the clock of a node.
type member struct {
	*clocksync.Instance
	call func(now frame.Time, c feature.Call) error
	id   int // of the engine
}

// NewKeeper finds the clocks of a network. live says what works.
func NewKeeper(n *vnet.Network, s *Spec, options []clocksync.Options, live Live) (*Keeper, error) {
	k := &Keeper{n: n, spec: s, live: live, nodes: make([]member, len(n.Topology.Nodes)), now: options, epoch: 1, byID: map[uint64]int{}, rnd: frame.NewRand(s.Seed)}
	for i, node := range n.Topology.Nodes {
		m := &k.nodes[i]
		m.id = n.EngineNode(i)
		if sw, ok := n.SwitchByName(node.Name); ok {
			m.Instance = boundary.Of(n.Switches[sw].Nodes[0]).Instance
			m.call = func(now frame.Time, c feature.Call) error {
				return n.Change(now, sw, &vswitch.CallFeature{Feature: boundary.Name, Call: c})
			}
		} else {
			h, _ := n.HostByName(node.Name)
			m.Instance = ordinary.Of(n.Hosts[h]).Instance
			m.call = func(now frame.Time, c feature.Call) error {
				return n.ChangeHost(now, h, &hostnic.CallFeature{Feature: ordinary.Name, Call: c})
			}
		}
		k.byID[m.Identity()] = i
	}
	return k, nil
}

// Begin has clocks set that messages do not set.
func (k *Keeper) Begin() {
	switch {
	case k.spec.Scheme.Mesh:
		m := &mesh{k: k}
		m.begin()
	case k.spec.Scheme.Computed:
		k.n.Engine.Every(0, k.spec.Interval, k.compute)
	}
}

// compute sets all clocks to the root's: the best that a scheme can do that works all
// adjustments out at once (Huygens, section 3.6.1.1 of Li's dissertation). Its bound is
// close to zero then.
func (k *Keeper) compute(now frame.Time) {
	root := k.first()
	for i := range k.nodes {
		if i != root {
			k.call(now, i, &clocksync.Adjust{To: k.truth(now), Bound: rounding, Root: k.nodes[root].Identity(), Hops: 1})
		}
	}
}

// rounding is what two clocks that are read in whole nanoseconds may seem to differ in more
// than they do: schemes have that part of their bounds which others have in that of a hop.
const rounding = 2 * frame.Nanosecond

// first is the node that is the root by the document, and truth what its clock says.
func (k *Keeper) first() int {
	i, _ := k.n.Topology.Lookup(k.spec.Root)
	return i
}

func (k *Keeper) truth(now frame.Time) frame.Time {
	x := &k.nodes[k.first()]
	return x.At(k.n.Engine.LocalTime(x.id, now))
}

// Len is how many nodes there are.
func (k *Keeper) Len() int { return len(k.nodes) }

// Look is what the clock of a node says now, and how wrong it is: its difference
// to that of the root it follows.
func (k *Keeper) Look(now frame.Time, i int) (r Reading) {
	m := &k.nodes[i]
	local := k.n.Engine.LocalTime(m.id, now)
	r.Root = m.State() == clocksync.Root
	r.Valid, r.Gaps, r.Impacted = m.Counts.Valid, m.Counts.Gaps, m.Counts.Impacted
	r.Eps, r.SinceMessage, r.Turned = m.Uncertainty(local), m.SinceMessage(local), m.Turned()
	if r.Known = r.Eps != clocksync.Forever; !r.Known {
		return r
	}
	_, id, depth := m.Place()
	r.Depth = int(depth)
	if root, ok := k.byID[id]; ok && root != i {
		x := &k.nodes[root]
		if r.Error = m.At(local) - x.At(k.n.Engine.LocalTime(x.id, now)); r.Error < 0 {
			r.Error = -r.Error
		}
	}
	return r
}

// Reading is what Look found.
type Reading struct {
	Known, Root  bool
	Turned       bool // to its second parent
	Eps, Error   frame.Time
	SinceMessage frame.Time // since it received a message of the root
	Depth        int
	Valid, Gaps  uint64 // as clocksync.Counts has them
	Impacted     frame.Time
}

// Plan makes a plan of what works now and brings the nodes to it, make before
// break: first all send to those that follow them by either plan, then
// nodes follow their new parents, the root's children first, then none sends
// to a node that does not follow it.
func (k *Keeper) Plan(now frame.Time) {
	if k.spec.Scheme.Mesh || k.spec.Scheme.Computed {
		return // which clock follows which is no matter
	}
	p, err := k.spec.Plan(k.n.Topology, k.live, k.root())
	if err != nil {
		k.Counts.Unplanned++
		return
	}
	k.Counts.Plans++
	k.epoch++
	next := k.spec.Options(k.n.Topology, k.live, p, k.epoch)
	order := p.TopDown()
	var changed []int
	for _, i := range order {
		if m := &k.nodes[i]; differ(k.now[i], next[i]) || m.Turned() || next[i].Root != (m.State() == clocksync.Root) || m.State() == clocksync.Evicted {
			changed = append(changed, i)
		}
	}
	k.Counts.Devices += len(changed)
	k.bring(now, p, next, changed)
	for _, i := range order {
		if !slices.Contains(changed, i) {
			k.now[i] = next[i]
		}
	}
}

// bring has the nodes carry out the stages of a plan: at once, or each stage, and of the
// second each level of the tree, within Spec.Push of the one before at every node, when it
// comes there by the seed. What has not come when the next plan begins does not come.
func (k *Keeper) bring(now frame.Time, p *Plan, next []clocksync.Options, changed []int) {
	epoch, order := k.epoch, p.TopDown()
	at := now
	stage := func(nodes []int, do func(now frame.Time, i int)) {
		for _, i := range nodes {
			if k.spec.Push == 0 {
				do(at, i)
				continue
			}
			k.n.Engine.At(at+frame.Time(k.rnd.Uint32n(uint32(k.spec.Push))), func(now frame.Time) {
				if k.epoch == epoch {
					do(now, i)
				}
			})
		}
		at += k.spec.Push
	}
	stage(order, func(now frame.Time, i int) { k.call(now, i, &clocksync.SendBy{Ports: next[i].Transmit}) })
	for _, level := range p.Levels() {
		level = slices.DeleteFunc(level, func(i int) bool { return !slices.Contains(changed, i) })
		stage(level, func(now frame.Time, i int) {
			o := next[i]
			o.Transmit = *k.nodes[i].Transmit()
			k.call(now, i, &clocksync.Follow{Options: o})
			k.now[i] = next[i]
		})
	}
	k.n.Engine.At(at+2*k.spec.Interval, func(now frame.Time) {
		for _, i := range order {
			if k.now[i].Epoch == next[i].Epoch || !differ(k.now[i], next[i]) {
				k.call(now, i, &clocksync.SendBy{Ports: next[i].Transmit, Only: true})
			}
		}
	})
}

// differ reports whether two configurations ask for anything else.
func differ(a, b clocksync.Options) bool {
	a.Epoch, b.Epoch = 0, 0
	return a != b
}

// call has a node carry out a call.
func (k *Keeper) call(now frame.Time, i int, c feature.Call) {
	if err := k.nodes[i].call(now, c); err != nil {
		k.n.Engine.Stop(err)
	}
}

// root is the node to plan from: the one that is the root, as long as it works.
func (k *Keeper) root() int {
	for i := range k.nodes {
		if k.nodes[i].State() == clocksync.Root && k.live.Node(i) {
			return i
		}
	}
	return -1
}
