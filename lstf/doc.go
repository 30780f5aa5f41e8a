// Package lstf is what the edge of a network writes into packets, and reads
// from them, where its switches serve the least slack time first (Mittal,
// Agarwal, Ratnasamy, Shenker: "Universal Packet Scheduling", NSDI 2016): how
// long each may wait in queues. The objective is in the slack alone; switches in
// between do one and the same thing.
//
//	Writer    how much slack a packet gets where it enters
//	Edge      what is done where it leaves, by how much of it is used
//	Schedule  the waits of packets in one schedule, for the replay of it
//
// The switch's side is package lstf/point, the order that of queues with the
// rank scheduler.RankSlack. Time is an argument; nothing here is shared between
// workers but a Schedule.
package lstf
