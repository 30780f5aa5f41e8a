// Package lossradar finds every lost packet, with its place, header and time,
// at a cost that follows the losses and not the traffic (Li et al., "LossRadar:
// Fast Detection of Lost Packets in Data Center Networks", CoNEXT 2016; section
// numbers below are of chapter 5 of Li's dissertation).
//
// A meter before a segment of the network and one behind it fold the packets of
// a batch into digests of equal shape. What was delivered cancels when one is
// subtracted from the other; what is left is the losses, and decodes by peeling
// as an invertible Bloom filter does (Eppstein et al., SIGCOMM 2011).
//
//	Signature   what identifies a packet while it crosses a segment
//	Digest      the invertible filter: insert, add, subtract, decode
//	Upstream    the meter at a segment's entrance; names the batches
//	Downstream  the meter at its exit; sorts packets by the batch they carry
//	Pairer      the collector's part: pairs, subtracts, decodes
//	Classify    from losses to causes
//
// Nothing here reads a clock or does I/O.
package lossradar
