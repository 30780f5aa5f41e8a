// Package loopguard has the frames by which a switch finds loops: it sends one by each port, and where one of its own
// comes back there is a way around. A tag that only the switch can compute keeps others from making one.
package loopguard
