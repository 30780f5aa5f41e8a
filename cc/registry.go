package cc

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gswitch/feature"
	"gswitch/options"
)

// Info describes an algorithm: what listings print and what a factory needs.
type Info struct {
	Name   string          `json:"name"`           // as scenarios write it
	Title  string          `json:"title"`          // one line
	Paper  string          `json:"paper"`          // where it is published
	Cite   string          `json:"cite"`           // the same in three words
	Kind   string          `json:"kind"`           // what it decides: "window", "rate", "rate+window"
	Needs  feature.Signals `json:"needs"`          // what it reads; one of them is enough
	Note   string          `json:"note,omitempty"` // what else its user must know
	Params []options.Param `json:"params"`

	// Machines are options with other values where the flows of a machine's kernel are
	// sent by it: few flows share a machine's link, and T is several round trips of the
	// idle network, since it must hold what the machine adds.
	Machines map[string]string `json:"-"`

	// New reads the options once and returns the constructor of one queue
	// pair's state. The constructor is called for each queue pair, so it
	// shares what New prepared and only allocates the state itself. New
	// refuses combinations of options that make no sense.
	New func(p options.Values) (func(env *Env) Algorithm, error) `json:"-"`

	// Of and Preset make this a named set of options of another algorithm;
	// New and Params are then those of Of.
	Of     string            `json:"preset_of,omitempty"`
	Preset map[string]string `json:"preset,omitempty"`
}

// Resetter is an Algorithm whose state can serve another queue pair: after
// Reset it behaves as one that was just constructed with env.
type Resetter interface {
	Reset(env *Env)
}

var registry = map[string]*Info{}

// Register adds an algorithm. It panics if the description is wrong, which is
// a mistake of the program and shows at its start.
func Register(in Info) {
	if in.Name == "" || registry[in.Name] != nil {
		panic(fmt.Sprintf("cc: algorithm %q is registered twice or has no name", in.Name))
	}
	for i := range in.Params {
		if err := in.Params[i].Check(); err != nil {
			panic(fmt.Sprintf("cc: %s: %v", in.Name, err))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(in.Machines)) {
		if !in.has(key) {
			panic(fmt.Sprintf("cc: %s on machines sets %q, which it does not have", in.Name, key))
		}
	}
	registry[in.Name] = &in
}

// has reports whether the algorithm has an option of this name.
func (in *Info) has(name string) bool {
	return slices.ContainsFunc(in.Params, func(p options.Param) bool { return p.Name == name })
}

// preset registers name as the algorithm of with some options set; source
// says where their values are from.
func preset(name, of, title, source string, set map[string]string) {
	base := registry[of]
	in := *base
	in.Name, in.Title, in.Of, in.Preset = name, title, of, set
	if w, ok := set["window"]; ok && w != "none" {
		in.Kind = "rate+window"
	}
	// The listing shows what the preset sets as its default.
	in.Params = slices.Clone(base.Params)
	for i := range in.Params {
		if v, ok := set[in.Params[i].Name]; ok {
			in.Params[i].Default, in.Params[i].Source = v, source
		}
	}
	for _, key := range slices.Sorted(maps.Keys(set)) {
		if !in.has(key) {
			panic(fmt.Sprintf("cc: preset %s sets %q, which %s does not have", name, key, of))
		}
	}
	Register(in)
}

// Lookup returns the description of an algorithm.
func Lookup(name string) (Info, bool) {
	in, ok := registry[name]
	if !ok {
		return Info{}, false
	}
	return *in, true
}

// Names returns the names of all algorithms, sorted.
func Names() []string {
	return slices.Sorted(maps.Keys(registry))
}

// Infos returns the descriptions of all algorithms, sorted by name.
func Infos() []Info {
	infos := make([]Info, 0, len(registry))
	for _, name := range Names() {
		infos = append(infos, *registry[name])
	}
	return infos
}

// UnknownError says that no algorithm has a name.
type UnknownError struct{ Name string }

func (e UnknownError) Error() string {
	return fmt.Sprintf("congestion control %q is not known; known are %s", e.Name, strings.Join(Names(), ", "))
}

// Factory returns the constructor of an algorithm with the given options, by
// name and in the notation of Param. Options that are left out have their
// defaults. All reading and checking happens here; the constructor is meant
// to be called for each queue pair, and several queue pairs may share it. It
// returns an error that names the option, UnknownError for the algorithm.
func Factory(name string, params map[string]string) (func(*Env) Algorithm, error) {
	in, ok := registry[name]
	if !ok {
		return nil, UnknownError{name}
	}
	v, err := options.Parse(in.Params, params)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	build, err := in.New(v)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return build, nil
}
