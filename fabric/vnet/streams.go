package vnet

import (
	"errors"
	"fmt"

	"gswitch/frame"
	"gswitch/tcp"
	"gswitch/tcp/endpoint"
	"gswitch/tcp/stack"
	wirefmt "gswitch/wire"
)

// TCP makes flows TCP byte streams instead of messages of queue pairs.
type TCP struct {
	Config tcp.Config
	// ReadRate is the rate at which the receiver's application reads, in bit/s; 0 =
	// immediately.
	ReadRate uint64
}

// Streams enables TCP connections of hosts.
type Streams struct {
	On bool
	// Delay is the time that a host takes to process a segment that arrived, Jitter its
	// standard deviation.
	Delay, Jitter frame.Time
}

const (
	// tcpHeader is the length of Ethernet, IPv4 and TCP with time stamps. A SYN also has
	// the maximum segment size, window scale and SACK-permitted options.
	tcpHeader = wirefmt.EthernetLen + wirefmt.IPv4Len + wirefmt.TCPLen + 12
	tcpSYN    = tcpHeader + 8
	// tcpHeaders is the largest header of a segment.
	tcpHeaders = wirefmt.EthernetLen + wirefmt.IPv4Len + 60
	// tcpPort is the port on which hosts listen.
	tcpPort = 5001
)

// streamOptions returns the options of a host's connections.
func (n *Network) streamOptions(node int) stack.Config {
	return stack.Config{Delay: n.cfg.Streams.Delay, Jitter: n.cfg.Streams.Jitter, Seed: mix(n.cfg.Seed, node) ^ 0x7c9}
}

// MSS returns the maximum segment size with which full segments with time stamps carry
// the payload of full data frames.
func (n *Network) MSS() int { return n.cfg.payload() + 12 }

// choosePort fills in the sender's port of a connection, one that is free at both ends, and
// the taps of both.
func (n *Network) choosePort(o *OpenEnd) error {
	f := &o.Flow
	if !n.cfg.Streams.On {
		return fmt.Errorf("virtual network %s: its hosts have no TCP", n.Topology.Name)
	}
	a, b := n.streamPair(o)
	for try := 0; !n.stacks[f.Src].Free(&a) || !n.stacks[f.Dst].Free(&b); try++ {
		if try == 1<<14 {
			return fmt.Errorf("virtual network %s: from %s to %s: %w", n.Topology.Name, n.HostName(f.Src), n.HostName(f.Dst), stack.ErrTuple)
		}
		a.LocalPort = 0xc000 | (a.LocalPort+1)&0x3fff
		b.RemotePort = a.LocalPort
	}
	f.SrcPort = a.LocalPort
	if n.tap != nil {
		o.taps[0], o.taps[1] = n.tap(f, &a, &b)
	}
	return nil
}

// openStream opens an end of a connection.
func (n *Network) openStream(now frame.Time, c *OpenEnd, end int) (err error) {
	pair := [2]stack.Options{}
	pair[0], pair[1] = n.streamPair(c)
	o, host := &pair[end], [2]int{c.Flow.Src, c.Flow.Dst}[end]
	o.Tap = c.taps[end]
	if end == 1 {
		c.QPN[end], err = n.stacks[host].Listen(now, o)
	} else {
		c.QPN[end], err = n.stacks[host].Dial(now, o)
		n.stacks[host].Kick(now)
	}
	if err == nil {
		n.flows.streams[host][c.QPN[end]] = uint32(c.Conn) - 1
	}
	return err
}

