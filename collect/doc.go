// Package collect is the collector: it receives reports of switches and the copies of
// packets that they make, stores them in a stream of NATS JetStream, and derives events
// from them: lost packets with their cause, packets that were dropped, looped or lost on
// their path, pauses, and flows that are lost or loop.
//
//	Receiver   reports over TCP, which are acknowledged when the stream has them
//	Copies     copies of packets over GRE or UDP
//	Store      the streams: one of reports, one of events
//	Analysis   from the reports of a lane to events
//	Workers    which collector analyses which lane, and how far it is
//
// Reports are divided into lanes, so that everything that must be seen together, such as
// the reports of the two ends of a link, is in one lane. Several collectors share the
// lanes. An Analysis is a function of the messages of its lane and of nothing else, and
// keeps what it learns from a message for a bounded time only. A collector that takes
// over a lane therefore reads a little of it again and derives the same events with the
// same names, and an event that the stream has is not stored twice. So wherever a
// collector is killed, nothing that was acknowledged is lost, and nothing is counted
// twice.
package collect
