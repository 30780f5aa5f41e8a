// Package scheduler decides which frame leaves an egress port next, and when.
//
// A Port has eight queues. Frames are put in with Enqueue and taken out in
// vectors with Dequeue, which is where everything happens: the choice of the
// queue, the pace of the link, pause, per-queue rate limits, ECN marking, the
// stamps that in-band telemetry reads, and the statistics.
//
// # Order of service
//
// Queues stand in levels, served strictly from queue 7 down. A queue of
// weight 0 is a level of its own. A run of neighbouring queues with weights
// is one level together and shares what reaches it by deficit weighted round
// robin (Shreedhar and Varghese, SIGCOMM 1995) in proportion to the weights.
// With weights (queue 7 first) 0 0 4 2 1 0 3 1 the levels are
// {7} {6} {5,4,3 as 4:2:1} {2} {1,0 as 3:1}. Inside a queue frames leave first-in
// first-out, or as its Order says; an Admission or PushOut says which are dropped.
//
// # Link time
//
// A RateClock gives the link its speed and the frames their scheduled
// departure. When the caller comes late, Dequeue replays what the link would
// have done meanwhile: at the link's own instant only frames that had been
// enqueued by then compete, and an idle link earns no credit. So departures
// are those of an ideal link, whatever the rhythm of the calls, as long as
// the caller is not later than PortConfig.Burst.
//
// Nothing here reads a clock: time and seed are arguments. A Port is used by
// one goroutine, with time never decreasing.
package scheduler
