// Package mirror copies packets that matter to where they are looked at, and makes
// traces of the copies (Zhu et al., "Packet-Level Telemetry in Large Datacenter
// Networks", SIGCOMM 2015; Everflow).
//
//	Rule, Classifier   which packets matter: all rules that match, at once
//	Session            what a copy is wrapped into: ERSPAN III or II, or plain GRE
//	Samples            datagrams of sFlow, for sessions that take packets at random
//	Slots              which analyzer gets a packet's copies: the same for every hop
//	Traces             from copies to the path of a packet, its loop, its drop
//
// Nothing here reads a clock or does I/O.
package mirror
