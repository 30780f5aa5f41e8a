package scenario

// queues checks what switches do with their egress queues.
func (v *validator) queues() {
	s := &v.doc.Switch
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
