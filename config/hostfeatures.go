package config

import (
	"reflect"

	"gswitch/hostnic"
	"gswitch/section"
	_ "gswitch/tcp/endpoint" // a section of hosts
)

// hostFeatures are the sections of registered features of hosts: one that is
// there turns its feature on.
type hostFeatures struct{}

// Kinds returns a section for each feature that has one.
func (hostFeatures) Kinds() []section.Kind {
	var kinds []section.Kind
	for _, f := range hostnic.Features() {
		if f.Section != nil {
			kinds = append(kinds, section.Kind{Key: f.Name, Doc: f.Doc, Type: reflect.TypeOf(f.Section()).Elem()})
		}
	}
	return kinds
}

// Timing reports whether a feature of the host wants frames of PTP with stamps.
func (h *Host) Timing() bool {
	for _, f := range hostnic.Features() {
		if f.Stamps && h.Features.Get(f.Name) != nil {
			return true
		}
	}
	return false
}

// Before is how many bytes features put before a frame at most.
func (h *Host) Before() (n int) {
	for _, f := range hostnic.Features() {
		if h.Features.Get(f.Name) != nil {
			n += f.Before
		}
	}
	return n
}

// options returns those of features for a NIC that is configured otherwise. What
// stands against one goes to refused, by the name of the feature.
func (h *Host) options(c *hostnic.Config, refused func(name string, err error)) (o hostnic.Options) {
	for _, f := range hostnic.Features() {
		x := h.Features.Get(f.Name)
		if x == nil {
			continue
		}
		v, err := x.(hostnic.Section).Options(c)
		if err != nil {
			refused(f.Name, err)
			continue
		}
		o = o.With(f.Name, v)
	}
	return o
}
