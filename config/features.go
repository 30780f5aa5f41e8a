package config

import (
	"fmt"
	"reflect"
	"slices"

	"gswitch/section"
	"gswitch/units"
	"gswitch/vswitch"
)

// queueFeatures are the sections of registered features in a queue profile.
type queueFeatures struct{}

// featureQueues is what a profile adds to the section of a feature.
type featureQueues struct {
	Queues []int `yaml:"queues" need:"yes" range:"0,7" doc:"The queues that do."`
}

// Kinds returns a section for each feature that has one.
func (queueFeatures) Kinds() []section.Kind {
	var kinds []section.Kind
	for _, f := range vswitch.Features() {
		if f.Section != nil {
			t := section.Join(reflect.TypeFor[featureQueues](), reflect.TypeOf(f.Section()).Elem())
			kinds = append(kinds, section.Kind{Key: f.Name, Doc: f.Doc, Type: t})
		}
	}
	return kinds
}

// feature returns which queues of a profile have a feature, and its section; nil
// if none have it.
func (q *QoS) feature(f *vswitch.Feature) (*featureQueues, vswitch.Section) {
	x := q.Features.Get(f.Name)
	if x == nil {
		return nil, nil
	}
	parts := section.Parts(x)
	return parts[0].(*featureQueues), parts[1].(vswitch.Section)
}

// bits returns numbers of queues as a bitmap.
func (f *featureQueues) bits() (b uint8) {
	for _, q := range f.Queues {
		b |= 1 << q
	}
	return b
}

// options returns what a port of a resolved document has of features.
func (q *QoS) options(rate uint64) (o vswitch.Options, err error) {
	for _, f := range vswitch.Features() {
		queues, s := q.feature(f)
		if s == nil {
			continue
		}
		v, err := s.Options(queues.bits(), rate)
		if err != nil {
			return nil, err
		}
		o = o.With(f.Name, v)
	}
	return o, nil
}

// validateFeatures checks what ports get from a queue profile.
func (d decoder) validateFeatures(s *Switch, profile, path string) {
	q := QoS{Features: s.QoS[profile].Features}
	q = *section.Clone(&q)
	section.Fill(&q)
	for _, f := range vswitch.Features() {
		queues, sec := q.feature(f)
		if sec == nil || d.Refused(path+"."+f.Name) {
			continue
		}
		if f.Notices {
			d.noticesPass(s, path+"."+f.Name, "notices")
		}
		for _, rate := range s.rates(profile) {
			if _, err := sec.Options(queues.bits(), uint64(rate)); err != nil {
				d.Fail(path+"."+f.Name, "%v", err)
				break
			}
		}
	}
}

// rates returns those of the ports that use a profile. One that no port uses
// must suit a fast one.
func (s *Switch) rates(profile string) (v []units.Rate) {
	for i := range s.Ports {
		if p := &s.Ports[i]; p.QoS == profile {
			v = append(v, p.Rate)
		}
	}
	if v == nil {
		return []units.Rate{100 * units.Gbps}
	}
	slices.Sort(v)
	return slices.Compact(v)
}

// oneTeller refuses queues whose senders would hear of two set points.
func (d decoder) oneTeller(q *QoS, path string) {
	for _, f := range vswitch.Features() {
		queues, _ := q.feature(f)
		if queues == nil || q.RoCC == nil || f.Tells == "" {
			continue
		}
		for i, n := range q.RoCC.Queues {
			if slices.Contains(queues.Queues, n) {
				d.Fail(fmt.Sprintf("%s.rocc.queues[%d]", path, i), "queue %d is in %s.queues, too, and senders can follow only one of the two; take it out of one of them", n, f.Name)
			}
		}
	}
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
