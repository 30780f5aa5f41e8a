// Package bpf holds the XDP program of a port and attaches it.
//
// The program hands the frames of a port to the AF_XDP sockets of its queues:
// all of them, or those that a Filter selects. The rest, and whatever arrives
// on a queue without a socket, goes to the kernel. It counts each way per CPU
// and takes frames larger than a page (xdp.frags).
//
// It is attached through a BPF link that this process holds: when the process
// ends, in whatever way, the kernel detaches it. Nothing is pinned.
//
// The objects in this folder are compiled from xdp.c by go generate, which
// needs clang; building and running do not.
package bpf

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -cflags "-O2 -Wall -Werror" xdp xdp.c
//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -cflags "-O2 -Wall -Werror -DHARDWARE" hardware xdp.c
