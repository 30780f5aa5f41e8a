package control

import (
	"fmt"
	"slices"
	"strings"

	"gswitch/frame"
	"gswitch/vswitch"
)

// Triggers say at which events of a switch what is kept of its recording is saved.
type Triggers struct {
	reasons [frame.NumReasons]bool // drops
	storm   bool                   // the watchdog of flow control finds a pause that does not end
}

// ParseTriggers reads triggers: drop (of any reason that is a loss), drop:REASON,
// pause-storm.
func ParseTriggers(words []string) (t Triggers, err error) {
	for _, word := range words {
		switch what, name, named := strings.Cut(word, ":"); {
		case word == "pause-storm":
			t.storm = true
		case word == "drop":
			for r := range frame.NumReasons {
				t.reasons[r] = t.reasons[r] || r != frame.Keep && r.Loss()
			}
		case what == "drop" && named:
			r, err := frame.ParseReason(name)
			if err != nil {
				return t, fmt.Errorf("trigger %s: %w", word, err)
			}
			t.reasons[r] = true
		default:
			return t, fmt.Errorf("there is no trigger %q; there are drop, drop:REASON and pause-storm", word)
		}
	}
	return t, nil
}

// watch returns a function that the worker of a node calls between two steps, and that
// returns what has happened since it was last called, "" if nothing has.
func (t Triggers) watch(n *vswitch.Node) func() string {
	var before [frame.NumReasons]uint64
	var storms [vswitch.MaxPorts]uint8
	first := true
	return func() (why string) {
		if !t.storm && !slices.Contains(t.reasons[:], true) {
			return ""
		}
		drops := n.SelfDrops()
		for p := range uint16(vswitch.MaxPorts) {
			if !n.HasPort(p) {
				break
			}
			n.AddDrops(p, &drops)
			if t.storm && n.Owns(p) {
				s := n.PFC(p).Storms()
				if s&^storms[p] != 0 && !first {
					why = "pause-storm"
				}
				storms[p] = s
			}
		}
		for r, k := range drops {
			if t.reasons[r] && k > before[r] && !first {
				why = "drop:" + frame.Reason(r).String()
			}
		}
		before, first = drops, false
		return why
	}
}
