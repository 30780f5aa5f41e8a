package xsk

import (
	"errors"
	"fmt"
	"io"
	"net"

	"gswitch/bpf"
)

// PortConfig selects the device to open, and its options.
type PortConfig struct {
	Interface string
	Queues    []int      // queues to serve; none means queue 0
	Filter    bpf.Filter // which frames are taken from the kernel; all by default
	Stamp     bool       // time-stamp PTP frames on arrival (bpf.Stamp)
	Hardware  bool       // also with the hardware's time, if the driver provides it in native mode
	Socket    Config     // for every socket: NetNS, Mode, rings; IfIndex and Queue are set by OpenPort
}

// Port is a device with its program and a socket for each queue.
type Port struct {
	name     string
	ifindex  int
	netns    string
	mode     Mode
	rungs    []Rung
	program  *bpf.Program
	hardware bool // the program requests hardware time stamps
	link     io.Closer
	sockets  []*Socket
}

// OpenPort attaches the program to a device, opens the sockets and registers them, in the
// best mode that works. It rejects a device that has another XDP program (bpf.ErrBusy).
// Until a worker fills the sockets, frames are dropped.
func OpenPort(u *UMEM, c PortConfig) (*Port, error) {
	if len(c.Queues) == 0 {
		c.Queues = []int{0}
	}
	p := &Port{name: c.Interface, netns: c.Socket.NetNS}
	var err error
	for _, q := range c.Queues {
		c.Socket.Queue = q
		if c.Socket, err = c.Socket.withDefaults(); err != nil {
			return nil, fmt.Errorf("interface %s%s: %w", c.Interface, inNetNS(c.Socket.NetNS), err)
		}
	}
	err = InNetNS(c.Socket.NetNS, func() error {
		ifi, err := net.InterfaceByName(c.Interface)
		if err != nil {
			return fmt.Errorf("interface %s%s: %w", c.Interface, inNetNS(c.Socket.NetNS), err)
		}
		p.ifindex, c.Socket.IfIndex = ifi.Index, ifi.Index
		if err := p.load(c); err != nil {
			return fmt.Errorf("interface %s%s: %w", c.Interface, inNetNS(c.Socket.NetNS), err)
		}
		if err := p.climb(u, c, ifi); err != nil {
			return fmt.Errorf("interface %s%s: %w", p.name, inNetNS(p.netns), err)
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// load loads the program. If hardware time stamps are wanted, and the driver and the
// kernel support it, that is a program that requests them from the driver.
func (p *Port) load(c PortConfig) (err error) {
	if c.Stamp && c.Hardware && c.Socket.Mode != Generic {
		if p.program, err = bpf.LoadHardware(c.Filter, p.ifindex); err == nil {
			p.hardware = true
			return nil
		}
	}
	p.program, err = bpf.Load(c.Filter, c.Stamp)
	return err
}

// climb tries the modes from the best down.
func (p *Port) climb(u *UMEM, c PortConfig, ifi *net.Interface) error {
	for _, m := range c.Socket.Mode.ladder() {
		err := p.try(u, c, ifi, m)
		p.rungs = append(p.rungs, Rung{m, err})
		if err == nil {
			p.mode = m
			return nil
		}
		p.closeSockets()
		if !modeMatters(err) {
			return err
		}
	}
	return refused(p.rungs)
}

// try opens the port in one mode. The program is attached first: some drivers set up
// their rings for zero-copy only while one is attached.
func (p *Port) try(u *UMEM, c PortConfig, ifi *net.Interface, m Mode) error {
	if p.link != nil && m == Generic {
		p.detach()
	}
	if p.hardware && m == Generic { // such a program runs only in drivers
		p.program.Close()
		p.hardware = false
		var err error
		if p.program, err = bpf.Load(c.Filter, c.Stamp); err != nil {
			return err
		}
	}
	if p.link == nil {
		hook := bpf.Native
		if m == Generic {
			hook = bpf.Generic
		}
		l, err := p.program.Attach(p.ifindex, hook)
		if err != nil {
			return err
		}
		p.link = l
	}
	for _, q := range c.Queues {
		sc := c.Socket
		sc.Mode, sc.Queue = m, q
		s, err := climb(u, sc, ifi)
		if err != nil {
			return err
		}
		p.sockets = append(p.sockets, s)
		if err := p.program.Register(q, s.FD()); err != nil {
			return err
		}
	}
	return nil
}

// Name returns the interface's name.
func (p *Port) Name() string { return p.name }

// IfIndex returns the interface's index in its namespace.
func (p *Port) IfIndex() int { return p.ifindex }

// Mode returns the mode obtained.
func (p *Port) Mode() Mode { return p.mode }

// Hardware reports whether the program requests hardware time stamps from the driver.
func (p *Port) Hardware() bool { return p.hardware }

// Rungs returns the modes tried, best first; the last is the one obtained.
func (p *Port) Rungs() []Rung { return p.rungs }

// Sockets returns the sockets in the order of the queues asked for.
func (p *Port) Sockets() []*Socket { return p.sockets }

// Counters reads the program's counters.
func (p *Port) Counters() (bpf.Counters, error) { return p.program.Counters() }

// Close detaches the program and closes the sockets, which their workers must have
// released. Their chunks are returned by Socket.Reclaim.
func (p *Port) Close() error {
	err := p.detach()
	for _, s := range p.sockets {
		err = errors.Join(err, s.Close())
	}
	if p.program != nil {
		err = errors.Join(err, p.program.Close())
	}
	return err
}

func (p *Port) detach() error {
	if p.link == nil {
		return nil
	}
	err := p.link.Close()
	p.link = nil
	return err
}

func (p *Port) closeSockets() {
	for _, s := range p.sockets {
		_ = s.Close()
	}
	p.sockets = nil
}
