// Package buffer is the memory management unit of a shared-buffer switch: it
// says which frames may be stored, and which neighbours must pause.
//
// # Who is charged
//
// The buffer of Size bytes is divided into reserves of egress queues,
// reserves of groups (a group is one class of one ingress port), headroom of
// lossless groups, and one shared pool, which is what remains. A frame is
// charged to the reserve of its egress queue if that has room for it, else to
// its group: first the group's reserve, then the shared pool, then, for
// lossless groups, the headroom. What a group gives back comes off in the
// opposite order, headroom first, so that the shared pool and the headroom of
// a group drain like one store and XON does not wait for the last frames that
// came in.
//
//	held = sum of queue reserves used + sum over groups (reserve + shared + headroom used)
//
// # Who is limited
//
// The shared pool is divided by thresholds, static or dynamic: alpha times
// the free bytes of the pool (Choudhury and Hahne, IEEE/ACM Trans. Networking
// 6(2), 1998). A lossy frame must fit under the threshold of its group and of
// its egress queue. A lossless group is never limited, it asks for pause: at
// or above its threshold, or with any byte in its headroom (XOFF), until the
// headroom is empty and it holds no more than the threshold less XONOffset
// (XON). Headroom then takes what the neighbour sends before it stops. A
// frame that would cross the threshold is still taken from the shared pool if
// that has room; if not it takes headroom, which is why headroom holds one
// frame more than the link needs (Budget.Trigger).
//
// A copy (frame.IsClone) costs memory that no pause can call back, since one
// frame on the link becomes many here. Copies are therefore lossy in every
// class, and cannot exhaust the headroom.
//
// # Thresholds that move
//
// A dynamic threshold moves when others use the buffer. A group is judged
// again whenever one of its own frames comes or goes, and all lossless groups
// are judged by Sweep. Without Sweep nothing is lost (the first frame of a
// group above its fallen threshold lands in the headroom and asks for pause)
// and nothing is stuck (a group's last frame always ends its pause); it is
// only later.
//
// A Buffer is used by one goroutine.
package buffer
