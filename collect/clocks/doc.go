// Package clocks is the controller of the synchronised clocks of a network's switches: it
// observes what works, plans which clock follows which, and brings the switches to the
// plan, make before break. If there are several controllers, one leads, by a lease in
// JetStream. Plans have epochs, so that switches accept nothing from a controller that
// has been replaced.
package clocks
