package vswitch

import (
	"fmt"

	"gswitch/scheduler"
)

// Exclusion is a pair of which a switch can have only one, given by their keys in
// documents: for features, their names.
type Exclusion struct {
	A, B string
	Why  string // the reason against A, as a clause about B
}

// Beside returns why A is not possible.
func (x *Exclusion) Beside() string {
	return fmt.Sprintf("cannot stand beside %s, %s; take one of the two out", x.B, x.Why)
}

// exclusions are the registered ones.
var exclusions []Exclusion

// Exclude registers exclusions. The package that lists the systems of a program calls it
// when it is initialized.
func Exclude(v ...Exclusion) { exclusions = append(exclusions, v...) }

// Excluded returns the first exclusion that a set of keys violates, nil if there is none.
// If key is not empty, only exclusions with key as A count.
func Excluded(key string, has func(key string) bool) *Exclusion {
	for i := range exclusions {
		if x := &exclusions[i]; (key == "" || key == x.A) && has(x.A) && has(x.B) {
			return x
		}
	}
	return nil
}

// checkExclusions reports a pair in a configuration that exclude each other.
func (cfg *Config) checkExclusions() error {
	if x := Excluded("", cfg.has); x != nil {
		return fmt.Errorf("%s %s", x.A, x.Beside())
	}
	return nil
}

// has reports whether a configuration has what documents have under a key.
func (cfg *Config) has(key string) bool {
	switch key {
	case "err_disable":
		return cfg.PFC.ErrDisable != 0
	case "push_out", "order", "admission", "policy":
		for i := range cfg.Ports {
			if cfg.Ports[i].Name != "" && cfg.Ports[i].has(key) {
				return true
			}
		}
		return false
	}
	f := Find(key)
	return f != nil && cfg.uses(f)
}

// OneWorker is for features that want all ports of a switch on one worker: an error if
// they are on several.
func (cfg *Config) OneWorker() error {
	first := -1
	for i := range cfg.Ports {
		switch p := &cfg.Ports[i]; {
		case p.Name == "":
		case first < 0:
			first = p.Worker
		case p.Worker != first:
			return fmt.Errorf("port %s belongs to worker %d, those before it to worker %d; give all ports to one", p.Name, p.Worker, first)
		}
	}
	return nil
}

func (p *PortConfig) has(key string) bool {
	if key == "push_out" {
		return p.Scheduler.PushOut.On()
	}
	for q := range p.Scheduler.Queues {
		c := &p.Scheduler.Queues[q]
		drops := scheduler.Drops(c.Order)
		if key == "order" && c.Order != nil && !drops || key == "policy" && drops || key == "admission" && c.Admission != nil {
			return true
		}
	}
	return false
}
