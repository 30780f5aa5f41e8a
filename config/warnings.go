package config

import (
	"fmt"
	"slices"

	"gswitch/section"
	"gswitch/vswitch"
)

// Warnings returns what in a document that Parse accepts does nothing, and is
// likely meant to do something, at the places where it stands.
func Warnings(file string, data []byte) section.Errors {
	c := new(Config)
	d := decoder{section.Parse(file, data, c)}
	if !d.OK() {
		return nil // they are more than warnings
	}
	resolved := c.Resolved()
	for i := range c.Switches {
		s, path := &c.Switches[i], fmt.Sprintf("switches[%d]", i)
		for _, name := range keys(s.QoS) {
			if !slices.ContainsFunc(s.Ports, func(p Port) bool { return p.QoS == name }) {
				d.Fail(path+".qos."+name, "no port uses this profile; name it in ports[].qos, or take it out")
			}
		}
		d.warnWhole(&resolved.Switches[i], path)
		d.warnLossy(s, path)
		for _, f := range vswitch.Features() {
			if f.InputQueued && s.Features.Get(f.Name) != nil && s.Buffer.Size != 0 {
				d.Fail(path+".buffer.size", "is for copies and what the switch itself sends: other frames wait in the queues of %s", f.Name)
			}
		}
	}
	for _, s := range resolved.Shortages() {
		d.Fail(s.Path, "%v", s.Err)
	}
	errs, _ := d.Err().(section.Errors)
	return errs
}

// warnLossy warns of keys about pauses in a switch that neither takes nor sends any.
func (d decoder) warnLossy(s *Switch, path string) {
	if len(s.PFC.Classes) > 0 || s.PFC.Pause {
		return
	}
	const why = "does nothing without lossless classes: name them in pfc.classes, or take it out"
	if s.PFC.Response != 0 {
		d.Fail(path+".pfc.response", why)
	}
	if s.PFC.ErrDisable != 0 {
		d.Fail(path+".pfc.err_disable", why)
	}
	for i := range s.Ports {
		if s.Ports[i].Lossless != nil {
			d.Fail(fmt.Sprintf("%s.ports[%d].lossless", path, i), why)
		}
	}
}
