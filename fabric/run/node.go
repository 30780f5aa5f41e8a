package run

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gswitch/fabric"
	"gswitch/fabric/live"
	"gswitch/fabric/scenario"
	"gswitch/fabric/vnet"
	"gswitch/frame"
)

// Node steps some nodes of a run on real frames as one of its processes, and follows the
// orders of the process at the other end of the socket, which runs the scenario. version
// is that of the program. gone is called when the other end has closed: the results are
// then of no use, and gone must not return.
func Node(c io.ReadWriter, version string, gone func()) error {
	p := newPipe(c)
	var s setup
	if err := p.read(&s); err != nil {
		return fmt.Errorf("there is no run to execute: %w", err)
	}
	err := s.check(version)
	if err == nil {
		var m *member
		if m, err = newMember(&s, p); err == nil {
			return m.run(gone)
		}
	}
	return errors.Join(err, p.send(&report{Error: err.Error()}))
}

func (s *setup) check(version string) error {
	if s.Version != version {
		return fmt.Errorf("the program was replaced while it ran: version %q is to step nodes for version %q", version, s.Version)
	}
	return nil
}

// member is a process of a run.
type member struct {
	s      *setup
	p      *pipe
	r      *scenario.Run
	n      *vnet.Network
	e      *live.Engine
	common [][]vnet.Flow // by entry of the workload and sender
	ports  sampled

	// Used only on the thread of the callbacks.
	conns  map[vnet.Conn]*ending // by serial
	slots  []*ending             // by Conn of the network
	repeat map[uint64]posting    // by id: messages that are followed by others like them
	mine   []int                 // queues of switches that are stepped here
	last   summary
	queue  []uint64
	sent   []uint64

	begin chan int64
	over  chan struct{} // closed when the run should end
	once  sync.Once

	finished atomic.Bool // the last report has been sent, or is about to be
	gate     sync.Mutex  // guards halted; once that is set, the engine must not be called
	halted   bool

	mu     sync.Mutex // guards the fields below
	events []event
	ready  chan struct{} // signals events to report
}

// ending is a connection with at least one local end.
type ending struct {
	serial vnet.Conn
	at     vnet.Conn // identifier in the network
	here   [2]bool   // local ends: sender, receiver
	stream bool
	bytes  uint64 // acknowledged bytes at the last sample
	posted bool
}

func newMember(s *setup, p *pipe) (*member, error) {
	sc, err := scenario.Parse(s.File, s.Document, scenario.Options{Seeds: []uint64{s.Seed}})
	if err != nil {
		return nil, err
	}
	m := &member{s: s, p: p, r: &sc.Runs[0], conns: map[vnet.Conn]*ending{}, repeat: map[uint64]posting{},
		begin: make(chan int64, 1), over: make(chan struct{}), ready: make(chan struct{}, 1)}
	if len(s.Own) != len(m.r.Topology.Nodes) || len(s.Ends) != len(s.Own) {
		return nil, fmt.Errorf("a network of %d nodes is not the one of %d that is meant", len(m.r.Topology.Nodes), len(s.Own))
	}
	for i := range s.Ends {
		if n := &m.r.Topology.Nodes[i]; len(s.Ends[i]) != len(n.Links) {
			return nil, fmt.Errorf("node %s has %d links, and interfaces for %d are given", n.Name, len(n.Links), len(s.Ends[i]))
		}
	}
	part := &live.Part{Name: s.Name, Own: s.Own, Processes: s.Processes, Begin: m.await}
	maker := live.Maker(live.Config{Wires: s, Dilation: s.Dilation, Bound: s.Bound, Workers: s.Workers, Poll: s.Poll, CPUs: s.CPUs, Part: part})
	if m.n, err = build(m.r, func(spec *vnet.EngineSpec) (vnet.Engine, error) {
		e, err := maker(spec)
		m.e, _ = e.(*live.Engine)
		return e, err
	}, extras{pauses: s.Pauses}); err != nil {
		return nil, err
	}
	if err := m.prepare(); err != nil {
		return nil, errors.Join(err, m.n.Engine.Close())
	}
	return m, nil
}