// streamPair returns the options of the two ends of a connection.
func (n *Network) streamPair(c *OpenEnd) (a, b stack.Options) {
	f, i, generation := &c.Flow, uint32(c.Conn)-1, c.Generation
	class := n.cfg.Host.Class
	if f.Class != 0 {
		class = uint8(f.Class.number())
	}
	a = stack.Options{TCP: f.TCP.Config, Remote: n.addrs[f.Dst], RemoteMAC: n.nextHop(f.Src, f.Dst), RemotePort: tcpPort, LocalPort: f.SrcPort, Class: class, DSCP: class * 8}
	if a.LocalPort == 0 {
		a.LocalPort = entropy(n.cfg.Seed, f, 0)
	}
	b = a
	b.Remote, b.RemoteMAC, b.LocalPort, b.RemotePort, b.ReadRate = n.addrs[f.Src], n.nextHop(f.Dst, f.Src), tcpPort, a.LocalPort, f.TCP.ReadRate
	a.ISS, b.ISS = i*0x9e3779b9+generation*0x85ebca6b, i*0xc2b2ae35+generation*0x27d4eb2f
	return a, b
}

// nextHop returns the destination MAC address of frames from host src to host dst.
func (n *Network) nextHop(src, dst int) wirefmt.MAC {
	if mac := n.remoteMAC(src, dst); !mac.IsZero() {
		return mac
	}
	return n.Hosts[src].Config().Gateway
}

// collectTCP processes what has ended at the connections of host h.
func (n *Network) collectTCP(now frame.Time, h int) {
	fl := &n.flows
	var buf [64]stack.Completion
	for {
		k := n.stacks[h].TakeCompletions(buf[:])
		for j := range buf[:k] {
			e := &buf[j]
			i, ok := fl.streams[h][e.End]
			if !ok {
				continue // closed in the meantime
			}
			switch e.Op {
			case stack.Arrived:
				n.received(now, i)
			case stack.Sent:
				n.finished(now, i, Done{Retransmits: e.Retransmitted, Timeouts: e.Timeouts}, e.Bytes, e.ID)
			case stack.Failed:
				n.flows.count.Failed++
				if n.flows.err == nil && !errors.Is(e.Err, tcp.ErrTimedOut) {
					n.flows.err = fmt.Errorf("host %s: %w", n.HostName(h), e.Err)
				}
			}
		}
		if k < len(buf) {
			return
		}
	}
}

// OnStream sets the function that returns the taps of the two ends of each TCP connection
// that opens, the sender's first.
func (n *Network) OnStream(f func(f *Flow, a, b *stack.Options) (stack.Tap, stack.Tap)) {
	n.tap = f
}

// Stacks returns the TCP stacks by host, nil where a host has none.
func (n *Network) Stacks() []*endpoint.Endpoint { return n.stacks }

// Stream returns the sender's end of a TCP connection, nil if c is none.
func (n *Network) Stream(c Conn) *tcp.Conn {
	i := int(c) - 1
	if i < 0 || i >= len(n.flows.conns) || !n.flows.conns[i].open || n.flows.conns[i].flow.TCP == nil {
		return nil
	}
	k := &n.flows.conns[i]
	return n.stacks[k.flow.Src].Conn(k.qp[0])
}

// Acked returns the number of acknowledged bytes of a connection.
func (n *Network) Acked(c Conn) uint64 {
	if s := n.Stream(c); s != nil {
		return s.Stats.BytesAcked
	}
	nic, qpn, ok := n.Sender(c)
	if !ok {
		return 0
	}
	v, err := nic.QP(qpn)
	if err != nil {
		return 0
	}
	return v.Acked
}

// IdealTCP is Ideal for a message over TCP whose window never limits it. handshake adds
// the handshake, acked the return of the last acknowledgement.
func (n *Network) IdealTCP(src, dst int, bytes uint64, handshake, acked bool) frame.Time {
	there, back := n.way(src, dst), n.way(dst, src)
	payload := uint64(n.cfg.payload())
	full := uint64(0)
	if bytes > payload {
		full = (bytes - 1) / payload
	}
	d := n.ways.alone(there, full, n.cfg.frame(tcpHeader+int(payload)), n.cfg.frame(tcpHeader+int(bytes-full*payload)))
	if handshake {
		d += n.ways.alone(there, 0, wire{}, n.cfg.frame(tcpSYN)) + n.ways.alone(back, 0, wire{}, n.cfg.frame(tcpSYN))
	}
	if acked {
		d += n.ways.alone(back, 0, wire{}, n.cfg.frame(tcpHeader))
	}
	return nanoseconds(d)
}
