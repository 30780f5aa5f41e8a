package dataplane

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"gswitch/capture"
	"gswitch/dataplane/xsk"
	"gswitch/frame"
)

// TapSpec configures the interface that a Tap port creates in the kernel,
// PortSpec.Interface in PortSpec.NetNS. It is deleted with the port.
type TapSpec struct {
	MAC       net.HardwareAddr
	MTU       int
	Addresses []netip.Prefix
	// Follows is the port of the node whose link state determines the interface's
	// carrier, if the node has LinkUp.
	Follows uint16
}

const tapRing = 1 << 18 // bytes of the ring between the worker and each goroutine

// linked is a node that knows the link state of its ports.
type linked interface{ LinkUp(port uint16) bool }

// tapPort is the device of a Tap port. Goroutines read from and write to the kernel, so
// that its processing of a frame takes none of the worker's time. The worker accesses
// only rings.
type tapPort struct {
	file    *os.File
	in, out *capture.Ring
	bell    chan struct{} // signals work for the writer
	quit    chan struct{}
	ended   sync.WaitGroup

	node    linked // nil: the carrier is always up
	follows uint16
	up      bool   // owned by the worker
	whole   []byte // owned by the worker: a frame of several chunks

	carrier atomic.Bool
	refused atomic.Uint64 // frames that the kernel did not accept
	lost    atomic.Bool   // the interface has been deleted
}

// openTap creates the interface and brings the port up.
func (e *Engine) openTap(p *Port) (err error) {
	d := &tapPort{in: capture.NewRing(tapRing), out: capture.NewRing(tapRing), bell: make(chan struct{}, 1), quit: make(chan struct{}), follows: p.spec.Tap.Follows}
	d.node, _ = p.node.(linked)
	if d.file, err = makeTap(&p.spec); err != nil {
		return err
	}
	p.tap = d
	// The writer sets the carrier first and then writes what has arrived since.
	if d.node == nil {
		d.carrier.Store(true)
		d.bell <- struct{}{}
	}
	d.ended.Go(func() { d.read(p.worker, e.supervisor.poke) })
	d.ended.Go(d.write)
	return e.bringUp(p, d)
}

// makeTap creates the interface of a port with its addresses, up and without carrier.
func makeTap(s *PortSpec) (file *os.File, err error) {
	err = xsk.InNetNS(s.NetNS, func() error {
		fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		if err != nil {
			return fmt.Errorf("open /dev/net/tun: %w (load the module tun; in a container, give it the device)", err)
		}
		if err := setupTap(fd, s); err != nil {
			unix.Close(fd)
			return err
		}
		file = os.NewFile(uintptr(fd), s.Interface)
		return nil
	})
	return file, err
}

func setupTap(fd int, s *PortSpec) error {
	where := ifaceKey{s.NetNS, s.Interface}
	req, err := unix.NewIfreq(s.Interface)
	if err != nil {
		return fmt.Errorf("TAP interface %s: %w", where, err)
	}
	req.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_TUN_EXCL)
	switch err := unix.IoctlIfreq(fd, unix.TUNSETIFF, req); {
	case errors.Is(err, unix.EBUSY), errors.Is(err, unix.EINVAL):
		return fmt.Errorf("TAP interface %s: there is an interface of this name already", where)
	case err != nil:
		return fmt.Errorf("TAP interface %s: %w", where, err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TUNSETCARRIER, 0); err != nil {
		return fmt.Errorf("TAP interface %s: carrier: %w (Linux 5.0 and later have this)", where, err)
	}
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("netlink: %w", err)
	}
	defer h.Close()
	link, err := h.LinkByName(s.Interface)
	if err != nil {
		return fmt.Errorf("TAP interface %s: %w", where, err)
	}
	if err := errors.Join(h.LinkSetHardwareAddr(link, s.Tap.MAC), h.LinkSetMTU(link, s.Tap.MTU), h.LinkSetUp(link)); err != nil {
		return fmt.Errorf("TAP interface %s: %w", where, err)
	}
	for _, a := range s.Tap.Addresses {
		addr := &netlink.Addr{IPNet: &net.IPNet{IP: a.Addr().AsSlice(), Mask: net.CIDRMask(a.Bits(), a.Addr().BitLen())}}
		if a.Addr().Is6() {
			addr.Flags = unix.IFA_F_NODAD // duplicate address detection would find the switch itself
		}
		if err := h.AddrAdd(link, addr); err != nil {
			return fmt.Errorf("TAP interface %s: address %s: %w", where, a, err)
		}
	}
	return nil
}

