package config

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gswitch/frame"
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

// switchFeatures are the sections of registered features in a switch.
type switchFeatures struct{}

// Kinds returns a section for each feature that has one.
func (switchFeatures) Kinds() []section.Kind {
	var kinds []section.Kind
	for _, f := range vswitch.Features() {
		if f.Whole != nil {
			kinds = append(kinds, section.Kind{Key: f.Name, Doc: f.Doc, Type: reflect.TypeOf(f.Whole()).Elem()})
		}
	}
	return kinds
}

// wholeOptions returns what a switch has of features, of a document with its
// defaults, besides what cfg has already. refused is called with what is wrong, if
// anything.
func (s *Switch) wholeOptions(cfg *vswitch.Config, refused func(key string, err error)) vswitch.Options {
	o := cfg.Options
	for _, f := range vswitch.Features() {
		sec, on := s.Features.Get(f.Name).(vswitch.WholeSection)
		if !on {
			continue
		}
		v, err := sec.Options(cfg)
		if err != nil {
			key := f.Name
			if at := new(vswitch.KeyError); errors.As(err, &at) {
				key, err = key+"."+at.Key, at.Err
			}
			refused(key, err)
			continue
		}
		o = o.With(f.Name, v)
	}
	return o
}

// Timing reports whether a feature of the switch wants frames of PTP with stamps.
func (s *Switch) Timing() bool {
	return slices.ContainsFunc(vswitch.Features(), func(f *vswitch.Feature) bool { return f.Stamps && s.Features.Get(f.Name) != nil })
}

// validateWhole checks what a switch has of features as a whole.
func (d decoder) validateWhole(s *Switch, workers int, path string) {
	if !slices.ContainsFunc(vswitch.Features(), func(f *vswitch.Feature) bool { return s.Features.Get(f.Name) != nil }) {
		return
	}
	s = section.Clone(s)
	section.Fill(s)
	if l := &s.Buffer.Lossless; l.Response == 0 {
		l.Response = units.Duration(spinning)
	}
	if len(s.Classes.PCP) != 8 { // left out, or refused
		s.Classes.PCP = make([]int, 8)
	}
	if len(s.Classes.Queue) != 8 {
		s.Classes.Queue = s.queues()
	}
	cfg := &vswitch.Config{ID: uint16(s.ID), Loopbacks: s.Loopback, Class: s.Classes.maps(), PFC: s.PFC.config(), Buffer: s.Buffer.config()}
	for i := range s.Ports {
		p := &s.Ports[i]
		c := vswitch.PortConfig{Name: p.name(), Addresses: p.Addresses, Worker: p.worker(i, workers), MTU: p.MTU, CableDelay: frame.Time(p.Delay), Scheduler: p.link()}
		if s.face(p); p.Watchdog != nil {
			dog := p.Watchdog.config()
			c.Watchdog = &dog
		}
		for _, q := range s.QoS[p.QoS].Queues {
			c.Scheduler.Queues[q.Queue&7].Weight = uint32(q.Weight)
		}
		cfg.Ports = append(cfg.Ports, c)
	}
	for _, f := range vswitch.Features() {
		sec := s.Features.Get(f.Name)
		if sec == nil || f.Whole == nil {
			continue
		}
		key := path + "." + f.Name
		has := func(k string) bool { return s.Features.Get(k) != nil || cfg.Has(k) }
		if x := vswitch.Excluded(vswitch.OneSwitch, f.Name, has); x != nil {
			d.Fail(key, "%s", x.Beside())
		}
		if p, is := sec.(vswitch.Paired); is {
			for i, name := range p.Neighbors() {
				d.havePort(s, fmt.Sprintf("%s.ports[%d]", key, i), name)
			}
		}
	}
	s.wholeOptions(cfg, func(key string, err error) {
		if key = path + "." + key; !d.Refused(key) {
			d.Fail(key, "%v", err)
		}
	})
}

// queues returns which queue each class has where the document does not say it.
func (s *Switch) queues() []int {
	v := []int{0, 1, 2, 3, 4, 5, 6, 7}
	for _, f := range vswitch.Features() {
		if r, is := s.Features.Get(f.Name).(vswitch.Reserver); is {
			v[r.Reserves()&7] = 7
		}
	}
	return v
}

// paired reports whether a feature names a port as one whose neighbour is a switch
// that has it, too.
func (s *Switch) paired(port string) bool {
	return slices.ContainsFunc(vswitch.Features(), func(f *vswitch.Feature) bool {
		p, is := s.Features.Get(f.Name).(vswitch.Paired)
		return is && slices.Contains(p.Neighbors(), port)
	})
}

// resolveWhole writes out what of features of the switch as a whole follows from its
// ports.
func (s *Switch) resolveWhole() {
	cfg := &vswitch.Config{}
	for i := range s.Ports {
		p := &s.Ports[i]
		cfg.Ports = append(cfg.Ports, vswitch.PortConfig{Name: p.name(), MTU: p.MTU, Scheduler: p.link()})
	}
	for _, f := range vswitch.Features() {
		if r, is := s.Features.Get(f.Name).(vswitch.Resolver); is {
			r.Resolve(cfg)
		}
	}
}

