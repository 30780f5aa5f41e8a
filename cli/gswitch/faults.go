package gswitch

import (
	"fmt"
	"slices"
	"strings"

	"gswitch/control/api"
)

// faultWords reads what follows the port in "set port PORT loss 1% burst 8".
func faultWords(w []string) (map[string]string, error) {
	m := map[string]string{}
	for i := 0; i < len(w); i += 2 {
		key := w[i]
		switch key {
		case "rate", "enable", "disable":
			return nil, fmt.Errorf("%s is an option of the port, no fault: write --%s", key, key)
		}
		if key == "none" && i+1 == len(w) {
			m[key] = ""
			break
		}
		if key == "none" {
			return nil, fmt.Errorf("none takes no value and stands last: it takes all faults away that were there before")
		}
		if i+1 == len(w) {
			return nil, fmt.Errorf("%s wants a value, such as loss 1%%, or none to take it away", key)
		}
		if _, twice := m[key]; twice {
			return nil, fmt.Errorf("%s is given twice", key)
		}
		m[key] = w[i+1]
	}
	return m, nil
}

// printFaults prints the configured faults of a port and what they did.
func printFaults(field func(name, format string, args ...any), f *api.Faults) {
	if f == nil {
		return
	}
	set := f.Set
	if set == "" {
		set = "none now"
	}
	field("faults", "%s", set)
	var lost []string
	for reason, n := range f.Lost {
		lost = append(lost, fmt.Sprintf("%s %d", reason, n))
	}
	slices.Sort(lost)
	if f.RxLost > 0 {
		lost = append(lost, fmt.Sprintf("link-rx-cut %d", f.RxLost))
	}
	if len(lost) > 0 {
		field("", "lost: %s", strings.Join(lost, ", "))
	}
	field("", "held back %d, sent twice %d (no memory for %d), bits inverted in %d", f.Held, f.Duplicated, f.Uncopied, f.Flipped)
	field("", "to the device %d, under way %d", f.Taken, f.Waiting)
}
