package xsk

import (
	"fmt"
	"net"

	"golang.org/x/sys/unix"

	"gswitch/frame"
)

// Config selects the queue of a socket and its mode. Zero values take the defaults
// stated.
type Config struct {
	IfIndex int    // interface index inside NetNS
	Queue   int    // receive and transmit queue of the device
	NetNS   string // name or path of the network namespace; "" is the process's own

	Mode Mode // Auto tries ZeroCopy, then copy

	// Ring sizes in entries, powers of two.
	RxSize   int // 2048
	TxSize   int // 2048
	FillSize int // 4096
	CompSize int // 2048, at least TxSize

	// TxBudget is how many frames one transmit call may send, 32 to TxSize
	// (XDP_MAX_TX_SKB_BUDGET, Linux 6.17). The default is 256; older kernels keep their
	// 32.
	TxBudget int

	// BusyPoll is how many frames a receive call may process in the driver's
	// own NAPI context instead of an interrupt; 0 leaves busy polling off.
	BusyPoll int

	// Multibuffer lets a frame span several chunks, for an MTU larger than a chunk.
	Multibuffer bool
}

// withDefaults fills in defaults and checks whatever can be checked without the device.
func (c Config) withDefaults() (Config, error) {
	for _, r := range []struct {
		name  string
		size  *int
		deflt int
	}{{"RX", &c.RxSize, 2048}, {"TX", &c.TxSize, 2048}, {"fill", &c.FillSize, 4096}, {"completion", &c.CompSize, max(2048, c.TxSize)}} {
		if *r.size == 0 {
			*r.size = r.deflt
		}
		if n := *r.size; n < 2 || n > 1<<20 || n&(n-1) != 0 {
			return c, fmt.Errorf("%s ring: %d entries are not a power of two from 2 to %d", r.name, n, 1<<20)
		}
	}
	if c.CompSize < c.TxSize {
		return c, fmt.Errorf("completion ring: %d entries are fewer than the TX ring's %d", c.CompSize, c.TxSize)
	}
	if c.TxBudget == 0 {
		c.TxBudget = min(256, c.TxSize)
	}
	if c.TxBudget < 0 || c.TxBudget > c.TxSize {
		return c, fmt.Errorf("TX budget: %d is more than the TX ring's %d entries", c.TxBudget, c.TxSize)
	}
	if c.Queue < 0 {
		return c, fmt.Errorf("queue %d: it starts at 0", c.Queue)
	}
	if c.BusyPoll < 0 {
		return c, fmt.Errorf("busy poll budget %d: it starts at 0", c.BusyPoll)
	}
	return c, nil
}

// linkOverhead is the number of bytes that a frame may have beyond the MTU: the Ethernet
// header and one VLAN tag, which the kernel allows (is_skb_forwardable).
const linkOverhead = 14 + 4

// checkMTU checks that every frame of the device fits into the usable part of a chunk.
func checkMTU(ifi *net.Interface, chunk int, multibuffer bool) error {
	room := chunk - unix.XDP_PACKET_HEADROOM
	if multibuffer || ifi.MTU+linkOverhead <= room {
		return nil
	}
	return fmt.Errorf("%w: interface %s has MTU %d: its frames of up to %d bytes do not fit into the %d that a %d-byte chunk has after %d bytes of headroom; lower the MTU to %d, use larger chunks, or allow frames in several chunks (multi-buffer)",
		ErrMTU, ifi.Name, ifi.MTU, ifi.MTU+linkOverhead, room, chunk, frame.DefaultHeadroom, room-linkOverhead)
}
