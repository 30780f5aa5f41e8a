// Package clocksync keeps the clocks of all switches and hosts together, with a
// bound on their error that holds also while links and switches fail (Li et al.,
// "Sundial: Fault-tolerant Clock Synchronization for Datacenters", OSDI 2020;
// section numbers below are of chapter 3 of Li's dissertation).
//
// A node's own time, the `now` that it gets as an argument, is its oscillator.
// Synchronised time is a function of it (Clock). The root sends a message each
// interval; every other node sends one only when a valid message came by the
// port that it accepts (Device). So wherever the way from the root breaks,
// all behind it receive no sync message, time out by themselves and turn to a second parent
// that was chosen beforehand (package plan), without a controller.
//
// Nothing here reads a clock or does I/O.
package clocksync
