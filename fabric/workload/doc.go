// Package workload makes the traffic of a scenario: which message starts when,
// between which hosts, of how many bytes. It does no I/O and knows no engine:
// a seed goes in, a Source comes out, and the same seed gives the same flows
// on every machine.
//
//	Poisson             open loop at a rate, sizes from a distribution
//	Incast              many to one, periodic or as a Poisson process
//	Rounds              permutations and all-to-all
//	Periodic            a message every so often, such as mice
//	Requests            closed loop, n outstanding for each client
//	Retrievals          open loop of requests with answers, single, in turn or in parallel
//	PartitionAggregate  a query to n workers, whose answers come back together
//	Saturate            connections that always have something to send
//	Collective          all-reduce and its parts by ring or trees, all-to-all in steps
//	List                what was written down flow by flow, or read from a trace
//
// Hosts are indices into the list of hosts of the topology.
package workload
