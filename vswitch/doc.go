// Package vswitch is the switch: ports, match-action pipeline, shared buffer,
// egress queues and per-port control joined to one frame.Node. It does no
// I/O and reads no clock; an engine steps it.
//
// # The life of a frame
//
// A vector of up to 64 frames that arrived at a port passes these stages, in
// this order. Receive in node.go calls them. Each of the stages works on the
// whole vector before the next begins, so that code and tables stay in cache.
// Frames that follow each other to the same queue join it together (train in
// enqueue.go).
//
//	parse     headers to Meta (package wire)
//	admit     malformed frames are counted; MAC control frames act on the port at once (control.go);
//	          sizes, reserved and invalid addresses; VLAN and traffic class (ingress.go)
//	distrust  at ports to hosts: no notices and no telemetry that only switches send (edge.go)
//	filter    the port's access list (acl.go)
//	bridge    learning, forwarding database, flooding (bridge.go)
//	route     longest prefix, next hop, MAC and TTL rewrite (route.go)
//	egress    link, MTU and VLAN tag of the egress port (decided.go)
//	enqueue   to the worker that owns the port (handover.go); shared-buffer admission, egress
//	          queue (enqueue.go, join.go)
//
// What the switch itself must answer (ARP, neighbour discovery, echo requests) leaves
// the vector for the slow path (local.go).
//
// The way out is that of what a port sends at once. Transmit in node.go calls
//
//	dequeue   the port's scheduler says which frames leave now (package scheduler)
//	finish    marks are written, the port counts what it sends (egress.go), after
//	leave     has given back what the frames were charged to (join.go)
//
// and flowControl (control.go), since what left made room.
//
// # Features
//
// Published systems are no part of this package: they register a Feature
// (feature.go), whose Instance on each worker is called with vectors of frames
// at the stages that it asks for at a port (stages.go calls them), and with the
// time. All frames join their egress queue in join and pass left when they no longer
// wait there (join.go), so that no way past a feature can be forgotten.
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