// prepare schedules everything that is known before time starts.
func (m *member) prepare() error {
	for i := range m.r.Doc.Workload {
		flows, err := common(m.n, m.r, i)
		if err != nil {
			return err
		}
		m.common = append(m.common, flows)
	}
	_, m.ports = recorder(m.n, m.r)
	m.queue, m.sent = make([]uint64, len(m.ports.queues)), make([]uint64, len(m.ports.links))
	for i, q := range m.ports.queues {
		if m.s.Own[m.n.SwitchNode(q.Switch)] {
			m.mine = append(m.mine, i)
		}
	}
	m.n.OnDone(m.done)
	m.n.OnArrival(m.arrived)
	m.n.OnRTT(m.rtt)
	sample, bin := frame.Time(m.r.Doc.Measure.Sample), frame.Time(m.r.Doc.Measure.Bin)
	m.n.Publish(min(sample, bin))
	m.n.Engine.Every(sample, sample, func(now frame.Time) { m.lookAtQueues(int64(now / sample)) })
	m.n.Engine.Every(bin, bin, func(now frame.Time) { m.lookAtFlows(int64(now / bin)) })
	return inject(m.n, m.r)
}

// run follows its orders until the run is over, and sends the measurements.
func (m *member) run(gone func()) error {
	// Beside the workers there is little to do, but it must be done promptly.
	runtime.GOMAXPROCS(min(2, runtime.GOMAXPROCS(0)))
	go m.listen(gone)
	reported := make(chan error, 1)
	stop := make(chan struct{})
	err := m.n.Engine.Run(0)
	go func() { reported <- m.report(stop) }()
	if err == nil {
		err = m.n.Engine.Run(m.s.Duration)
	}
	select {
	case <-m.over:
		if errors.Is(err, errOver) {
			err = nil
		}
	default:
	}
	m.gate.Lock()
	m.halted = true
	m.gate.Unlock()
	err = errors.Join(err, m.n.Halt(), m.n.Err())
	close(stop)
	err = errors.Join(err, <-reported)
	if err == nil {
		err = m.summarize()
	}
	m.finished.Store(true)
	// A run that lost track of frames is worthless.
	if err = errors.Join(err, m.n.Engine.Close()); err != nil {
		return errors.Join(err, m.p.send(&report{Error: err.Error()}))
	}
	return m.p.send(&report{Last: &m.last})
}

// errOver ends a run early.
var errOver = errors.New("the run is over")

// await reports that all is ready and waits for the instant at which time starts.
func (m *member) await() (time.Time, error) {
	if err := m.p.send(&report{Ready: true}); err != nil {
		return time.Time{}, err
	}
	return instant(<-m.begin)
}

// listen receives orders until the socket closes.
func (m *member) listen(gone func()) {
	for {
		var o order
		if err := m.p.read(&o); err != nil {
			if !m.finished.Load() {
				gone()
			}
			return
		}
		var do func(now frame.Time) error
		switch {
		case o.Begin != 0:
			select {
			case m.begin <- o.Begin:
			default:
			}
		case o.End:
			m.once.Do(func() { close(m.over) })
			m.e.Stop(errOver)
		case o.Open != nil:
			do = func(now frame.Time) error { return m.open(now, o.Open) }
		case o.Post != nil:
			do = func(now frame.Time) error { return m.plan(now, o.Post) }
		case o.Close != nil:
			do = func(now frame.Time) error { return m.close(now, o.Close) }
		}
		if do != nil {
			m.call(do)
		}
	}
}

// call runs do on the thread of the callbacks, unless the engine has halted.
func (m *member) call(do func(now frame.Time) error) {
	m.gate.Lock()
	defer m.gate.Unlock()
	if m.halted {
		return
	}
	if err := m.e.Call(func(now frame.Time) {
		if err := do(now); err != nil {
			m.e.Stop(err)
		}
	}); err != nil {
		m.e.Stop(err)
	}
}

func (m *member) open(now frame.Time, o *opening) error {
	if o.Group < 0 || o.Group >= len(m.common) || o.Src < 0 || o.Src >= len(m.n.Hosts) || o.Dst < 0 || o.Dst >= len(m.n.Hosts) {
		return fmt.Errorf("connection %d of entry %d from host %d to host %d: there is none of them", o.Serial, o.Group, o.Src, o.Dst)
	}
	f := m.common[o.Group][o.Src]
	f.ID, f.Src, f.Dst, f.NoECN = o.ID, o.Src, o.Dst, o.NoECN
	e := &ending{serial: o.Serial, at: o.Ends.Conn, here: [2]bool{m.s.Own[m.n.HostNode(o.Src)], m.s.Own[m.n.HostNode(o.Dst)]}, stream: o.Stream}
	if err := m.n.OpenEnds(now, &f, o.Ends, e.here); err != nil {
		return err
	}
	for len(m.slots) < int(e.at) {
		m.slots = append(m.slots, nil)
	}
	m.slots[e.at-1] = e
	m.conns[o.Serial] = e
	if e.here[1] {
		m.add(event{What: opened, Serial: o.Serial, At: now})
	}
	return nil
}