// closeTap takes the port down and deletes its interface.
func (e *Engine) closeTap(p *Port, why string) error {
	e.takeDown(p, why)
	d := p.tap
	if d == nil {
		return nil
	}
	close(d.quit)
	err := d.file.Close()
	d.ended.Wait()
	p.tapRefused += d.refused.Load()
	p.tap = nil
	return err
}

// restoreTap recreates the interface of a port after it, or its namespace, was deleted.
func (e *Engine) restoreTap(p *Port) {
	if p.tap != nil && !p.tap.lost.Load() {
		return
	}
	if p.tap != nil {
		e.log.Warn("port down", "port", p.spec.Name, "interface", p.spec.Interface, "netns", p.spec.NetNS, "reason", "interface was deleted")
		if err := e.closeTap(p, "interface was deleted"); err != nil {
			e.log.Debug("close of a lost interface", "interface", p.spec.Interface, "err", err)
		}
	}
	if _, err := os.Stat(xsk.NetNSPath(p.spec.NetNS)); err != nil {
		return
	}
	if err := e.openTap(p); err != nil {
		p.state = "down: " + err.Error()
		return
	}
	p.reopened++
	e.log.Info("port up", "port", p.spec.Name, "interface", p.spec.Interface, "netns", p.spec.NetNS)
}

// read moves frames from the kernel into the ring, as fast as the worker takes them.
func (d *tapPort) read(w *Worker, gone func()) {
	buf := make([]byte, maxFrame)
	for {
		n, err := d.file.Read(buf)
		if err != nil {
			select {
			case <-d.quit:
			default:
				d.lost.Store(true)
				gone()
			}
			return
		}
		for !d.in.Put(capture.Record{}, buf[:n]) {
			w.sleep.wake()
			select {
			case <-d.quit:
				return
			case <-time.After(pcapPoll):
			}
		}
		w.sleep.wake()
	}
}

// write gives the kernel the frames in the ring, and sets the carrier.
func (d *tapPort) write() {
	carrier := false
	for {
		select {
		case <-d.quit:
			return
		case <-d.bell:
		}
		if up := d.carrier.Load(); up != carrier {
			carrier = up
			d.setCarrier(up)
		}
		for {
			_, data, ok := d.out.Next()
			if !ok {
				break
			}
			if _, err := d.file.Write(data); err != nil {
				d.refused.Add(1) // the interface is down or deleted
			}
			d.out.Release()
		}
	}
}

func (d *tapPort) setCarrier(up bool) {
	value := 0
	if up {
		value = 1
	}
	if c, err := d.file.SyscallConn(); err == nil {
		c.Control(func(fd uintptr) { unix.IoctlSetPointerInt(int(fd), unix.TUNSETCARRIER, value) })
	}
}

// ring signals the writer that there is work.
func (d *tapPort) ring() {
	select {
	case d.bell <- struct{}{}:
	default:
	}
}

func (d *tapPort) note() {
	if d.node == nil {
		return
	}
	if up := d.node.LinkUp(d.follows); up != d.up {
		d.up = up
		d.carrier.Store(up)
		d.ring()
	}
}

func (d *tapPort) receive(_ frame.Time, p *frame.Pool, out []frame.Ref) int {
	n := 0
	for n < len(out) {
		_, data, ok := d.in.Next()
		if !ok {
			break
		}
		r := load(p, data)
		if r == frame.Nil {
			break // no free chunk: try again
		}
		p.Meta(r).Wire = uint32(len(data))
		out[n] = r
		n++
		d.in.Release()
	}
	return n
}

func (d *tapPort) transmit(_ frame.Time, p *frame.Pool, v []frame.Ref) int {
	n := 0
	for _, r := range v {
		b := p.Bytes(r)
		if p.Meta(r).Next != frame.Nil {
			d.whole = d.whole[:0]
			for c := r; c != frame.Nil; c = p.Meta(c).Next {
				d.whole = append(d.whole, p.Bytes(c)...)
			}
			b = d.whole
		}
		if !d.out.Put(capture.Record{}, b) {
			break
		}
		p.Free(r)
		n++
	}
	if n > 0 {
		d.ring()
	}
	return n
}

func (d *tapPort) wake(now frame.Time) frame.Time {
	if !d.in.Empty() || d.node != nil && d.node.LinkUp(d.follows) != d.up {
		return now
	}
	return frame.Never
}

func (d *tapPort) room(depth int) int                      { return depth }
func (d *tapPort) complete(*frame.Pool)                    {}
func (d *tapPort) fill(*frame.Pool)                        {}
func (d *tapPort) kick() bool                              { return false }
func (d *tapPort) release(*frame.Pool)                     {}
func (d *tapPort) eachHeld(*frame.Arena, func(frame.Ref))  {}
func (d *tapPort) pollFDs(fds []unix.PollFd) []unix.PollFd { return fds }
