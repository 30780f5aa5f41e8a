// Package qcn is the congestion point of Quantized Congestion Notification
// (IEEE 802.1Qau-2010; Alizadeh et al., "Data Center Transport Mechanisms:
// Congestion Control Theory and IEEE Standardization", Allerton 2008): a queue
// samples arriving frames, and where it is too long or grows notifies the sender
// of the sampled frame by how much, in six bits.
//
//	Point    the congestion point of one egress queue
//	Message  what notifies a sender
//
// The standard's messages stay within a layer 2 domain and find the sender by
// its MAC address; its data frames carry a tag that numbers the rate limiter.
// Here the same message data unit is the body of an ICMP message that quotes
// the sampled packet, so that it crosses routers and finds the flow without a
// tag. The reaction point, at the sender, is in package cc.
package qcn
