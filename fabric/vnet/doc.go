// Package vnet builds a network for virtual time: from a fabric.Topology and
// the features of its nodes it makes one sim.Engine with a vswitch.Switch for
// every switch and a hostnic.NIC for every host, with the addresses and routes
// of fabric.NewPlan. All neighbours are static, so that nothing is ever
// resolved or learned while a run is under way.
//
//	Config            what the nodes do; the zero value of every field is sensible
//	Build             the network
//	StartFlow, Dial   what sends
//	Ideal, Route      what a flow would take alone, and its way
//	Queue, Pauses ... what a measurement looks at
//
// Rates are bits per second, times nanoseconds, sizes bytes. Hosts are named
// by their index among the hosts of the topology, switches by theirs among the
// switches, ports by number.
package vnet
