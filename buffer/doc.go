// Package buffer is the memory management unit of a shared-buffer switch: it decides
// which frames may be stored, and which neighbours must pause.
//
// # Charging
//
// The buffer of Size bytes is divided into reserves of egress queues, reserves of groups
// (a group is one class of one ingress port), headroom of lossless groups, and one shared
// pool, which is the remainder. A frame is charged to the reserve of its egress queue if
// that has room for it, and otherwise to its group: first to the group's reserve, then to
// the shared pool and, for lossless groups, then to the headroom. Releases are credited
// in the opposite order, headroom first, so that a group's part of the shared pool and
// its headroom drain like one store and XON does not wait for the frames that arrived
// last.
//
//	held = sum of queue reserves used + sum over groups (reserve + shared + headroom used)
//
// # Limits
//
// The shared pool is divided by thresholds, static or dynamic: alpha times the free bytes
// of the pool (Choudhury and Hahne, IEEE/ACM Trans. Networking 6(2), 1998). A lossy frame
// must fit under the threshold of its group and of its egress queue. A lossless group is
// never limited. It requests a pause when it is at or above its threshold, or has any
// byte in its headroom (XOFF), and ends it when the headroom is empty and it holds at
// most the threshold minus XONOffset (XON). The headroom absorbs what the neighbour sends
// before it stops. A frame that would cross the threshold is still charged to the shared
// pool if that has room, and otherwise to the headroom, which is why headroom holds one
// frame more than the link needs (Budget.Trigger).
//
// A copy (frame.IsClone) takes memory that no pause can prevent, since one frame on the
// link becomes many here. Copies are therefore lossy in every class, and cannot exhaust
// the headroom.
//
// # Moving thresholds
//
// A dynamic threshold moves when others use the buffer. A group is judged whenever one of
// its own frames comes or goes, and Sweep judges all lossless groups. Without Sweep
// nothing is lost (the first frame of a group above its lowered threshold goes to the
// headroom and triggers a pause) and nothing is stuck (a group's last frame always ends
// its pause); it only happens later.
//
// A Buffer is used by one goroutine.
package buffer
