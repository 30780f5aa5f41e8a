// Package dataplane is the real-time engine: it steps nodes (frame.Node:
// switches) on poll-mode workers and moves their frames through ports.
//
//	Engine   one arena of frames shared by a group of workers, and the clock
//	Worker   one locked thread: mailbox, ports, nodes, idle policy (worker.go
//	         reads top to bottom in the order in which a frame meets it)
//	Port     where frames enter and leave: an interface over AF_XDP, a wire to
//	         another port of this engine, a capture file, or nothing
//
// A worker owns its nodes and ports. The rest of the process reaches them
// only through Worker.Do, which runs a function between two vectors; there is
// no lock on the forwarding path. What blocks or allocates (opening an
// interface, watching its link, writing a capture) happens on goroutines of
// the engine, which then hand the worker the result.
package dataplane
