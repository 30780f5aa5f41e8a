package config

import (
	"fmt"

	"gswitch/frame"
	"gswitch/scheduler"
	"gswitch/section"
)

// Law returns what a queue has.
func (e *ECN) Law() scheduler.ECN {
	return scheduler.ECN{KMin: uint32(e.KMin), KMax: uint32(e.KMax), PMax: e.PMax}
}

// Check returns what is wrong with the thresholds, and with which of them.
func (e *ECN) Check() (key, problem string) {
	if e.KMin > e.KMax {
		return "kmin", fmt.Sprintf("%s is more than kmax, %s", e.KMin, e.KMax)
	}
	return "", ""
}

// validateECN checks the thresholds of a queue, of which both have to be there.
func (d decoder) validateECN(e *ECN, path string) {
	refused := false
	for _, key := range []string{"kmin", "kmax"} {
		if refused = refused || d.Refused(path+"."+key); d.Written() && !d.Has(path+"."+key) {
			d.Fail(path+"."+key, "is missing")
			refused = true
		}
	}
	if key, problem := e.Check(); key != "" && !refused {
		d.Fail(path+"."+key, "%s", problem)
	}
}

// Law returns what a queue has.
func (p *PI) Law() scheduler.PI {
	return scheduler.PI{Ref: uint32(p.Ref), A: p.A, B: p.B, Max: p.Max, Period: frame.Time(p.Period)}
}

// validatePI checks the numbers of a queue's controller, if none was refused by itself.
func (d decoder) validatePI(p *PI, path string) {
	for _, key := range section.Keys(p) {
		if d.Refused(path + "." + key) {
			return
		}
	}
	law := p.Law()
	if err := law.Validate(); err != nil {
		d.Fail(path, "%v", err)
	}
}
