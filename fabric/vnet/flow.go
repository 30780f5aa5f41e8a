package vnet

import (
	"cmp"
	"errors"
	"fmt"

	"gswitch/frame"
	"gswitch/hostnic"
	"gswitch/transport"
)

// Flow is a transfer of bytes from one host to another.
type Flow struct {
	ID       uint64 // chosen by the caller
	Group    int    // chosen by the caller, such as the entry of a workload
	Src, Dst int    // hosts
	Bytes    uint64 // of payload

	// The fields below override Config.Host if they are not zero.
	Class     ClassChoice
	Transport *transport.Config // queue pairs keep the pointer: the value must not change
	// LowClasses are the classes of the levels of Transport.Recursive. They override
	// those of the host if Transport is set.
	LowClasses []uint8
	CC         Algorithm
	NoECN      bool // see hostnic.QPConfig
	// TCP makes the flow a TCP byte stream. Of the fields above only Class then applies.
	TCP *TCP

	// SrcPort and AckPort are the UDP source ports of data and of acknowledgements.
	// Switches choose among equal paths by them. 0 = spread.
	SrcPort, AckPort uint16
}

// end returns 0 if a host is the sender, 1 if it is the receiver.
func (f *Flow) end(host int) int {
	if host == f.Src {
		return 0
	}
	return 1
}

// Done reports the end of a message of a flow or connection. Times are the engine's, not
// those of the hosts' clocks.
type Done struct {
	Flow Flow // as it was started; Bytes and ID are those of the message
	Conn Conn // the connection, 0 for a flow

	Start       frame.Time // when it was posted
	SenderEnd   frame.Time // arrival of the last acknowledgement
	ReceiverEnd frame.Time // arrival of the last byte
	Retransmits uint32     // frames sent again
	Timeouts    uint32     // of the sender during the message
}

// FCT returns the flow completion time at the receiver.
func (d *Done) FCT() frame.Time { return d.ReceiverEnd - d.Start }

// Conn identifies a connection that stays open for several messages; 0 is none.
type Conn uint32

// conn is a pair of queue pairs.
type conn struct {
	flow       Flow      // with TCP: with the sender's port
	qp         [2]uint32 // of the sender and the receiver; with TCP: the ends in the stacks
	generation uint32
	posted     uint64 // bytes of all messages
	single     bool   // closes itself after its only message
	open       bool
	began      frame.Time   // when the message of a single was posted
	ended      frame.Time   // end of that message at the receiver
	starts     []frame.Time // of a connection: when unfinished messages were posted, from first on
	first      int
	arrivals   []frame.Time // of a connection: ends at the receiver that have not yet been acknowledged to the sender
}

// flows keeps the connections of a network.
type flows struct {
	conns []conn
	free  []uint32
	peer  []map[uint32]uint32 // by host: queue pair number to connection
	// streams is the same for TCP, if any.
	streams []map[uint32]uint32
	done    func(now frame.Time, d *Done)
	there   func(now frame.Time, c Conn)
	rtt     func(now frame.Time, c Conn, rtt frame.Time)
	rtts    [64]hostnic.RTTSample
	buf     [64]hostnic.Completion
	out     Done // passed to done, to avoid an allocation
	each    Open // passed to EachOpen's function
	given   given
	count   Counts
	err     error
}

// Counts counts messages and connections of a network.
type Counts struct {
	Started, Finished uint64 // messages
	Bytes             uint64 // payload of those that finished
	Retransmits       uint64 // frames sent again for those that finished
	Open              int    // connections and flows now
	Failed            uint64 // TCP connections that were given up
}

func (f *flows) init(n *Network) {
	f.peer = make([]map[uint32]uint32, len(n.Hosts))
	for i := range f.peer {
		f.peer[i] = map[uint32]uint32{}
	}
}

// OnDone sets the function that is called at the end of each message, in the engine's
// time. d is valid only during the call. The function may start flows.
func (n *Network) OnDone(f func(now frame.Time, d *Done)) { n.flows.done = f }

// OnArrival sets the function that is called when a message of a connection has arrived
// completely, in the order of sending and before its sender knows. The function may start
// flows.
func (n *Network) OnArrival(f func(now frame.Time, c Conn)) { n.flows.there = f }