// plan posts a message at its time, or immediately if that has passed. The delay is
// reported when the message is done.
func (m *member) plan(_ frame.Time, p *posting) error {
	e := m.conns[p.Serial]
	if e == nil || !e.here[0] {
		return fmt.Errorf("a message of connection %d, which does not begin here", p.Serial)
	}
	if p.Until != 0 {
		m.repeat[p.ID] = *p
	}
	m.e.At(p.At, func(now frame.Time) {
		e.posted = true
		if err := m.n.Send(now, e.at, p.Bytes, p.ID); err != nil {
			m.e.Stop(err)
		}
	})
	return nil
}

func (m *member) close(now frame.Time, c *closing) error {
	e := m.conns[c.Serial]
	if e == nil {
		return fmt.Errorf("connection %d is not open", c.Serial)
	}
	delete(m.conns, c.Serial)
	m.slots[e.at-1] = nil
	return m.n.CloseEnds(now, e.at, e.here)
}

// arrived reports that a message has arrived here.
func (m *member) arrived(now frame.Time, c vnet.Conn) {
	if e := m.slots[c-1]; !e.stream {
		m.add(event{What: arrived, Serial: e.serial, At: now})
	}
}

// done reports that a message from here was acknowledged, and posts the next one of a
// stream.
func (m *member) done(now frame.Time, d *vnet.Done) {
	e := m.slots[d.Conn-1]
	h := event{What: sent, Serial: e.serial, At: now, ID: d.Flow.ID, Start: d.Start, Retrans: d.Retransmits, Timeouts: d.Timeouts}
	if p, ok := m.repeat[d.Flow.ID]; ok && now < p.Until {
		if err := m.n.Send(now, e.at, p.Bytes, p.ID); err != nil {
			m.e.Stop(err)
		}
	}
	m.add(h)
}

func (m *member) rtt(now frame.Time, c vnet.Conn, rtt frame.Time) {
	if e := m.slots[c-1]; e != nil {
		m.last.RTTs = append(m.last.RTTs, sampledRTT{now, e.serial, rtt})
	}
}

// add appends an event to the next report without waiting.
func (m *member) add(h event) {
	m.mu.Lock()
	m.events = append(m.events, h)
	m.mu.Unlock()
	select {
	case m.ready <- struct{}{}:
	default:
	}
}

// report sends events until stop is closed, and then the remaining ones.
func (m *member) report(stop chan struct{}) error {
	for {
		over := false
		select {
		case <-m.ready:
		case <-stop:
			over = true
		}
		m.mu.Lock()
		events := m.events
		m.events = nil
		m.mu.Unlock()
		if len(events) > 0 {
			if err := m.p.send(&report{Events: events}); err != nil {
				m.e.Stop(err)
				return err
			}
		}
		if over {
			return nil
		}
	}
}

// lookAtQueues records the queues that changed since the last sample.
func (m *member) lookAtQueues(tick int64) {
	for _, i := range m.mine {
		if b := m.n.Queue(m.ports.queues[i]); b != m.queue[i] {
			m.queue[i] = b
			m.last.Queues = append(m.last.Queues, sampledQueue{tick, i, b})
		}
	}
}

// lookAtFlows records the bytes that local ports' links have carried and local senders
// had acknowledged.
func (m *member) lookAtFlows(bin int64) {
	for i, sent := range m.ports.links {
		if b := sent(); b != m.sent[i] {
			m.sent[i] = b
			m.last.Sent = append(m.last.Sent, sampledLink{bin, i, b})
		}
	}
	for _, e := range m.slots {
		if e == nil || !e.here[0] || !e.posted {
			continue
		}
		if b := m.n.Acked(e.at); b != e.bytes {
			e.bytes = b
			m.last.Acked = append(m.last.Acked, sampledConn{bin, e.serial, b})
		}
	}
}

// summarize collects what the process measured, and sends separately what may be too much
// for one message.
func (m *member) summarize() error {
	m.last.Timing, m.last.Links, m.last.Tally = m.e.ProcessTiming(), m.n.Engine.Stats(), count(m.n)
	m.last.Waits = m.n.Waits(m.n.Engine.Now())
	v, forgotten := m.n.PauseLog(m.n.Engine.Now())
	m.last.Forgotten = forgotten
	for part := range slices.Chunk(v, mostPauses) {
		if err := m.p.send(&report{Pauses: part}); err != nil {
			return err
		}
	}
	return nil
}

var _ live.Wires = (*setup)(nil)

// ownOf marks the nodes of a process.
func ownOf(t *fabric.Topology, p *live.Process) []bool {
	own := make([]bool, len(t.Nodes))
	for _, n := range p.Nodes {
		own[n] = true
	}
	return own
}
