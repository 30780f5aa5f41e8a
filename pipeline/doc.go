// Package pipeline holds the match-action building blocks of the switch. It
// does not depend on ports, queues or configuration: the standard program in
// package vswitch composes these tables into a forwarding decision.
//
//	FDB        (VLAN, MAC) -> port, learned by all workers, aged
//	Exact      fixed-size key -> value
//	LPM        IPv4/IPv6 prefix -> value
//	Ternary    value/mask rules with priorities and port ranges -> Action
//	FlowCache  exact-match cache of one worker in front of a Ternary
//	Range      disjoint intervals -> value
//	Group      weighted next-hop group with resilient hashing
//	Meter      token bucket: policing, storm control, ICMP rate limits
//
// # Updates
//
// Every table except FDB is an immutable snapshot. A reader may use the
// pointer it holds for as long as it likes, from any number of goroutines,
// without synchronisation. Whoever changes a table derives the next snapshot
// (With, Without, Update, or a builder) while readers go on with the old one,
// and publishes it through one atomic pointer, usually inside a larger
// structure that holds all tables of a program, so that a change to several
// tables is seen as a whole. A worker loads that pointer between two vectors.
// Deriving snapshots is not synchronised: one goroutine at a time changes a
// given table.
//
// FDB is different because frames themselves change it: it is one array of
// atomic words that all workers read and write without waiting for each other.
//
// FlowCache and Meter hold the state of one worker and are not shared.
//
// # Cost
//
// Lookups allocate nothing. The Vec forms take up to a vector of keys and keep
// several cache misses in flight at once.
package pipeline
