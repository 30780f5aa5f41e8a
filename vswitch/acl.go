package vswitch

import (
	"fmt"
	"strconv"

	"gswitch/frame"
	"gswitch/pipeline"
	"gswitch/wire"
)

// aclProgram is one access list of a Program.
type aclProgram struct {
	name     string
	table    *pipeline.Ternary
	fallback pipeline.Action
	count    []uint32 // counter id of each table entry
}

// aclState is the state of access lists on a worker.
type aclState struct {
	caches []*pipeline.FlowCache // by access list
	meters []pipeline.Meter      // by meter id
	police []Police              // parameters of the meters
	keys   [vector]pipeline.Key
	ids    [vector]uint32
}

// flowCacheSize is how many flows a worker caches for an access list.
const flowCacheSize = 8192

// compileACLs builds the tables. Counter ids are tied to the rule's name or, without one,
// to its position, so that counting continues over a reload.
func (p *Program) compileACLs(cfg *Config, ids *idSet) error {
	for _, a := range cfg.ACLs {
		if a.Default.Has(pipeline.OpPolice) {
			return fmt.Errorf("switch %s access list %s: the default cannot police; write a last rule that matches everything", cfg.Name, a.Name)
		}
		if err := checkAction(cfg, &a.Default); err != nil {
			return fmt.Errorf("switch %s access list %s default: %w", cfg.Name, a.Name, err)
		}
		rules := make([]pipeline.Rule, len(a.Rules))
		count := make([]uint32, len(a.Rules))
		for i, r := range a.Rules {
			if r.Police == nil && r.Action.Has(pipeline.OpPolice) {
				return fmt.Errorf("switch %s access list %s rule %d: polices without a token bucket", cfg.Name, a.Name, i+1)
			}
			if r.Police != nil {
				if _, err := pipeline.NewMeter(r.Police.Rate, r.Police.Burst); err != nil {
					return fmt.Errorf("switch %s access list %s rule %d: %w", cfg.Name, a.Name, i+1, err)
				}
				r.Action.Ops |= pipeline.OpPolice
				r.Action.Meter = uint32(len(p.meters))
				p.meters = append(p.meters, *r.Police)
			}
			if err := checkAction(cfg, &r.Action); err != nil {
				return fmt.Errorf("switch %s access list %s rule %d: %w", cfg.Name, a.Name, i+1, err)
			}
			rules[i] = pipeline.Rule{Match: r.Match, Priority: int32(r.Priority), Action: r.Action}
			count[i] = ids.get(a.Name + "/" + ruleName(&r, i))
		}
		table, err := pipeline.NewTernary(rules)
		if err != nil {
			return fmt.Errorf("switch %s access list %s: %w", cfg.Name, a.Name, err)
		}
		p.acls = append(p.acls, aclProgram{name: a.Name, table: table, fallback: a.Default, count: count})
	}
	for _, m := range cfg.Mirrors {
		if int(m.Port) >= len(cfg.Ports) {
			return fmt.Errorf("switch %s mirror %s: there is no port %d", cfg.Name, m.Name, m.Port)
		}
	}
	p.rules = ids.len()
	return nil
}

// checkAction reports what an action refers to and the switch does not have.
func checkAction(cfg *Config, a *pipeline.Action) error {
	if a.Has(pipeline.OpMirror) && int(a.Session) >= len(cfg.Mirrors) {
		return fmt.Errorf("there is no mirror session %d", a.Session)
	}
	if a.Has(pipeline.OpRedirect) && int(a.Port) >= len(cfg.Ports) {
		return fmt.Errorf("there is no port %d to redirect to", a.Port)
	}
	return nil
}

func ruleName(r *ACLRule, i int) string {
	if r.Name != "" {
		return r.Name
	}
	return "#" + strconv.Itoa(i+1)
}