// OnRTT sets the function that is called with each round-trip time that an
// acknowledgement of a connection or flow gives, without the serialisation time of the
// frame or segment itself. It needs Config.RTTs.
func (n *Network) OnRTT(f func(now frame.Time, c Conn, rtt frame.Time)) { n.flows.rtt = f }

// Counts returns the counters of messages and connections.
func (n *Network) Counts() Counts { return n.flows.count }

// Err returns the first error that occurred while the network ran, such as a queue pair
// that could not be closed, or nil.
func (n *Network) Err() error { return n.flows.err }

// StartFlow opens a pair of queue pairs and posts f.Bytes on it. Both close when the last
// acknowledgement has arrived, and later flows reuse their memory.
func (n *Network) StartFlow(now frame.Time, f *Flow) error {
	c, err := n.dial(now, f)
	if err != nil {
		return err
	}
	n.flows.conns[c].single = true
	return n.post(now, c, f.Bytes, f.ID)
}

// Dial opens a connection for messages from f.Src to f.Dst. f.Bytes is ignored; f.ID and
// f.Group identify the connection.
func (n *Network) Dial(now frame.Time, f *Flow) (Conn, error) {
	c, err := n.dial(now, f)
	return Conn(c + 1), err
}

// Send posts a message on a connection.
func (n *Network) Send(now frame.Time, c Conn, bytes, id uint64) error {
	i := uint32(c) - 1
	if c == 0 || int(i) >= len(n.flows.conns) || !n.flows.conns[i].open || n.flows.conns[i].single {
		return fmt.Errorf("virtual network %s: connection %d is not open", n.Topology.Name, c)
	}
	return n.post(now, i, bytes, id)
}

// Close closes a connection. Its unfinished messages never end.
func (n *Network) Close(now frame.Time, c Conn) error {
	i := uint32(c) - 1
	if c == 0 || int(i) >= len(n.flows.conns) || !n.flows.conns[i].open || n.flows.conns[i].single {
		return fmt.Errorf("virtual network %s: connection %d is not open", n.Topology.Name, c)
	}
	return n.close(now, i)
}

func (n *Network) dial(now frame.Time, f *Flow) (uint32, error) {
	if f.Src == f.Dst || f.Src < 0 || f.Dst < 0 || f.Src >= len(n.Hosts) || f.Dst >= len(n.Hosts) {
		return 0, fmt.Errorf("virtual network %s: no flow from host %d to host %d of %d", n.Topology.Name, f.Src, f.Dst, len(n.Hosts))
	}
	fl := &n.flows
	if len(fl.free) == 0 {
		fl.conns = append(fl.conns, conn{})
		fl.free = append(fl.free, uint32(len(fl.conns)-1))
	}
	i := fl.free[len(fl.free)-1]
	o := &fl.given.open
	*o = OpenEnd{Ends: Ends{Conn: Conn(i + 1), Generation: fl.conns[i].generation}, Flow: *f}
	choose := n.chooseQPs
	if f.TCP != nil {
		choose = n.choosePort
	}
	if err := choose(o); err != nil {
		return 0, err
	}
	if err := n.openEnds(now, o, [2]bool{true, true}); err != nil {
		return 0, err
	}
	fl.free = fl.free[:len(fl.free)-1]
	if f.TCP != nil {
		n.Engine.Poke(n.engine[n.hostNode[f.Src]]) // a SYN waits
	}
	return i, nil
}

// openEnds opens the ends of a connection of which here says that they are local.
func (n *Network) openEnds(now frame.Time, o *OpenEnd, here [2]bool) error {
	fl, f := &n.flows, &o.Flow
	for len(fl.conns) < int(o.Conn) {
		fl.conns = append(fl.conns, conn{})
	}
	k := &fl.conns[o.Conn-1]
	if k.open {
		return fmt.Errorf("virtual network %s: connection %d is open already", n.Topology.Name, o.Conn)
	}
	*k = conn{flow: *f, generation: o.Generation, arrivals: k.arrivals[:0], starts: k.starts[:0]}
	hosts, opened := [2]int{f.Src, f.Dst}, -1
	for _, end := range [2]int{1, 0} { // over TCP the receiver listens before the sender dials
		if !here[end] {
			continue
		}
		err := n.hand(now, hosts[end], o)
		k.qp = o.QPN
		if err != nil && opened >= 0 {
			err = errors.Join(err, n.hand(now, hosts[opened], &CloseEnd{o.Conn, o.Generation}))
		}
		if err != nil {
			return err
		}
		opened = end
	}
	k.open = true
	fl.count.Open++
	return nil
}

