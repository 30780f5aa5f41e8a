package scenario

import "gswitch/config"

// Policies returns what stands under policy and shadow, nil where nothing does.
func (s *Switch) Policies() (live, shadow *config.Policy) {
	if s.Policy != (config.Policy{}) {
		live = &s.Policy
	}
	if s.Shadow != (config.Policy{}) {
		shadow = &s.Shadow
	}
	return live, shadow
}

// queues checks what switches do with their egress queues.
func (v *validator) queues() {
	s := &v.doc.Switch
	if key, problem := config.CheckQueuePolicy(&s.Order, s.Rank, &s.Admission, s.Inversions); problem != "" {
		v.sec.Fail("switch."+key, "%s", problem)
	}
	live, shadow := s.Policies()
	if key, problem := config.CheckServe(live, shadow, s.Order.Kind != "", false); problem != "" {
		v.sec.Fail("switch."+key, "%s", problem)
	}
	if on := live != nil || shadow != nil; on && (s.Escape.Enabled || s.Crossbar.Enabled || s.VOQ) {
		v.sec.Fail("switch.policy", "cannot stand beside escape, crossbar or voq, which say themselves who waits where; take one of the two out")
	}
	for _, other := range []struct {
		on   bool
		name string
		has  bool
	}{{s.Escape.Enabled, "escape", s.Order.Kind != "" || s.Admission.Kind != ""}, {s.Crossbar.Enabled, "crossbar", s.Admission.Kind != ""}, {s.VOQ, "voq: true", s.Order.Kind != ""}} {
		if key := "switch.order"; other.on && other.has {
			if s.Order.Kind == "" || other.name == "crossbar" {
				key = "switch.admission"
			}
			v.sec.Fail(key, "cannot stand beside %s; take one of the two out", other.name)
		}
	}
	if p := &s.PushOut; p.Port != 0 || p.Queue != 0 {
		key, problem := p.Check()
		switch {
		case problem != "":
			v.sec.Fail("switch.push_out."+key, "%s", problem)
		case s.Crossbar.Enabled:
			v.sec.Fail("switch.push_out", "cannot stand beside crossbar, whose queues hold back what does not fit; take one of the two out")
		case s.Escape.Enabled:
			v.sec.Fail("switch.push_out", "cannot stand beside escape, whose places are those of the shared buffer; take one of the two out")
		}
	}
}
