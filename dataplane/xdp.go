package dataplane

import (
	"sync/atomic"

	"golang.org/x/sys/unix"

	"gswitch/dataplane/xsk"
	"gswitch/frame"
)

// xdpDevice is the device over the AF_XDP sockets of a port's queues. It
// receives from all of them and sends through the first.
type xdpDevice struct {
	sockets []*xsk.Socket
	tx      *xsk.Socket
	txSize  int
	turn    int       // the socket to receive from first, for fairness
	clock   *clock    // PortSpec.Timing: arrived frames are stamped; else nil
	nic     *follower // follows the hardware's clock; nil: no hardware time stamps
	stats   *PortCounters

	// The kernel has reported that the interface is down or deleted. The supervisor is
	// notified once and finds out which.
	lost   atomic.Bool
	report func()
}

func (d *xdpDevice) complete(p *frame.Pool) {
	for _, s := range d.sockets {
		s.Complete(p)
	}
}

func (d *xdpDevice) note() {
	for _, s := range d.sockets {
		s.Note()
	}
}

func (d *xdpDevice) receive(now frame.Time, p *frame.Pool, out []frame.Ref) int {
	n := d.take(p, out)
	if d.clock != nil && n > 0 {
		d.clock.stamp(now, p.Arena, out[:n], d.stats, d.nic)
	}
	return n
}

func (d *xdpDevice) take(p *frame.Pool, out []frame.Ref) int {
	if len(d.sockets) == 1 {
		return d.tx.Receive(p.Arena, out)
	}
	n := 0
	for range d.sockets {
		if d.turn++; d.turn >= len(d.sockets) {
			d.turn = 0
		}
		if n += d.sockets[d.turn].Receive(p.Arena, out[n:]); n == len(out) {
			break
		}
	}
	return n
}

// room does not count frames that the kernel has taken but not completed: those wait at
// the receiver, not here.
func (d *xdpDevice) room(depth int) int { return min(depth, d.txSize) - d.tx.Queued() }

func (d *xdpDevice) transmit(_ frame.Time, p *frame.Pool, v []frame.Ref) int {
	return d.tx.Transmit(p.Arena, v)
}

func (d *xdpDevice) fill(p *frame.Pool) {
	for _, s := range d.sockets {
		s.Fill(p)
	}
}

func (d *xdpDevice) kick() (left bool) {
	err := d.tx.Kick()
	for _, s := range d.sockets {
		if s.NeedsRxWakeup() {
			if e := s.WakeRx(); e != nil {
				err = e
			}
		}
	}
	if err != nil && !d.lost.Load() {
		d.lost.Store(true)
		d.report()
	}
	return d.tx.Queued() > 0
}

func (d *xdpDevice) wake(frame.Time) frame.Time { return frame.Never }

func (d *xdpDevice) pollFDs(fds []unix.PollFd) []unix.PollFd {
	for _, s := range d.sockets {
		fds = append(fds, unix.PollFd{Fd: int32(s.FD()), Events: unix.POLLIN})
	}
	return fds
}

// release returns the chunks of the closed sockets.
func (d *xdpDevice) release(p *frame.Pool) {
	for _, s := range d.sockets {
		s.Reclaim(p)
	}
}

func (d *xdpDevice) eachHeld(a *frame.Arena, f func(chunk frame.Ref)) {
	for _, s := range d.sockets {
		s.EachHeld(a, f)
	}
}

// addSocketCounters adds the counters of the port's sockets. It must not run on a worker:
// reading the kernel's statistics takes a lock.
func (p *Port) addSocketCounters(c *PortCounters) {
	c.add(&p.closed)
	for _, s := range p.sockets {
		// An error means that the kernel's part is missing; the rest is valid.
		st, _ := s.Stats()
		c.add(&PortCounters{
			Kicks: st.Kicks, KickFrames: st.KickChunks, KickAgain: st.KickAgain, KickDrops: st.KickDrops, KickNoMemory: st.KickNoBufs,
			RxWakeups: st.RxWakeups,
			RxDropped: st.Kernel.RxDropped, RxRingFull: st.Kernel.RxRingFull, FillRingEmpty: st.Kernel.FillRingEmpty,
			RxInvalid: st.Kernel.RxInvalid, TxInvalid: st.TxInvalid + st.Kernel.TxInvalid, TxRingEmpty: st.Kernel.TxRingEmpty,
		})
	}
}

// add adds counters of sockets.
func (c *PortCounters) add(o *PortCounters) {
	c.Kicks += o.Kicks
	c.KickFrames += o.KickFrames
	c.KickAgain += o.KickAgain
	c.KickDrops += o.KickDrops
	c.KickNoMemory += o.KickNoMemory
	c.RxWakeups += o.RxWakeups
	c.RxDropped += o.RxDropped
	c.RxRingFull += o.RxRingFull
	c.FillRingEmpty += o.FillRingEmpty
	c.RxInvalid += o.RxInvalid
	c.TxInvalid += o.TxInvalid
	c.TxRingEmpty += o.TxRingEmpty
}
