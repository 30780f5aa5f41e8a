// Package verbs makes a Go program an RDMA host on a network interface, over
// AF_XDP: queue pairs with Send, Write, Read and atomics over RoCEv2, paced by
// HPCC, DCQCN, TIMELY, DCTCP and others. Names and meanings are those of
// libibverbs and librdmacm where they have one.
//
//	Host             an interface with an address, driven by a thread of its own
//	Memory           bytes that other hosts may reach (ibv_reg_mr)
//	Listener         takes connections (rdma_listen)
//	QueuePair        one end of a connection; operations are posted on it
//	CompletionQueue  reports their ends: polled, or waited for
//
// The other end is a program like this one, or ghost: "ghost serve" lets a
// program read and write its memory, and "ghost perf write" and "ghost perf
// read" do so with what a Listener offers.
//
// # Who owns what
//
// The host's worker thread owns the NIC; programs never touch it. A post
// copies the request into the queue pair's ring and rings a bell, which wakes
// the worker if it sleeps; the worker takes all requests that are there at once. A
// completion comes back through the ring of the completion queue. Methods of all
// types may be called from any goroutine.
//
// The bytes that a request names belong to the NIC from the post until its
// completion was polled, or Close of the queue pair has returned: what is to be
// sent must not change, and what is to be filled must not be looked at. What
// precedes a post in the program is seen by the NIC, and what the NIC did before a
// completion is seen by who polled it, as Go's memory model has it; the race
// detector agrees. Registered memory is the NIC's to write as long as another host
// may write it: it is looked at after a completion that reports the write (a Send
// that followed it, WriteImm), or after Memory.Sync.
//
// # Bounds
//
// A queue pair has at most SendDepth requests and RecvDepth buffers posted
// whose completions were not polled; then posts return ErrQueueFull. A completion
// queue has room for all of its queue pairs, so it cannot overflow.
//
// # What there is not
//
// Send with invalidate, shared receive queues, memory windows, unreliable
// services, and credits in acknowledgements (a Send that finds no buffer is
// repeated after RNRTimer).
package verbs
