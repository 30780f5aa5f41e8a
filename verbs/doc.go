// Package verbs makes a Go program an RDMA host on a network interface.
package verbs
