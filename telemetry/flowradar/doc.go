// Package flowradar counts the packets of every flow in every slot of time, in a
// memory of fixed size (Li et al., "FlowRadar: A Better NetFlow for Data
// Centers", NSDI 2016; section numbers below are of chapter 4 of Li's
// dissertation).
//
// A switch does not resolve collisions of flows, it encodes them: the keys of
// flows that collide in a cell are folded together, beside how many flows and
// packets these are. A Bloom filter in front separates new flows from known ones.
// Once a slot the whole table goes to a collector, which peels it; where a burst
// filled it beyond that, other switches on the flows' paths help.
//
//	Key, Flowset      what a switch does with each packet
//	Sizing            how large a table must be
//	Single            one table alone (algorithm 7)
//	Network           flows of several tables together (algorithm 8)
//	Counters          packet counts by a sparse linear system (algorithm 9)
//	Paths, Lost ...   what the records of a slot say about the network
//
// Nothing here reads a clock or does I/O.
package flowradar
