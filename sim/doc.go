// Package sim steps the nodes of a network in virtual time: links carry frames
// between ports, and an event queue says which port or timer is next. It depends on
// nothing that nodes do; they are frame.Stepper, the same switch and host
// that run on real frames.
//
// # Time
//
// Time is whole nanoseconds. How long a frame occupies a link is the business
// of the sender's port (scheduler.RateClock), which carries the part of a
// nanosecond that a frame leaves over to the next, so rates are exact over any
// number of frames while each instant is rounded down. A frame arrives, whole,
// at Meta.Depart + Meta.Span + the link's delay.
//
// # Order
//
// At one instant there happen, in this order: control events (At, Every) in
// the order in which they were asked for; then rounds of arrivals by the
// number of the direction (2*link + way), timers by the number of the node,
// transmissions by the number of the direction, until nothing is left to do at
// this instant. A frame that finds its port idle leaves at once, after all
// arrivals and timers of its round. So a run is the same to the bit for the
// same nodes, links, control events and seed.
//
// The digest of a run joins a history of each direction. None of them depends
// on what happens at the same instant elsewhere: nodes interact only through links.
// So a network may be divided into parts that run side by side (Assign), with the
// same digest; see ahead.go. The engine starts no goroutine: it is given Workers.
//
// # Faults
//
// Fault changes one direction of a link (loss, corruption, reordering, jitter,
// duplicates, a lower rate), SetLink, Pause, Slow, Reboot, SetClock and Storm
// act on links and nodes as a whole. Each direction draws from its own stream
// of the engine's seed, and only for faults that are set. Every frame that a
// node gave to a link, or a fault added, is delivered, lost for a counted
// cause, or in flight.
//
// # One event for each thing that can happen
//
// A link delivers in order, so of all frames on a direction only the first has
// an arrival pending; a port has one transmission, a node one timer. The queue
// moves these slots and never allocates.
package sim
