package scenario

import "gswitch/vswitch"

// On reports whether switches mark frames.
func (e *ECN) On() bool { return e.KMin > 0 || e.PI != nil }

// ecn checks switch.ecn.
func (v *validator) ecn() {
	e := &v.doc.Switch.ECN
	if key, problem := e.Check(); key != "" {
		v.sec.Fail("switch.ecn."+key, "%s", problem)
	}
	if e.KMin == 0 && e.KMax > 0 {
		v.sec.Fail("switch.ecn.kmin", "is missing beside kmax")
	}
	if e.PI == nil {
		return
	}
	law := e.PI.Law()
	if err := law.Validate(); err != nil {
		v.sec.Fail("switch.ecn.pi", "%v", err)
	}
	if x := vswitch.Excluded(vswitch.OneQueue, "pi", func(k string) bool { return k == "pi" || k == "ecn" && e.KMax > 0 }); x != nil {
		v.sec.Fail("switch.ecn.pi", "%s", x.Beside())
	}
}
