package control

import (
	"fmt"
	"slices"
	"strings"

	"gswitch/frame"
	"gswitch/vswitch"
)

// Triggers are the events of a node that cause its recording to be saved.
type Triggers struct {
	reasons [frame.NumReasons]bool // drops
	storm   bool                   // the PFC watchdog detects a pause that does not end
	timeout bool                   // a retransmission timer expires
}

// SwitchTriggers and HostTriggers are the words that ParseTriggers and ParseHostTriggers
// accept: drop is any drop that is a loss, timeout a retransmission timeout.
var (
	SwitchTriggers = []string{"drop", "drop:REASON", "pause-storm"}
	HostTriggers   = []string{"drop", "drop:REASON", "timeout"}
)

// ParseTriggers parses triggers of switches.
func ParseTriggers(words []string) (Triggers, error) { return parseTriggers(words, SwitchTriggers) }

// ParseHostTriggers parses triggers of hosts.
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

// dropped names a reason that triggers a save and has more drops than before, "" if there
// is none.
func (t *Triggers) dropped(before, now *[frame.NumReasons]uint64) (why string) {
	for r, k := range now {
		if t.reasons[r] && k > before[r] {
			why = "drop:" + frame.Reason(r).String()
		}
	}
	return why
}

// WatchHost returns a function that the worker of a host calls between two steps. It
// returns what has happened since the last call, or "". It reads the host's counters.
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

// watch returns a function that the worker of a node calls between two steps. It returns
// what has happened since the last call, or "".
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
