// Package hull is the phantom queue of HULL (Alizadeh, Kabbani, Edsall,
// Prabhakar, Vahdat, Yasuda: "Less Is More: Trading a Little Bandwidth for
// Ultra-Low Latency in the Data Center", NSDI 2012, section 3.1): a counter at
// the link that drains at somewhat less than the link's rate. Frames are marked
// by it before a real queue forms, so that senders leave a little of the link
// unused and hardly any frame waits.
//
//	Phantom  the counter of one link
//
// The switch's side is package hull/link. Time is an argument.
package hull
