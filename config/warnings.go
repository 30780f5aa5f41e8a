package config

import (
	"fmt"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Warnings returns what in a document that Parse accepts does nothing, and is
// likely meant to do something, at the places where it stands.
func Warnings(file string, data []byte) Errors {
	d := decoder{file: file, at: map[string]*yaml.Node{}}
	c := new(Config)
	if root := d.parse(data); root != nil {
		d.value(root, reflect.ValueOf(c).Elem(), "", "", 0)
	}
	if len(d.errs) > 0 {
		return nil // they are more than warnings
	}
	for i := range c.Switches {
		s, path := &c.Switches[i], fmt.Sprintf("switches[%d]", i)
		for _, name := range keys(s.QoS) {
			if !slices.ContainsFunc(s.Ports, func(p Port) bool { return p.QoS == name }) {
				d.failAt(path+".qos."+name, "no port uses this profile; name it in ports[].qos, or take it out")
			}
		}
		if s.Crossbar != nil && s.Buffer.Size != 0 {
			d.failAt(path+".buffer.size", "is for what the switch itself sends alone: frames wait in the queues of the crossbar, see crossbar.ingress and crossbar.egress")
		}
	}
	d.errs.sort()
	return d.errs
}
