package scenario

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"

	"gswitch/fabric"
	"gswitch/feature"
	"gswitch/pfc"
	"gswitch/scheduler"
	"gswitch/section"
	"gswitch/units"
	"gswitch/vswitch"
	"gswitch/wire"
)

// queueFeatures are the sections of registered features of switches.
type queueFeatures struct{}

// featureClasses are the keys that a scenario adds to a feature's section.
type featureClasses struct {
	Enabled bool  `yaml:"enabled" doc:"true: every egress queue of the classes has it."`
	Classes []int `yaml:"classes" range:"0,7" doc:"Classes whose queues do. Those of the data if left out."`
}

// Kinds returns the sections of the features that have one.
func (queueFeatures) Kinds() []section.Kind {
	var kinds []section.Kind
	for _, f := range vswitch.Features() {
		var t reflect.Type
		switch {
		case f.Daemons:
			continue
		case f.Section != nil:
			t = section.Join(reflect.TypeFor[featureClasses](), reflect.TypeOf(f.Section()).Elem())
		case f.Whole != nil:
			t = section.Join(reflect.TypeFor[featureWhole](), reflect.TypeOf(whole(f)).Elem())
		default:
			continue
		}
		kinds = append(kinds, section.Kind{Key: f.Name, Doc: f.Doc, Type: t})
	}
	return kinds
}

// featureWhole are the keys that a scenario adds to the section of a feature of the
// switch as a whole.
type featureWhole struct {
	Enabled bool `yaml:"enabled" doc:"true: every switch has it."`
}

// whole makes the section of a feature of the switch as a whole in a scenario.
func whole(f *vswitch.Feature) vswitch.WholeSection {
	if f.Virtual != nil {
		return f.Virtual()
	}
	return f.Whole()
}

// Wholes returns the enabled features of switches as a whole.
func (d *Document) Wholes() (v []Whole) {
	for _, f := range vswitch.Features() {
		x := d.Switch.Features.Get(f.Name)
		if f.Whole == nil || x == nil || f.Daemons {
			continue
		}
		parts := section.Parts(x)
		if parts[0].(*featureWhole).Enabled {
			v = append(v, Whole{f, parts[1].(vswitch.WholeSection)})
		}
	}
	return v
}

// Whole is a registered feature of the switch as a whole that a scenario enables.
type Whole struct {
	*vswitch.Feature
	Section vswitch.WholeSection
}

// Feature is a registered feature of switches that a scenario enables.
type Feature struct {
	*vswitch.Feature
	Classes []int // of the egress queues that use it
	Section vswitch.Section
}

// Features returns the enabled features of queues.
func (d *Document) Features() (v []Feature) {
	for _, f := range vswitch.Features() {
		if x := d.Switch.Features.Get(f.Name); x != nil && f.Section != nil {
			parts := section.Parts(x)
			if place := parts[0].(*featureClasses); place.Enabled {
				v = append(v, Feature{f, or(place.Classes, d.Hosts.Class), parts[1].(vswitch.Section)})
			}
		}
	}
	return v
}

// featureFor finds a feature by the signal that it sends to hosts.
func featureFor(needs feature.Signals) *vswitch.Feature {
	i := slices.IndexFunc(vswitch.Features(), func(f *vswitch.Feature) bool { return f.Signals == needs && f.Section != nil })
	if i < 0 || needs == 0 {
		return nil
	}
	return vswitch.Features()[i]
}

// features checks the sections of features against the links of the network.
func (v *validator) features() {
	var rates []uint64
	for i := range v.t.Links {
		rates = append(rates, v.t.Links[i].Rate)
	}
	slices.Sort(rates)
	rates = slices.Compact(rates) // once: it clears what it removes
	for _, f := range v.doc.Features() {
		for _, rate := range rates {
			if _, err := f.Section.Options(0xff, rate); err != nil {
				v.sec.Fail("switch."+f.Name, "with links of %v: %v", units.Rate(rate), err)
				break
			}
		}
	}
}

// wholes checks the sections of features of switches as a whole.
func (v *validator) wholes() {
	cfg := &vswitch.Config{ID: 1, Buffer: vswitch.BufferConfig{XOFF: uint32(v.doc.Switch.Buffer.XOFF)}, Class: vswitch.DefaultClassMaps(), Loopbacks: []netip.Addr{netip.AddrFrom4([4]byte{10, 192, 0, 1})}}
	if v.doc.PFC.Enabled {
		cfg.PFC.Mode = pfc.PFC
		for _, c := range or(v.doc.PFC.Classes, v.doc.Hosts.Class) {
			cfg.PFC.Classes |= 1 << c
		}
	}
	links := v.between()
	for _, f := range v.doc.Wholes() {
		if r, is := f.Section.(vswitch.Resolver); is {
			r.Resolve(links)
		}
		if _, err := f.Section.Options(cfg); err != nil {
			key := "switch." + f.Name
			if at := new(vswitch.KeyError); errors.As(err, &at) {
				key, err = key+"."+at.Key, at.Err
			}
			v.sec.Fail(key, "%v", err)
		}
	}
}

// between returns a configuration with a port for each link between two switches, as
// vswitch.Resolver needs them.
func (v *validator) between() *vswitch.Config {
	const headers = 100 // of a full data frame, including link overhead
	cfg := &vswitch.Config{}
	for i := range v.t.Links {
		if l := &v.t.Links[i]; v.t.Nodes[l.A.Node].Kind == fabric.Switch && v.t.Nodes[l.B.Node].Kind == fabric.Switch {
			p := vswitch.PortConfig{MTU: int(v.doc.Hosts.Payload) + headers - wire.EthernetLen - scheduler.EthernetOverhead}
			p.Scheduler.Rate = l.Rate
			cfg.Ports = append(cfg.Ports, p)
		}
	}
	return cfg
}

// hasty returns warnings about settings of features of switches as a whole that are
// seldom meant.
func (d *Document) hasty() (v []string) {
	for _, f := range d.Wholes() {
		if r, is := f.Section.(vswitch.Resolver); is {
			if at := new(vswitch.KeyError); errors.As(r.Warn(), &at) {
				v = append(v, fmt.Sprintf("switch.%s.%s: %v", f.Name, at.Key, at.Err))
			}
		}
	}
	return v
}

// cramped reports features whose queue reference exceeds what a queue can hold, so that
// senders would only be asked to speed up.
func (d *Document) cramped() (v []string) {
	limit, lossless := d.Switch.Buffer.QueueLimit, or(d.PFC.Classes, d.Hosts.Class)
	if limit == 0 {
		return nil
	}
	for _, f := range d.Features() {
		h, holds := f.Section.(vswitch.Holder)
		lossy := !d.PFC.Enabled || slices.ContainsFunc(f.Classes, func(c int) bool { return !slices.Contains(lossless, c) })
		if !holds || !lossy {
			continue
		}
		// Faster ports have larger references: take the smallest one.
		if depth := units.Size(h.Depth(40e9)); limit < depth {
			v = append(v, fmt.Sprintf("switch.buffer.queue_limit: queues are to be held at %s by switch.%s, and drop beyond %s: senders would only be asked to speed up; hold them at less or raise the limit", depth, f.Name, limit))
		}
	}
	return v
}

// or returns the classes or, if there are none, the class of data.
func or(classes []int, data int) []int {
	if len(classes) == 0 {
		return []int{data}
	}
	return classes
}
