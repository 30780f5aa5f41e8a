// Package hostnic is the host's NIC as a node without I/O: queue pairs that
// send and receive RoCEv2 frames.
package hostnic
