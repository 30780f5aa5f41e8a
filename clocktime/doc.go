// Package clocktime lets programs read the synchronised time of a gswitch or ghost
// daemon (key clock of its document) from a page of shared memory: the interval in
// which the root's time lies, without asking anybody. The file is named after the
// switch or host, beside the daemon's socket, as in /run/ghost/h1.clock.
//
// What the page says goes on to hold if the daemon ends: the interval widens by what
// oscillators may drift. gswitch_clock.h reads the same page from C.
package clocktime
