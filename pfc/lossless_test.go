package pfc_test

import (
	"testing"

	"gswitch/buffer"
	"gswitch/frame"
	"gswitch/pfc"
	"gswitch/scheduler"
	"gswitch/sim"
	"gswitch/wire"
)

// A lossless switch out of its parts: senders that are always backlogged and
// honour pauses feed a shared buffer through cables, faster than the egress ports
// drain it. The way back carries full-size frames without end, so that every
// pause frame meets one in progress. With the computed headroom no lossless
// frame is ever lost; with less, frames are.

const (
	mtu      = 1514
	overhead = scheduler.EthernetOverhead
)

// link is one ingress port of the switch and the sender behind it.
type link struct {
	rate       uint64
	delay      frame.Time
	react      frame.Time // from a pause frame to its effect
	sender     *scheduler.Port
	senderWake frame.Time
	far        *pfc.Port // the sender's end
	back       *scheduler.Port
	backWake   frame.Time
	asks       *pfc.Port // the switch's end
}

type model struct {
	t         *testing.T
	rng       frame.Rand
	pool      *frame.Pool
	now       frame.Time
	queue     sim.Agenda
	links     []*link
	outs      []*scheduler.Port
	outWake   []frame.Time
	buf       *buffer.Buffer
	response  frame.Time
	sending   bool
	lossless  uint64 // frames delivered
	drops     [frame.NumReasons]int
	lostClass [8]int
	ctl       [64]byte
	stages    uint8 // of Gentle Flow Control; 0: pauses
}

func (m *model) after(d frame.Time, f func()) {
	m.queue.Put(sim.Entry{At: m.now + d, Do: func(frame.Time) { f() }})
}

func (m *model) rand(n frame.Time) frame.Time { return frame.Time(m.rng.Uint32n(uint32(n) + 1)) }

// span is the time that n bytes and the link overhead take, rounded up.
func span(n uint32, rate uint64) frame.Time {
	return frame.Time((uint64(n+overhead)*8e9 + rate - 1) / rate)
}

func newModel(t *testing.T, seed uint64, spare func(need uint64) uint64) *model {
	return newModelOf(t, seed, spare, 0, nil)
}

// newModelOf is one with stages in place of pauses, and where span is not nil
// over so many bytes.
func newModelOf(t *testing.T, seed uint64, spare func(need uint64) uint64, stages uint8, span func(safe uint64) uint64) *model {
	m := &model{t: t, rng: frame.NewRand(seed), sending: true, stages: stages}
	m.pool = frame.NewPool(frame.MustArena(16384, 256, 0))
	senders, outs := 2+int(m.rng.Uint32n(5)), 1+int(m.rng.Uint32n(2))
	m.response = m.rand(2000)
	cfg := buffer.Config{Cell: []uint32{0, 64, 208}[m.rng.Uint32n(3)], Ports: make([]buffer.PortConfig, senders+outs)}
	size := uint64(60_000)
	alpha := []float64{0.0625, 0.11, 0.5, 2}[m.rng.Uint32n(4)]
	static := uint64(m.rng.Uint32n(2)) * 5000
	for i := 0; i < senders; i++ {
		l := &link{rate: uint64(1+m.rng.Uint32n(100)) * 1e9, delay: m.rand(3000), react: m.rand(m.response - m.response/2)}
		l.sender = scheduler.NewPort(m.pool.Arena, scheduler.PortConfig{Rate: l.rate, Overhead: overhead}, seed)
		l.back = scheduler.NewPort(m.pool.Arena, scheduler.PortConfig{Rate: l.rate, Overhead: overhead}, seed)
		flow := pfc.Config{Mode: pfc.PFC, Enable: 1<<3 | 1<<4, Rate: l.rate, Stages: stages}
		l.far, l.asks = pfc.NewPort(flow), pfc.NewPort(flow)
		m.links = append(m.links, l)
		pc := &cfg.Ports[i]
		pc.Link = buffer.Link{Rate: l.rate, Delay: l.delay, MaxFrame: mtu, Overhead: overhead, Response: m.response}
		need := buffer.Headroom(pc.Link, cfg.Cell).Total()
		for _, c := range []int{3, 4} {
			g := &pc.Groups[c]
			g.Lossless, g.Limit.Alpha, g.Limit.Bytes, g.XONOffset = true, alpha, static, uint64(m.rng.Uint32n(3000))
			if g.Limit.Bytes != 0 && g.XONOffset > static {
				g.XONOffset = static
			}
			if stages != 0 {
				g.Limit = buffer.Threshold{Bytes: static + 5000}
				g.XONOffset = min(g.XONOffset, static)
				g.Stages, g.Span = stages, 2*buffer.Headroom(pc.Link, cfg.Cell).Skid()
				size += g.Span
				if span != nil {
					g.Span, g.NoHeadroomCheck, g.Headroom = span(g.Span), true, need
				}
			}
			if spare != nil {
				g.Headroom, g.NoHeadroomCheck = spare(need), true
			}
			size += need
		}
	}
	cfg.Size = size
	for j := 0; j < outs; j++ {
		rate := uint64(1+m.rng.Uint32n(40)) * 1e9
		m.outs = append(m.outs, scheduler.NewPort(m.pool.Arena, scheduler.PortConfig{Rate: rate, Overhead: overhead}, seed))
		cfg.Ports[senders+j].Queues[0].Limit.Alpha = 1
	}
	var err error
	if m.buf, err = buffer.New(cfg); err != nil {
		t.Fatal(err)
	}
	m.outWake = make([]frame.Time, outs)
	for i := range m.links {
		m.feed(m.links[i])
		m.feedBack(m.links[i])
		m.kickSender(i)
		m.kickBack(i)
	}
	m.disturb()
	return m
}

