// Package deter records connections of TCP so lightly that it can stay on, and
// replays them alone: without the network, bit for bit, as often as wanted
// (Li et al., DETER, NSDI 2019; Li's dissertation, chapter 6).
//
// What a connection's end does follows from its parameters, from what its
// application did, from which packets arrived and when, and from when its timers ran
// out. Packets themselves are not recorded: both ends are replayed together and make
// them for each other, and a record says which of them arrived (numbers of packets as
// their sender counted them) and whether they were marked. A record of one end alone
// has the headers of what arrived.
//
//	Recorder   records one end; it is the tap of package tcp/stack
//	Log        what it recorded
//	Replay     runs the ends of a connection again and shows every step
//	Diagnose   says why a connection was slow
//	Sampler    times of packets as a few samples, none off by more than a bound
package deter
