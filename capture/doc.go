// Package capture records frames: a tap that a worker feeds without ever
// waiting, a small filter language in the manner of tcpdump, and readers and
// writers of capture files.
//
//	Filter   an expression compiled to a matcher over the bytes of a frame
//	Tap      what a worker holds: filter, snap length and a Ring of its own
//	Ring     single-producer single-consumer ring of bytes: worker to writer
//	Session  several taps merged by time into one pcapng stream
//	Writer   pcapng with interface names, directions, drop reasons, ns times
//	Reader   pcapng and classic pcap
//
// A tap costs the worker one comparison per vector while it is off. While it
// is on it copies what the filter selects; when the ring is full the frame is
// not captured and counted, and forwarding does not notice.
package capture