func (m *model) fresh(class int, n uint32) frame.Ref {
	r := m.pool.Alloc()
	if r == frame.Nil {
		m.t.Fatal("out of chunks")
	}
	meta := m.pool.Reset(r)
	meta.Class, meta.Queue, meta.Wire = uint8(class), uint8(class), n
	return r
}

// feed keeps every class of a sender backlogged, with frames of many sizes.
func (m *model) feed(l *link) {
	for _, c := range []int{0, 3, 4} {
		for n, _ := l.sender.QueueLen(c); n < 2 && m.sending; n++ {
			size := uint32(mtu)
			if m.rng.Uint32n(3) == 0 {
				size = 60 + m.rng.Uint32n(mtu-59)
			}
			l.sender.Enqueue(m.now, m.fresh(c, size))
		}
	}
}

func (m *model) feedBack(l *link) {
	if n, _ := l.back.QueueLen(7); n == 0 && m.sending {
		l.back.Enqueue(m.now, m.fresh(7, mtu))
	}
}

// kick arranges for step to run when the port wakes, once.
func (m *model) kick(p *scheduler.Port, wake *frame.Time, step func()) {
	at := p.Wake(m.now)
	if at == frame.Never || at == *wake && at > m.now {
		return
	}
	*wake = at
	m.after(at-m.now, func() {
		if p.Wake(m.now) <= m.now {
			step()
		} else if *wake == m.now {
			m.kick(p, wake, step) // paused meanwhile
		}
	})
}

func (m *model) kickSender(i int) {
	l := m.links[i]
	m.kick(l.sender, &l.senderWake, func() { m.send(i) })
}

// send puts the next frame of a sender on its cable.
func (m *model) send(i int) {
	l := m.links[i]
	var v [1]frame.Ref
	if l.sender.Dequeue(m.now, v[:]) == 1 {
		r := v[0]
		m.after(span(m.pool.Meta(r).Wire, l.rate)+l.delay, func() { m.arrive(i, r) })
		m.feed(l)
	}
	m.kickSender(i)
}

// arrive is the switch's ingress.
func (m *model) arrive(i int, r frame.Ref) {
	j := int(m.rng.Uint32n(uint32(len(m.outs))))
	meta := m.pool.Meta(r)
	meta.InPort, meta.OutPort = uint16(i), uint16(len(m.links)+j)
	if why := m.buf.Admit(meta); why != frame.Keep {
		m.drops[why]++
		m.lostClass[meta.Class]++
		m.pool.Free(r)
	} else {
		m.outs[j].Enqueue(m.now, r)
		m.kickOut(j)
	}
	m.flow()
}

func (m *model) kickOut(j int) { m.kick(m.outs[j], &m.outWake[j], func() { m.drain(j) }) }

// drain is the switch's egress.
func (m *model) drain(j int) {
	var v [1]frame.Ref
	if m.outs[j].Dequeue(m.now, v[:]) == 1 {
		meta := m.pool.Meta(v[0])
		if meta.Class != 0 {
			m.lossless++
		}
		m.buf.Release(meta)
		m.pool.Free(v[0])
	}
	m.kickOut(j)
	m.flow()
}

// flow sends the senders the pauses of the buffer, after our share of the
// reaction time.
func (m *model) flow() {
	if m.rng.Uint32n(8) == 0 {
		m.buf.Sweep()
	}
	for {
		port, ok := m.buf.NextDirty()
		if !ok {
			return
		}
		m.after(m.rand(m.response/2), func() {
			l := m.links[port]
			if m.stages != 0 {
				l.asks.RequestStages(pfc.Stages(m.buf.Stages(port)))
			} else {
				l.asks.Request(m.buf.Want(port))
			}
			m.ask(int(port))
		})
	}
}