// warnWhole says what of a resolved switch's features as a whole is seldom meant.
func (d decoder) warnWhole(s *Switch, path string) {
	for _, f := range vswitch.Features() {
		r, is := s.Features.Get(f.Name).(vswitch.Resolver)
		if !is {
			continue
		}
		if at := new(vswitch.KeyError); errors.As(r.Warn(), &at) {
			d.Fail(path+"."+f.Name+"."+at.Key, "%v", at.Err)
		}
	}
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

// validateFeatures checks what ports get from a queue profile. What several ports
// have in common is said once.
func (d decoder) validateFeatures(s *Switch, profile, path string) {
	q := QoS{Features: s.QoS[profile].Features}
	q = *section.Clone(&q)
	section.Fill(&q)
	rates, at := s.rates(profile)
	var on [8][]string // the features of each queue
	for _, f := range vswitch.Features() {
		queues, sec := q.feature(f)
		key := path + "." + f.Name
		if sec == nil {
			continue
		}
		if all := s.using(profile); len(all) > 0 {
			d.excluded(s, key, f.Name, true)
			if f.Notices {
				d.noticesPass(s, key, "notices at "+ports(all))
			}
		}
		for i, n := range queues.Queues {
			has := func(k string) bool { return k == f.Name || slices.Contains(on[n&7], k) }
			if x := vswitch.Excluded(vswitch.OneQueue, f.Name, has); x != nil {
				d.Fail(fmt.Sprintf("%s.queues[%d]", key, i), "in queue %d it %s", n, x.Beside())
			}
			on[n&7] = append(on[n&7], f.Name)
		}
		for _, rate := range rates {
			where := ""
			switch {
			case rate == 0 && !d.OK():
				continue // its key may be among those that are misspelt
			case rate == 0:
				where = "at " + ports(at[rate]) + ": "
			case len(at) > 0:
				where = "at " + ports(at[rate]) + " of " + rate.String() + ": "
			}
			_, err := sec.Options(queues.bits(), uint64(rate))
			if c, ok := sec.(vswitch.Checked); ok && err == nil {
				err = c.CheckRate(uint64(rate))
			}
			if err != nil && !d.Refused(key) {
				d.Fail(key, "%s%v", where, err)
			} else if h, ok := sec.(vswitch.Holder); ok && err == nil {
				d.roomForDepth(s, queues.Queues, h.Depth(uint64(rate)), key, where)
			}
		}
	}
}

// rates returns those of the ports that use a profile, with their names. One
// that no port uses must suit a fast one.
func (s *Switch) rates(profile string) (rates []units.Rate, at map[units.Rate][]string) {
	at = map[units.Rate][]string{}
	for i := range s.Ports {
		p := &s.Ports[i]
		if p.QoS != profile {
			continue
		}
		if at[p.Rate] == nil {
			rates = append(rates, p.Rate)
		}
		at[p.Rate] = append(at[p.Rate], p.name())
	}
	if rates == nil {
		rates = []units.Rate{100 * units.Gbps}
	}
	return rates, at
}

// using names the ports that use a profile.
func (s *Switch) using(profile string) (names []string) {
	for i := range s.Ports {
		if p := &s.Ports[i]; p.QoS == profile {
			names = append(names, p.name())
		}
	}
	return names
}

// ports names ports in a sentence.
func ports(names []string) string {
	if len(names) == 1 {
		return "port " + names[0]
	}
	return "ports " + strings.Join(names, ", ")
}

// roomForDepth refuses a queue that is full before it is as deep as a feature
// wants it: senders would be asked to speed up while their frames are dropped. A
// lossy queue gets at most alpha times what it leaves free, beyond its reserve;
// lossless ones have no limit at egress.
func (d decoder) roomForDepth(s *Switch, queues []int, depth uint64, path, where string) {
	b := &s.Buffer
	alpha := cmp.Or(b.Alpha, 1) // its default
	for _, q := range queues {
		share := float64(b.Reserve) + alpha*float64(b.Size)/(1+alpha)
		switch {
		case d.Refused(path):
			return
		case slices.Contains(s.PFC.Classes, q):
		case b.Limit > 0 && uint64(b.Limit)+uint64(b.Reserve) < depth:
			d.Fail(path, "%squeue %d is to be held at %s, and buffer.limit drops beyond %s: senders would only be asked to speed up; hold it at less or raise the limit", where, q, units.Size(depth), b.Limit)
			return
		case b.Size > 0 && share < float64(depth):
			d.Fail(path, "%squeue %d is to be held at %s, and of a buffer of %s with alpha %g it gets no more than %s: senders would only be asked to speed up; hold it at less or raise buffer.size", where, q, units.Size(depth), b.Size, alpha, units.Size(share))
			return
		}
	}
}

// worker returns which of so many workers a port belongs to, the i-th of its switch.
func (p *Port) worker(i, workers int) int {
	if len(p.Workers) > 0 {
		return p.Workers[0]
	}
	return i % max(workers, 1)
}

// noticeCode is the code point of notices, CS7.
const noticeCode = 56

// noticesPass refuses that notices of congestion points could be paused.
func (d decoder) noticesPass(s *Switch, path, notices string) {
	class, ok := s.Classes.DSCP[noticeCode]
	if !ok {
		class = noticeCode / 8
	}
	if slices.Contains(s.PFC.Classes, class) && !d.Refused(path) {
		d.Fail(path, "%s travel in class %d, which is lossless: they would wait behind the congestion they report; take it out of pfc.classes", notices, class)
	}
}
