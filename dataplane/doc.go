// Package dataplane is the real-time engine: it steps nodes (frame.Node:
// switches) on poll-mode workers and moves their frames through ports.
//
//	Engine   one arena of frames shared by a group of workers, and the clock
//	Worker   one locked thread: mailbox, ports, nodes, idle policy (worker.go
//	         reads top to bottom in the order in which a frame meets it)
//	Port     where frames enter and leave: an interface over AF_XDP, a wire to
//	         another port of this engine, a capture file, or nothing
//
// A worker owns its nodes and ports. The rest of the process accesses them only through
// Worker.Do, which runs a function between two vectors. The forwarding path takes no
// lock. Whatever blocks or allocates (opening an interface, watching its link, writing a
// capture) runs on goroutines of the engine, which then pass the result to the worker.
package dataplane
