package scenario

import (
	"fmt"

	"gswitch/fabric"
	"gswitch/units"
)

// Detour is a route that is not a shortest path.
type Detour struct {
	At  string `yaml:"at" need:"yes" doc:"The switch that sends so."`
	To  string `yaml:"to" need:"yes" doc:"The switch of the hosts for which it does."`
	Via string `yaml:"via" need:"yes" doc:"The neighbour that it sends by."`

	From units.Duration `yaml:"from" doc:"From when on. From the beginning if left out."`
}

// detours checks switch.detours.
func (v *validator) detours() {
	d := v.doc
	for i := range d.Switch.Detours {
		x := &d.Switch.Detours[i]
		for _, p := range [][2]string{{"at", x.At}, {"to", x.To}, {"via", x.Via}} {
			if n, ok := v.t.Lookup(p[1]); !ok || v.t.Nodes[n].Kind != fabric.Switch {
				v.sec.Fail(fmt.Sprintf("switch.detours[%d].%s", i, p[0]), "there is no switch %q", p[1])
			}
		}
	}
}