// ask queues the pause frames that a port has to send.
func (m *model) ask(i int) {
	l := m.links[i]
	for n := l.asks.NextFrame(m.now, m.ctl[:]); n != 0; n = l.asks.NextFrame(m.now, m.ctl[:]) {
		r := m.pool.New(m.ctl[:n])
		l.back.EnqueueControl(r)
	}
	m.kickBack(i)
	if at := l.asks.Wake(m.now); at != frame.Never {
		m.after(at-m.now, func() {
			if l.asks.Wake(m.now) <= m.now {
				m.ask(i)
			}
		})
	}
}

func (m *model) kickBack(i int) {
	l := m.links[i]
	m.kick(l.back, &l.backWake, func() { m.sendBack(i) })
}

// sendBack is the switch's egress towards a sender.
func (m *model) sendBack(i int) {
	l := m.links[i]
	var v [1]frame.Ref
	if l.back.Dequeue(m.now, v[:]) == 1 {
		meta := m.pool.Meta(v[0])
		var f wire.PFCFields
		if _, why := f.Decode(m.pool.Bytes(v[0])); why == frame.Keep {
			// A fixed reaction: pause frames do not overtake each other.
			m.after(meta.Depart-m.now+span(meta.Wire, l.rate)+l.delay+l.react, func() { m.pause(i, f) })
		}
		m.pool.Free(v[0])
		m.feedBack(l)
	}
	m.kickBack(i)
}

// pause pauses the sender.
func (m *model) pause(i int, f wire.PFCFields) {
	l := m.links[i]
	l.far.Receive(m.now, uint16(f.Enable), f.Quanta)
	for c, ch := 0, l.far.Changed(); ch != 0; c, ch = c+1, ch>>1 {
		if ch&1 == 0 {
			continue
		}
		if m.stages != 0 {
			l.sender.Slow(c, l.far.Stage(c))
			continue
		}
		if until := l.far.Until(c); until > m.now {
			l.sender.Pause(c, until)
		} else {
			l.sender.Unpause(m.now, c)
		}
	}
	m.kickSender(i)
}

// disturb pauses egress queues now and then, as the next switch would.
func (m *model) disturb() {
	if !m.sending {
		return
	}
	j := int(m.rng.Uint32n(uint32(len(m.outs))))
	c := []int{0, 3, 4}[m.rng.Uint32n(3)]
	if m.stages != 0 { // no sender ever stops
		m.outs[j].Slow(c, uint8(m.rand(15)))
		m.kickOut(j)
	} else {
		m.outs[j].Pause(c, m.now+m.rand(60_000))
	}
	m.after(m.rand(30_000), m.disturb)
}

func (m *model) run(end frame.Time) {
	for m.queue.Next() <= end {
		e := m.queue.Take()
		m.now = e.At
		e.Do(m.now)
	}
}

func (m *model) lost() int { return m.lostClass[3] + m.lostClass[4] }

func TestLosslessWithHeadroom(t *testing.T) {
	used := 0.0
	var delivered uint64
	for seed := uint64(0); seed < 60; seed++ {
		m := newModel(t, seed, nil)
		m.run(frame.Millisecond / 2)
		if m.lost() != 0 {
			t.Fatalf("seed %d: %d lossless frames lost: %v", seed, m.lost(), m.drops)
		}
		var s buffer.Snapshot
		m.buf.Snapshot(&s, false)
		for p := range s.Ports {
			for _, g := range s.Ports[p].Groups {
				if g.HeadroomSize > 0 {
					used = max(used, float64(g.HeadroomPeak)/float64(g.HeadroomSize))
				}
			}
		}
		delivered += m.lossless
		// The senders stop: all drains, no sender stays paused.
		m.sending = false
		m.run(frame.Second)
		if m.buf.Snapshot(&s, false); s.Held != 0 || m.pool.Available() != m.pool.Chunks() {
			t.Fatalf("seed %d: %d bytes held, %d of %d chunks free at the end", seed, s.Held, m.pool.Available(), m.pool.Chunks())
		}
		for i, l := range m.links {
			if m.buf.Want(uint16(i)) != 0 || l.asks.XOFFSent() != 0 || l.far.Paused(m.now) != 0 {
				t.Fatalf("seed %d: port %d stays paused", seed, i)
			}
		}
	}
	t.Logf("%d lossless frames; at most %.0f %% of a headroom used", delivered, used*100)
	if used < 0.6 {
		t.Errorf("headroom is hardly used (%.0f %%): the test does not stress it", used*100)
	}
}

func TestTooLittleHeadroomLoses(t *testing.T) {
	lossy := 0
	for seed := uint64(0); seed < 30; seed++ {
		m := newModel(t, seed, func(need uint64) uint64 { return need / 3 })
		if m.run(frame.Millisecond / 2); m.drops[frame.HeadroomFull] > 0 {
			lossy++
		}
	}
	t.Logf("with a third of the headroom %d of 30 runs lose lossless frames", lossy)
	if lossy < 10 {
		t.Errorf("only %d of 30 runs lose frames with a third of the headroom", lossy)
	}
}
