package scenario

import (
	"cmp"
	"slices"

	"gswitch/config"
	"gswitch/fabric"
	"gswitch/pipeline"
	"gswitch/scheduler"
	"gswitch/vswitch"
)

// Policies returns the values of policy and shadow, nil where they are not set.
func (s *Switch) Policies() (live, shadow *config.Policy) {
	if s.Policy != (config.Policy{}) {
		live = &s.Policy
	}
	if s.Shadow != (config.Policy{}) {
		shadow = &s.Shadow
	}
	return live, shadow
}

// Classless returns the names of the switches in which all classes wait in one egress
// queue.
func (s *Switch) Classless() (names []string, err error) {
	for _, text := range s.OneQueue {
		more, err := spread(text)
		if err != nil {
			return nil, err
		}
		names = append(names, more...)
	}
	return names, nil
}

// queues checks the settings of egress queues.
func (v *validator) queues() {
	s := &v.doc.Switch
	if key, problem := config.CheckQueuePolicy(&s.Order, s.Rank, &s.Admission, s.Inversions); problem != "" {
		v.sec.Fail("switch."+key, "%s", problem)
	}
	names, err := s.Classless()
	if err != nil {
		v.sec.Fail("switch.one_queue", "%v", err)
	}
	for _, name := range names {
		if n, ok := v.t.Lookup(name); !ok || v.t.Nodes[n].Kind != fabric.Switch {
			v.sec.Fail("switch.one_queue", "there is no switch %q", name)
		}
	}
	live, shadow := s.Policies()
	if key, problem := config.CheckServe(&config.Queue{Order: s.order(), Policy: live, Shadow: shadow}, false); problem != "" {
		v.sec.Fail("switch."+key, "%s", problem)
	} else if live != nil {
		v.policyPorts(live.Ports())
	}
	if p := &s.PushOut; p.Port != 0 || p.Queue != 0 {
		key, problem := p.Check()
		if problem != "" {
			v.sec.Fail("switch.push_out."+key, "%s", problem)
		}
	}
}

// policyPorts checks that a policy for a number of ports matches every switch.
func (v *validator) policyPorts(n int) {
	for i := range v.t.Nodes {
		if k := &v.t.Nodes[i]; n > 1 && k.Kind == fabric.Switch && len(k.Links) != n {
			v.sec.Fail("switch.policy", "has %d ports, and switch %s has %d: write as many", n, k.Name, len(k.Links))
			return
		}
	}
}

// order returns how egress queues are served, nil if it is not set.
func (s *Switch) order() *config.Order {
	if s.Order.Kind == "" {
		return nil
	}
	return &s.Order
}

// exclusions rejects settings that exclude each other in a switch.
func (v *validator) exclusions() {
	s := &v.doc.Switch
	live, shadow := s.Policies()
	kind, err := pipeline.ParseChooser(s.Paths.Choose)
	has := map[string]bool{"order": s.Order.Kind != "", "admission": s.Admission.Kind != "", "policy": live != nil, "shadow": shadow != nil, "push_out": s.PushOut.Port != 0 || s.PushOut.Queue != 0,
		"err_disable": v.doc.PFC.ErrDisable != 0, "voq": s.VOQ, "choose": err == nil && !kind.ByFlow(),
		vswitch.Dropping: s.order() != nil && scheduler.Drops(s.Order.Config())}
	for _, f := range v.doc.Wholes() {
		has[f.Name] = true
	}
	for _, f := range v.doc.Features() {
		has[f.Name] = true
	}
	if x := vswitch.Excluded(vswitch.OneSwitch, "", func(key string) bool { return has[key] }); x != nil {
		key := map[string]string{"choose": "paths.choose", vswitch.Dropping: "order"}[x.A]
		v.sec.Fail("switch."+cmp.Or(key, x.A), "%s", x.Beside())
	}
	v.queueExclusions()
}

// queueExclusions rejects features that exclude each other in the egress queue of a class.
func (v *validator) queueExclusions() {
	var on [8][]string // the features of each class
	for _, f := range v.doc.Features() {
		refused := false
		for _, class := range f.Classes {
			at := &on[class&7]
			has := func(key string) bool { return key == f.Name || slices.Contains(*at, key) }
			if x := vswitch.Excluded(vswitch.OneQueue, f.Name, has); x != nil && !refused {
				v.sec.Fail("switch."+f.Name, "in class %d it %s", class, x.Beside())
				refused = true
			}
			*at = append(*at, f.Name)
		}
	}
}
