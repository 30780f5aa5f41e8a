package vswitch

import (
	"cmp"
	"fmt"
	"slices"

	"gswitch/pfc"
	"gswitch/scheduler"
)

// Scope is what cannot have both of a pair.
type Scope uint8

const (
	OneSwitch Scope = iota
	OnePort
	OneQueue // an egress queue of a port
)

// Keys of exclusions that are no keys of documents.
const (
	Lossless       = "a lossless class"
	Dropping       = "an order that drops"
	SeveralWorkers = "ports of several workers"
)

// Exclusion is a pair of which a switch, a port or a queue can have only one, given by
// their keys in documents: for features, their names.
type Exclusion struct {
	A, B string
	In   Scope
	Why  string // the reason against A, as a clause about B
	Do   string // what helps, if it is not to take one of the two out
}

// Beside returns why A is not possible.
func (x *Exclusion) Beside() string {
	return fmt.Sprintf("cannot stand beside %s, %s; %s", x.B, x.Why, cmp.Or(x.Do, "take one of the two out"))
}

// exclusions are the registered ones.
var exclusions []Exclusion

// Exclude registers exclusions. The package that lists the systems of a program calls it
// when it is initialized.
func Exclude(v ...Exclusion) { exclusions = append(exclusions, v...) }

// Exclusions returns the registered ones.
func Exclusions() []Exclusion { return slices.Clone(exclusions) }

// Excluded returns the first exclusion within a scope that a set of keys violates, nil if
// there is none: a registered one, or what holds of all features. If key is not empty, only
// exclusions with key as A count.
func Excluded(in Scope, key string, has func(key string) bool) *Exclusion {
	for i := range exclusions {
		if x := &exclusions[i]; x.In == in && (key == "" || key == x.A) && has(x.A) && has(x.B) {
			return x
		}
	}
	for _, f := range features {
		if (key == "" || key == f.Name) && has(f.Name) {
			if x := f.excludes(in, has); x != nil {
				return x
			}
		}
	}
	return nil
}

// excludes returns what the registration of a feature keeps it from standing beside.
func (f *Feature) excludes(in Scope, has func(key string) bool) *Exclusion {
	if in == OneSwitch && f.Decode != nil && has(SeveralWorkers) {
		return &Exclusion{A: f.Name, B: SeveralWorkers, In: in, Why: "of which a call reaches only one", Do: "give all ports of the switch to one (ports[].workers)"}
	}
	if in != OneQueue || f.Signals == 0 {
		return nil
	}
	for _, other := range features {
		if other != f && other.Signals != 0 && has(other.Name) {
			return &Exclusion{A: f.Name, B: other.Name, In: in, Why: "and senders can follow only one of the two"}
		}
	}
	return nil
}

// checkExclusions reports a pair in a configuration that exclude each other.
func (cfg *Config) checkExclusions() error {
	if x := Excluded(OneSwitch, "", cfg.Has); x != nil {
		return fmt.Errorf("%s %s", x.A, x.Beside())
	}
	lossless := cfg.losslessQueues()
	for i := range cfg.Ports {
		p := &cfg.Ports[i]
		for q := range p.Scheduler.Queues {
			c := &p.Scheduler.Queues[q]
			x := Excluded(OneQueue, "", func(key string) bool { return key == Lossless && lossless>>q&1 != 0 || hasQueue(c, key) })
			if x != nil && p.Name != "" {
				return fmt.Errorf("port %s: queue %d: %s %s", p.Name, q, x.A, x.Beside())
			}
		}
	}
	return nil
}

// Has reports whether a configuration has what documents have under a key, or what one of
// the keys above stands for.
func (cfg *Config) Has(key string) bool {
	switch key {
	case "err_disable":
		return cfg.PFC.ErrDisable != 0
	case "pause":
		return cfg.PFC.Mode == pfc.Pause
	case SeveralWorkers:
		return cfg.severalWorkers()
	case "watchdog", "push_out", "order", Dropping, "admission":
		for i := range cfg.Ports {
			if cfg.Ports[i].Name != "" && cfg.hasPort(i, key) {
				return true
			}
		}
		return false
	}
	f := Find(key)
	return f != nil && cfg.uses(f)
}

// severalWorkers reports whether the ports belong to more than one worker.
func (cfg *Config) severalWorkers() bool {
	first := -1
	for i := range cfg.Ports {
		switch p := &cfg.Ports[i]; {
		case p.Name == "":
		case first < 0:
			first = p.Worker
		case p.Worker != first:
			return true
		}
	}
	return false
}

func (cfg *Config) hasPort(port int, key string) bool {
	s := &cfg.Ports[port].Scheduler
	switch key {
	case "watchdog":
		return cfg.Watchdog(uint16(port)).Detect != 0
	case "push_out":
		return s.PushOut.On()
	}
	return slices.ContainsFunc(s.Queues[:], func(c scheduler.QueueConfig) bool { return hasQueue(&c, key) })
}

func hasQueue(c *scheduler.QueueConfig, key string) bool {
	switch key {
	case "order":
		return c.Order != nil
	case Dropping:
		return scheduler.Drops(c.Order)
	case "admission":
		return c.Admission != nil
	case "ecn":
		return c.ECN.KMax != 0
	case "pi":
		return c.ECN.PI.Ref != 0
	}
	return false
}
