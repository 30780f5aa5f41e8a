// Package rocc is the congestion point of RoCC (Menikkumbura, "Congestion
// Management in Data Center Networks", Purdue 2022, chapter 3; Taheri,
// Menikkumbura et al., "RoCC: Robust Congestion Control for RDMA", CoNEXT
// 2020): the switch works out the rate that is fair for every flow of a
// congested queue and notifies the senders.
//
//	Controller  a proportional-integral controller of one egress queue
//	Table       the flows that are to get notices
//	Notice      what they get, as an ICMP message
//
// The reaction point, at the sender, is congestion control like any other and
// stands in package cc.
//
// Time is an argument; nothing here reads a clock or allocates per frame.
package rocc
