package scheduler

import (
	"fmt"
	"maps"
	"slices"
)

var registered = map[string]Order{}

// Register makes an order known by a name, under which documents and scenarios
// choose it (order: {kind: registered, name: NAME}). It is called in init, also
// by packages of other modules; a name that is taken is a panic.
func Register(name string, o Order) {
	if name == "" || o == nil || registered[name] != nil {
		panic(fmt.Sprintf("scheduler: an order of the name %q cannot be registered", name))
	}
	registered[name] = o
}

// Registered returns the order of a name, nil if there is none.
func Registered(name string) Order { return registered[name] }

// Names returns the names of registered orders.
func Names() []string { return slices.Sorted(maps.Keys(registered)) }