// adopt brings caches and meters in line with a program. A meter that has not changed
// keeps its tokens.
func (s *aclState) adopt(now frame.Time, p *Program) {
	for len(s.caches) < len(p.acls) {
		s.caches = append(s.caches, pipeline.NewFlowCache(flowCacheSize))
	}
	meters := make([]pipeline.Meter, len(p.meters))
	for i, m := range p.meters {
		if i < len(s.police) && s.police[i] == m {
			meters[i] = s.meters[i]
			continue
		}
		meters[i], _ = pipeline.NewMeter(m.Rate, m.Burst) // compileACLs checked it
		meters[i].Take(now, 0)
	}
	s.meters, s.police = meters, p.meters
}

// filter applies an access list to a vector.
func (n *Node) filter(now frame.Time, list uint16, v []frame.Ref) []frame.Ref {
	a, s := &n.prog.acls[list], &n.acl
	needs := a.table.Needs()
	for i, r := range v {
		pipeline.BuildKey(n.arena, r, needs, &s.keys[i])
		a.table.Mask(&s.keys[i])
	}
	s.caches[list].LookupVec(a.table, s.keys[:len(v)], s.ids[:])
	keep := v[:0]
	for i, r := range v {
		m := n.arena.Meta(r)
		act := &a.fallback
		var one pipeline.Action
		if id := s.ids[i]; id != pipeline.NoEntry {
			one = a.table.Action(id)
			act = &one
			n.aclCount[a.count[id]].add(m.Wire)
		}
		if act.Ops&^(pipeline.OpPermit|pipeline.OpCount) != 0 && !n.act(now, act, r, m) {
			continue
		}
		keep = append(keep, r)
	}
	if n.vec.copiesN > 0 {
		n.sendCopies()
	}
	return keep
}

// act applies an entry and reports whether the frame continues.
func (n *Node) act(now frame.Time, act *pipeline.Action, r frame.Ref, m *frame.Meta) bool {
	if act.Ops&pipeline.OpMirror != 0 {
		n.mirror(act.Session, r)
	}
	if act.Ops&pipeline.OpDrop != 0 {
		n.drop(r, frame.ACLDrop)
		return false
	}
	if act.Ops&pipeline.OpPolice != 0 && !n.acl.meters[act.Meter].Take(now, int(m.Wire)) {
		n.drop(r, frame.Policed)
		return false
	}
	if act.Ops&pipeline.OpSetClass != 0 {
		m.Class = act.Class & 7
	}
	if act.Ops&pipeline.OpSetDSCP != 0 && m.Reason == frame.Keep {
		wire.SetDSCP(n.arena, r, act.DSCP)
	}
	if act.Ops&pipeline.OpSetPCP != 0 {
		wire.SetPCP(n.arena, r, act.PCP)
	}
	if act.Ops&pipeline.OpRedirect != 0 {
		m.OutPort = act.Port
	}
	return true
}

// sendCopies takes the copies of mirror to their queues.
func (n *Node) sendCopies() {
	v := n.vec.copies[:n.vec.copiesN]
	n.vec.copiesN = 0
	n.unchanged(v)
}

// mirror copies a frame, as it arrived, to a mirror session. Copies use the lowest class,
// so that they never take lossless buffer, and are not mirrored again.
func (n *Node) mirror(session uint16, r frame.Ref) {
	m := n.arena.Meta(r)
	if m.Flags&frame.IsClone != 0 {
		return
	}
	s := &n.prog.Config.Mirrors[session]
	n.count.Made++
	c := n.pool.Copy(r)
	if c == frame.Nil {
		n.countDrop(m.InPort, frame.ArenaExhausted)
		return
	}
	cm := n.arena.Meta(c)
	cm.Flags |= frame.IsClone
	cm.Class, cm.OutPort = 0, s.Port
	if s.Truncate > 0 && s.Truncate < int(cm.Len) {
		if cm.Next != frame.Nil {
			n.pool.Free(cm.Next)
			cm.Next = frame.Nil
		}
		cm.Len, cm.Wire = uint16(s.Truncate), uint32(s.Truncate)
	}
	n.count.Mirrored++
	n.vec.copies[n.vec.copiesN] = c // one of each frame of the vector at most
	n.vec.copiesN++
}
