package pauses

import (
	"fmt"
	"strings"

	"gswitch/frame"
)

// Ring is a circle in a trace: ports whose pauses were not over when it was
// looked at, each because of frames for another one of them.
type Ring struct {
	Class int     `json:"class"`
	Ports []End   `json:"ports"`         // each waits for the next, or for another one of them
	Since float64 `json:"since_seconds"` // all of them have been paused since
	For   float64 `json:"for_seconds"`   // until it was looked at
	// Deadlock: for longer than a pause lasts that ends.
	Deadlock bool `json:"deadlock"`
}

// What a run of a scenario and a daemon take for a deadlock, in seconds.
const (
	longInScenarios = 500e-6
	longInFabrics   = 200e-3
)

// rings finds the circles. A pause says for which egress ports it was requested:
// if one of these is paused for its part, it waits for that one.
func (t *Trace) rings() (found []Ring) {
	// A fabric's times are those before now.
	long, fabric := longInScenarios, t.To == 0 && t.From <= 0
	if fabric {
		long = longInFabrics
	}
	var waits []Wait
	behind := map[End]End{} // the other ends of ports
	for i := range t.Pauses {
		p := &t.Pauses[i]
		if !p.Lasts {
			continue
		}
		behind[p.Of] = p.By
		w := Wait{At: p.Of, Class: p.Class, Since: frame.Time(p.From * 1e9)}
		for j := range t.Pauses {
			q := &t.Pauses[j]
			if !q.Lasts || q.Class != p.Class || q.By.Node != p.Of.Node {
				continue
			}
			for _, c := range q.Causes {
				if c.Port.same(p.Of) {
					w.From = append(w.From, q.By.Port)
				}
			}
		}
		waits = append(waits, w)
	}
	for _, c := range Circles(waits, func(e End) End { return behind[e] }) {
		r := Ring{Class: c.Class, Ports: c.Ports, Since: c.Since.Seconds()}
		r.For = max(0, t.To-r.Since)
		r.Deadlock = r.For >= long
		found = append(found, r)
	}
	return found
}

func (r *Ring) String() string {
	var names []string
	for _, p := range r.Ports {
		names = append(names, p.String())
	}
	word := "A CIRCLE that may still end"
	if r.Deadlock {
		word = "DEADLOCK"
	}
	return fmt.Sprintf("%s, class %d: %s wait for each other in a circle, all since %s, for %s", word, r.Class, strings.Join(names, ", "), Seconds(r.Since), Seconds(r.For))
}

// within is the circle that a port is part of.
func (t *Trace) within(at End, class int) bool {
	for i := range t.Circles {
		for _, p := range t.Circles[i].Ports {
			if p.same(at) && t.Circles[i].Class == class {
				return true
			}
		}
	}
	return false
}
