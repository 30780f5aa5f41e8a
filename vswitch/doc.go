// Package vswitch is the switch: ports, match-action pipeline, shared buffer,
// egress queues and per-port control joined to one frame.Node. It does no
// I/O and reads no clock; an engine steps it.
//
// # The life of a frame
//
// A vector of up to 64 frames that arrived at a port passes these stages, in
// this order (ingress.go, one function each; every stage works on the whole
// vector before the next begins, so that code and tables stay in cache):
//
//	parse     headers to Meta
//	admit     malformed frames are counted; MAC control frames act on the port at once (control.go);
//	          sizes, reserved and invalid addresses; VLAN and traffic class
//	filter    the port's access list
//	source    a telemetry header for data of hosts that know nothing of it (sourcesink.go)
//	bridge    learning, forwarding database, flooding     (bridge.go)
//	route     longest prefix, next hop, MAC and TTL rewrite (route.go)
//	enqueue   room for the telemetry record (telemetry.go), shared-buffer admission, egress queue (enqueue.go)
//
// What the switch itself must answer (ARP, neighbour discovery, ICMP) leaves
// the vector for the slow path (local.go). Transmit (node.go) asks the port's
// scheduler which frames leave now, releases their buffer and finishes their
// headers: congestion mark, telemetry record (egress.go).
//
// # Features
//
// Published systems are no part of this package: they register a Feature
// (feature.go), whose Instance on each worker is called with vectors of frames
// at the stages that it asks for at a port (Queued, Left, Departs), and with the
// time. All frames join their egress queue in join and leave it by left
// (join.go), so that no way past a feature can be forgotten.
//
// # Workers
//
// A Switch is one or several Nodes, one for each worker. A port's egress
// queues belong to one Node; a frame that arrives at another worker crosses
// a single-producer ring to it after the pipeline and before admission. The
// Nodes share the Program (an immutable snapshot behind one atomic pointer),
// the forwarding database and the neighbour table (both lock-free); each has
// its share of the buffer, its queues and its counters.
package vswitch
