package scenario

import (
	"cmp"
	"fmt"

	"gswitch/fabric/workload"
	"gswitch/frame"
)

// retrievals checks an entry of kind retrievals.
func (v *validator) retrievals(key string, e *Entry) {
	if (e.Rate > 0) == (len(e.Phases) > 0) {
		v.sec.Fail(key, "wants either rate or phases")
	}
	for i, p := range e.phases() {
		if p.For <= 0 {
			v.sec.Fail(fmt.Sprintf("%s.phases[%d].for", key, i), "is not above zero; write how long the phase lasts, or give period, of which the last one takes the rest")
		}
	}
	if len(e.Responses) == 0 {
		v.sec.Fail(key+".responses", "is missing; write what the servers answer, such as [2KB, 8KB]")
	}
}

func (e *Entry) retrievals(from, to []int32, start, stop frame.Time, seed uint64) (workload.Source, error) {
	c := workload.RetrievalsConfig{From: from, To: to, Request: uint64(e.Size), Rate: e.Rate, Steps: cmp.Or(e.Steps, 1), Fanouts: e.Fanouts, Handshake: e.Handshake,
		Count: e.Count, Start: start, Stop: stop, Seed: seed}
	for _, r := range e.Responses {
		c.Responses = append(c.Responses, uint64(r))
	}
	c.Phases = e.phases()
	return source(workload.NewRetrievals(c))
}

// phases returns the phases of the entry; the last one may take the rest of the period.
func (e *Entry) phases() (v []workload.Phase) {
	left := frame.Time(e.Period)
	for i, p := range e.Phases {
		d := frame.Time(p.For)
		if d == 0 && i == len(e.Phases)-1 {
			d = left
		}
		v = append(v, workload.Phase{Rate: p.Rate, For: d})
		left -= d
	}
	return v
}

// slowRetransmit checks a transport without fast retransmit.
func (v *validator) slowRetransmit(key string, t *Transport) {
	if t.Mode != "newreno" {
		v.sec.Fail(key+".fast_retransmit", "false is for mode newreno, and this is %s", t.Mode)
	}
	if t.RTOHigh == 0 && !t.AutoRTO {
		v.sec.Fail(key+".fast_retransmit", "false without a timeout repairs no loss at all; set rto_low, the least one, and rto_high, the first one")
	}
}
