package config

import (
	"fmt"
	"slices"

	"gswitch/frame"
	"gswitch/qcn"
	"gswitch/qcn/point"
	"gswitch/scheduler"
	"gswitch/units"
)

// config returns what a port has.
func (q *QCN) config() point.Config {
	out := point.Config{Params: qcn.Params{SetPoint: clip(q.SetPoint), Weight: 2, Sample: clip(q.Sample)}}
	if q.Weight != nil {
		out.Params.Weight = uint32(*q.Weight)
	}
	for _, i := range q.Queues {
		out.Queues |= 1 << i
	}
	return out
}

// law returns what a queue has.
func (p *PI) law() scheduler.PI {
	return scheduler.PI{Ref: clip(p.Ref), A: p.A, B: p.B, Max: p.Max, Period: frame.Time(p.Period)}
}

// clip makes a size that is too long for 32 bits one that is refused.
func clip(s units.Size) uint32 { return uint32(min(s, 1<<32-1)) }

// validateQCN checks the congestion points of a queue profile. A number that
// is left out has its default when it is used.
func (d decoder) validateQCN(s *Switch, q *QCN, path string) {
	p := q.config().Params
	if q.SetPoint == 0 {
		p.SetPoint = qcn.Default().SetPoint
	}
	if q.Sample == 0 {
		p.Sample = qcn.Default().Sample
	}
	if err := p.Validate(); err != nil && !d.Refused(path) {
		d.Fail(path, "%v", err)
	}
	d.noticesPass(s, path, "notices")
}

// noticesPass refuses that what congestion points tell could be paused.
func (d decoder) noticesPass(s *Switch, path, notices string) {
	class, ok := s.Classes.DSCP[noticeCode]
	if !ok {
		class = noticeCode / 8
	}
	if slices.Contains(s.PFC.Classes, class) && !d.Refused(path) {
		d.Fail(path, "%s travel in class %d, which is lossless: they would wait behind the congestion they tell of; take it out of pfc.classes", notices, class)
	}
}

// oneTeller refuses queues whose senders would hear of two set points.
func (d decoder) oneTeller(q *QoS, path string) {
	if q.RoCC == nil || q.QCN == nil {
		return
	}
	for i, n := range q.RoCC.Queues {
		if slices.Contains(q.QCN.Queues, n) {
			d.Fail(fmt.Sprintf("%s.rocc.queues[%d]", path, i), "queue %d is in qcn.queues, too, and senders can follow only one of the two; take it out of one of them", n)
		}
	}
}

func (d decoder) validatePI(q *Queue, path string) {
	law := q.PI.law()
	if err := law.Validate(); err != nil && !d.Refused(path+".pi") {
		d.Fail(path+".pi", "%v", err)
	}
	if q.ECN != nil {
		d.Fail(path+".pi", "marks in place of ecn; leave one of them out")
	}
}
