// Package collect is the collector: it takes the reports of switches and the copies
// that they make of packets, keeps them in a stream of NATS JetStream, and makes
// events of them: lost packets with their cause, packets that were dropped, went
// round or were lost on their way, pauses, flows that are lost or loop.
//
//	Receiver   reports over TCP, which are acknowledged when the stream has them
//	Copies     copies of packets over GRE or UDP
//	Store      the streams: one of reports, one of events
//	Analysis   from the reports of a lane to events
//	Workers    which collector analyses which lane, and how far it is
//
// Reports are divided into lanes, so that all that must be seen together, such as
// what the two ends of a link report, comes into one. Several collectors share the
// lanes. An Analysis is a function of the messages of its lane and of nothing else,
// and what it keeps of a message ends after a bounded time: who takes over a
// lane reads a little of it again and comes to the same events, which have the same
// names, and an event that the stream has is not taken a second time. So nothing is
// lost that was acknowledged, and nothing is counted twice, wherever a collector is
// killed.
package collect