// closeEnds closes the ends of a connection of which here says that they are local. The
// error is the first one.
func (n *Network) closeEnds(now frame.Time, i uint32, here [2]bool) (err error) {
	k := &n.flows.conns[i]
	k.open = false
	n.flows.count.Open--
	c := &n.flows.given.close
	*c = CloseEnd{Conn(i + 1), k.generation}
	for end, host := range [2]int{k.flow.Src, k.flow.Dst} {
		if here[end] {
			err = cmp.Or(err, n.hand(now, host, c))
		}
	}
	return err
}

// hostTime returns the host's own time. All times passed to the host are in it.
func (n *Network) hostTime(now frame.Time, host int) frame.Time {
	return n.Engine.LocalTime(n.engine[n.hostNode[host]], now)
}

// chooseQPs fills in the numbers that the queue pairs of a connection will have.
func (n *Network) chooseQPs(o *OpenEnd) (err error) {
	for end, host := range [2]int{o.Flow.Src, o.Flow.Dst} {
		if o.QPN[end], err = n.Hosts[host].NextQP(); err != nil {
			return err
		}
	}
	return nil
}

// pair returns the configurations of the two queue pairs of connection i.
func (n *Network) pair(f *Flow, i, generation uint32) (a, b hostnic.QPConfig) {
	h := &n.cfg.Host
	class := h.Class
	if f.Class != 0 {
		class = uint8(f.Class.number())
	}
	tr, alg, low := &n.Derived.Transport, &h.CC, h.LowClasses
	if f.Transport != nil {
		tr, low = f.Transport, f.LowClasses
	}
	if f.CC.New != nil {
		alg = &f.CC
	}
	psn := i*0x9e3779b9 + generation*0x85ebca6b // so that a late frame of the previous connection is out of range
	common := hostnic.QPConfig{Class: class, Transport: *tr, LowClasses: low, Writes: h.Writes, CC: alg.New, CCName: alg.Name, NoECN: f.NoECN,
		INT: n.cfg.INT.Mode, INTProfile: n.cfg.INT.Profile, INTRates: n.intRates, InitialPSN: psn >> 8,
		Segment: h.Segment, SegmentRate: h.SegmentRate, LazyPacing: h.LazyPacing, KeepPlanned: h.KeepPlanned}
	a, b = common, common
	a.RemoteAddr, a.RemoteMAC, a.SrcPort = n.addrs[f.Dst], n.remoteMAC(f.Src, f.Dst), f.SrcPort
	b.RemoteAddr, b.RemoteMAC, b.SrcPort = n.addrs[f.Src], n.remoteMAC(f.Dst, f.Src), f.AckPort
	if a.SrcPort == 0 {
		a.SrcPort = entropy(n.cfg.Seed, f, 0)
	}
	if b.SrcPort == 0 {
		b.SrcPort = entropy(n.cfg.Seed, f, 1)
	}
	return a, b
}

// entropy is a source port from the dynamic range, by which RoCEv2 spreads queue pairs
// over equal paths (IBTA A17.9.2). It depends on nothing but the flow.
func entropy(seed uint64, f *Flow, direction uint64) uint16 {
	r := frame.NewRand(seed ^ f.ID<<32 ^ uint64(f.Src)<<17 ^ uint64(f.Dst)<<1 ^ direction)
	return 0xc000 | uint16(r.Uint64()>>50)
}

