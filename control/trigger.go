package control

import (
	"fmt"
	"slices"
	"strings"

	"gswitch/frame"
	"gswitch/vswitch"
)

// Triggers say at which events of a node what is kept of its recording is saved.
type Triggers struct {
	reasons [frame.NumReasons]bool // drops
	storm   bool                   // the watchdog of flow control finds a pause that does not end
	timeout bool                   // a retransmission timer runs out
}

// SwitchTriggers and HostTriggers are what ParseTriggers and ParseHostTriggers read: drop is
// one of any reason that is a loss, timeout a retransmission timeout.
var (
	SwitchTriggers = []string{"drop", "drop:REASON", "pause-storm"}
	HostTriggers   = []string{"drop", "drop:REASON", "timeout"}
)

// ParseTriggers reads triggers of switches.
func ParseTriggers(words []string) (Triggers, error) { return parseTriggers(words, SwitchTriggers) }

// ParseHostTriggers reads triggers of hosts.
func ParseHostTriggers(words []string) (Triggers, error) { return parseTriggers(words, HostTriggers) }

func parseTriggers(words, known []string) (t Triggers, err error) {
	for _, word := range words {
		switch what, name, named := strings.Cut(word, ":"); {
		case what == "drop" && named:
			r, err := frame.ParseReason(name)
			if err != nil {
				return t, fmt.Errorf("trigger %s: %w", word, err)
			}
			t.reasons[r] = true
		case !slices.Contains(known, word):
			return t, fmt.Errorf("there is no trigger %q; there are %s", word, strings.Join(known, ", "))
		case word == "drop":
			for r := range frame.NumReasons {
				t.reasons[r] = t.reasons[r] || r != frame.Keep && r.Loss()
			}
		case word == "pause-storm":
			t.storm = true
		case word == "timeout":
			t.timeout = true
		}
	}
	return t, nil
}

// dropped says of which reason there are more drops than before that ask for a file, "" if
// there are none.
func (t *Triggers) dropped(before, now *[frame.NumReasons]uint64) (why string) {
	for r, k := range now {
		if t.reasons[r] && k > before[r] {
			why = "drop:" + frame.Reason(r).String()
		}
	}
	return why
}

// WatchHost returns a function that the worker of a host calls between two steps, and that
// returns what has happened since it was last called, "" if nothing has. It reads the
// host's counters.
func (t Triggers) WatchHost(drops *[frame.NumReasons]uint64, timeouts *uint64) func() string {
	var before [frame.NumReasons]uint64
	var expired uint64
	first := true
	return func() (why string) {
		if !first {
			if why = t.dropped(&before, drops); t.timeout && *timeouts > expired {
				why = "timeout"
			}
		}
		before, expired, first = *drops, *timeouts, false
		return why
	}
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
		if lost := t.dropped(&before, &drops); lost != "" && !first {
			why = lost
		}
		before, first = drops, false
		return why
	}
}
