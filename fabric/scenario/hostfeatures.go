package scenario

import (
	"reflect"

	"gswitch/hostnic"
	"gswitch/section"
)

// hostFeatures are the sections of registered features of hosts.
type hostFeatures struct{}

// everyHost is what a scenario adds to the section of a feature.
type everyHost struct {
	Enabled bool `yaml:"enabled" doc:"true: every host has it."`
}

// Kinds returns the sections of the features that have one.
func (hostFeatures) Kinds() []section.Kind {
	var kinds []section.Kind
	for _, f := range hostnic.Features() {
		if f.Section != nil && !f.Daemons {
			t := section.Join(reflect.TypeFor[everyHost](), reflect.TypeOf(f.Section()).Elem())
			kinds = append(kinds, section.Kind{Key: f.Name, Doc: f.Doc, Type: t})
		}
	}
	return kinds
}

// Has reports whether a feature is enabled.
func (h *Hosts) Has(name string) bool {
	x := h.Features.Get(name)
	return x != nil && section.Parts(x)[0].(*everyHost).Enabled
}

// Options returns the options of the enabled features, for the NIC of a host with
// configuration c.
func (h *Hosts) Options(c *hostnic.Config) (o hostnic.Options, err error) {
	for _, f := range hostnic.Features() {
		if !h.Has(f.Name) {
			continue
		}
		v, err := section.Parts(h.Features.Get(f.Name))[1].(hostnic.Section).Options(c)
		if err != nil {
			return nil, err
		}
		o = o.With(f.Name, v)
	}
	return o, nil
}

// hostFeatures checks the sections of features of hosts, each by itself.
func (v *validator) hostFeatures() {
	for _, f := range hostnic.Features() {
		x := v.doc.Hosts.Features.Get(f.Name)
		if x == nil {
			continue
		}
		c := hostnic.Config{Rate: v.t.Links[0].Rate, Payload: int(v.doc.Hosts.Payload)}
		if _, err := section.Parts(x)[1].(hostnic.Section).Options(&c); err != nil {
			v.sec.Fail("hosts."+f.Name, "%v", err)
		}
	}
}