func (n *Network) post(now frame.Time, i uint32, bytes, id uint64) error {
	c := &n.flows.conns[i]
	p := &n.flows.given.post
	*p = Post{Conn(i + 1), c.generation, bytes, id}
	if c.flow.TCP != nil {
		if err := n.hand(now, c.flow.Dst, p); err != nil {
			return err
		}
	}
	if err := n.hand(now, c.flow.Src, p); err != nil {
		return err
	}
	c.posted += bytes
	c.begin(now)
	n.flows.count.Started++
	n.Engine.Poke(n.engine[n.hostNode[c.flow.Src]])
	return nil
}

// begin records when a message is posted, in the engine's time: the host's clock may run
// at another rate, and be set meanwhile.
func (c *conn) begin(now frame.Time) {
	if c.single {
		c.began = now
		return
	}
	c.starts = append(c.starts, now)
}

// start returns when the message that ends next was posted: messages end in order.
func (c *conn) start() frame.Time {
	if c.single {
		return c.began
	}
	at := c.starts[c.first]
	if c.first++; 2*c.first >= len(c.starts) {
		c.starts = append(c.starts[:0], c.starts[c.first:]...)
		c.first = 0
	}
	return at
}

func (n *Network) close(now frame.Time, i uint32) error {
	fl := &n.flows
	err := n.closeEnds(now, i, [2]bool{true, true})
	c := &fl.conns[i]
	c.generation++
	fl.free = append(fl.free, i)
	n.Engine.Poke(n.engine[n.hostNode[c.flow.Src]])
	n.Engine.Poke(n.engine[n.hostNode[c.flow.Dst]])
	return err
}

// collect processes what has ended at host h.
func (n *Network) collect(now frame.Time, h int) {
	fl := &n.flows
	for {
		k := n.Hosts[h].TakeCompletions(fl.buf[:])
		// A callback may start flows and thereby change hosts, but only the engine steps
		// them, so this function is not re-entered.
		for i := range fl.buf[:k] {
			e := &fl.buf[i]
			c, ok := fl.peer[h][e.QPN]
			if !ok || e.Status != hostnic.StatusOK {
				continue // flushed by a close
			}
			switch e.Op {
			case hostnic.RecvDone:
				n.received(now, c)
			case hostnic.SendDone:
				n.finished(now, c, Done{Retransmits: e.Retransmitted, Timeouts: e.Timeouts}, e.Bytes, e.ID)
			}
		}
		if k < len(fl.buf) {
			return
		}
	}
}

// times processes the round-trip times that host h measured.
func (n *Network) times(now frame.Time, h int) {
	fl := &n.flows
	for {
		k := n.Hosts[h].TakeRTTs(fl.rtts[:])
		for i := range fl.rtts[:k] {
			if c, ok := fl.peer[h][fl.rtts[i].QPN]; ok && fl.rtt != nil {
				fl.rtt(now, Conn(c+1), fl.rtts[i].RTT)
			}
		}
		if k < len(fl.rtts) {
			return
		}
	}
}

// received records the end of a message at its receiver, which precedes the end at its
// sender.
func (n *Network) received(now frame.Time, i uint32) {
	c := &n.flows.conns[i]
	if c.single {
		c.ended = now
		return
	}
	c.arrivals = append(c.arrivals, now)
	if n.flows.there != nil {
		n.flows.there(now, Conn(i+1))
	}
}

// finished records that a message was acknowledged.
func (n *Network) finished(now frame.Time, i uint32, v Done, bytes, id uint64) {
	fl := &n.flows
	c := &fl.conns[i]
	d := &fl.out
	*d = v
	d.Start, d.SenderEnd, d.Flow = c.start(), now, c.flow
	d.Flow.Bytes, d.Flow.ID = bytes, id
	if c.single {
		d.ReceiverEnd = c.ended
		if err := n.close(now, i); err != nil && fl.err == nil {
			fl.err = err
		}
	} else {
		d.Conn = Conn(i + 1)
		if len(c.arrivals) > 0 {
			d.ReceiverEnd = c.arrivals[0]
			c.arrivals = append(c.arrivals[:0], c.arrivals[1:]...)
		}
	}
	fl.count.Finished++
	fl.count.Bytes += d.Flow.Bytes
	fl.count.Retransmits += uint64(d.Retransmits)
	if fl.done != nil {
		fl.done(now, d)
	}
}
