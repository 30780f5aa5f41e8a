// Package vnet builds a network of switches and hosts. From a fabric.Topology and the
// configuration of its nodes it makes one engine with a vswitch.Switch for every switch
// and a hostnic.NIC for every host, with the addresses and routes of fabric.NewPlan. All
// neighbours are static: nothing is resolved or learned during a run.
//
//	Config            what the nodes do; the zero value of every field is sensible
//	Build             the network
//	StartFlow, Dial   what sends
//	Ideal, Route      what a flow would take alone, and its way
//	Queue, Pauses ... what a measurement looks at
//
// Rates are bits per second, times nanoseconds, sizes bytes. Hosts are numbered in their
// order in the topology, switches likewise, and ports within their node.
package vnet
