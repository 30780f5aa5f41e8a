package tcp

import (
	"bytes"
	"container/heap"
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"gswitch/frame"
)

const (
	ms = frame.Millisecond
	us = frame.Microsecond
)

// pair is two ends and the network between them, in virtual time.
type pair struct {
	t     rapid.TB
	now   frame.Time
	ends  [2]*Conn
	r     *rand.Rand
	delay frame.Time
	gap   frame.Time // of a segment on the link, 0: none
	free  [2]frame.Time
	queue int // segments that fit before the link; 0: no end
	mark  int // of these, from which on packets are marked; 0: never
	// What the network does to the k-th packet from an end.
	fate  func(from, k int, s *Segment) fate
	count [2]int
	way   way
	seq   int
	trace []string
	log   bool
	iss   uint32
	cfg   [2]Config
	apps  [2]func(now frame.Time, c *Conn) // what the application does whenever it can
}

type fate struct {
	lose  bool
	twice bool
	late  frame.Time
	ce    bool
}

type flying struct {
	at   frame.Time
	seq  int
	to   int
	data []byte
}

type way []flying

func (w way) Len() int { return len(w) }
func (w way) Less(i, j int) bool {
	return w[i].at < w[j].at || w[i].at == w[j].at && w[i].seq < w[j].seq
}
func (w way) Swap(i, j int) { w[i], w[j] = w[j], w[i] }
func (w *way) Push(x any)   { *w = append(*w, x.(flying)) }
func (w *way) Pop() any {
	v := (*w)[len(*w)-1]
	*w = (*w)[:len(*w)-1]
	return v
}

var ends = [2]Flow{{Src: [4]byte{10, 0, 0, 1}, Dst: [4]byte{10, 0, 0, 2}, SrcPort: 40000, DstPort: 80}, {Src: [4]byte{10, 0, 0, 2}, Dst: [4]byte{10, 0, 0, 1}, SrcPort: 80, DstPort: 40000}}

func newPair(t rapid.TB, seed uint64, a, b Config) *pair {
	p := &pair{t: t, r: rand.New(rand.NewPCG(seed, 8)), delay: ms, iss: uint32(seed * 2654435761), cfg: [2]Config{a, b}}
	var err error
	if p.ends[0], err = Dial(0, a, p.iss); err != nil {
		t.Fatal(err)
	}
	return p
}

// flush sends all that an end has.
func (p *pair) flush(end int) {
	c := p.ends[end]
	if c == nil {
		return
	}
	if p.apps[end] != nil {
		p.apps[end](p.now, c)
	}
	var s Segment
	for n := 0; c.Next(p.now, &s); n++ {
		if n > 10_000 {
			p.t.Fatalf("end %d sends without end", end)
		}
		p.send(end, &s)
	}
}

func (p *pair) send(end int, s *Segment) {
	k := p.count[end]
	p.count[end]++
	var f fate
	if p.fate != nil {
		f = p.fate(end, k, s)
	}
	if p.log {
		p.trace = append(p.trace, fmt.Sprintf("%8d us  %s %sseq=%d ack=%d len=%d win=%d%s%s", p.now/us, [2]string{">", "  <"}[end], describe(p, end, s), s.Seq-p.isn(end), s.Ack-p.isn(1-end), s.Len, s.Window, blocks(p, end, s), map[bool]string{true: "  lost"}[f.lose]))
	}
	leaves := max(p.now, p.free[end])
	if p.gap > 0 && s.Len > 0 {
		waiting := int((leaves - p.now) / p.gap)
		if p.queue > 0 && waiting >= p.queue {
			return
		}
		if p.mark > 0 && waiting >= p.mark && s.ECT {
			f.ce = true
		}
		p.free[end] = leaves + p.gap
		leaves += p.gap
	}
	if f.lose {
		return
	}
	s.CE = f.ce && s.ECT
	b := s.AppendPacket(nil, ends[end], uint16(k))
	copies := 1
	if f.twice {
		copies = 2
	}
	for range copies {
		p.seq++
		heap.Push(&p.way, flying{leaves + p.delay + f.late, p.seq, 1 - end, b})
	}
}

func describe(p *pair, end int, s *Segment) string {
	out := ""
	for i, n := range []string{"FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"} {
		if s.Flags>>i&1 != 0 && n != "PSH" {
			out += n + " "
		}
	}
	return out
}

func (p *pair) isn(end int) uint32 { return [2]uint32{p.iss, p.iss ^ 0x5a5a5a5a}[end] }

func blocks(p *pair, end int, s *Segment) (out string) {
	for _, b := range s.Options.SACK[:s.Options.SACKs] {
		out += fmt.Sprintf(" sack=%d-%d", b[0]-p.isn(1-end), b[1]-p.isn(1-end))
	}
	return out
}

// step goes on to the next thing that happens, and reports whether there was one.
func (p *pair) step(until frame.Time) bool {
	p.flush(0)
	p.flush(1)
	next := frame.Never
	for _, c := range p.ends {
		if c != nil {
			next = min(next, c.Due())
		}
	}
	if len(p.way) > 0 {
		next = min(next, p.way[0].at)
	}
	if next > until {
		p.now = until
		return false
	}
	p.now = max(p.now, next)
	for len(p.way) > 0 && p.way[0].at <= p.now {
		f := heap.Pop(&p.way).(flying)
		p.arrive(f)
	}
	for i, c := range p.ends {
		if c != nil && c.Due() <= p.now {
			c.Advance(p.now)
			if c.Due() <= p.now {
				p.t.Fatalf("end %d is due again at once", i)
			}
		}
	}
	return true
}

func (p *pair) arrive(f flying) {
	s, flow, err := ParsePacket(f.data)
	if err != nil || flow != ends[1-f.to] {
		p.t.Fatalf("%v, %v", err, flow)
	}
	if p.ends[f.to] == nil {
		if s.Flags&(SYN|ACK) != SYN {
			return
		}
		c, err := Accept(p.now, p.cfg[f.to], p.iss^0x5a5a5a5a, &s)
		if err != nil {
			p.t.Fatal(err)
		}
		p.ends[f.to] = c
	} else {
		p.ends[f.to].Receive(p.now, &s)
	}
	p.flush(f.to)
}

func (p *pair) run(until frame.Time) {
	for n := 0; p.step(until); n++ {
		if n > 5_000_000 {
			p.t.Fatalf("does not end: %v and %v at %v", p.ends[0].State(), p.ends[1].State(), p.now.Duration())
		}
	}
}

// transfer lets the first end send n bytes that are checked at the other, and
// close; the other closes when it has all.
func (p *pair) transfer(n int) *transfer {
	x := &transfer{want: n, data: make([]byte, n)}
	for i := range x.data {
		x.data[i] = byte(p.r.Uint32())
	}
	p.apps[0] = func(_ frame.Time, c *Conn) {
		x.wrote += c.Write(x.data[x.wrote:])
		if x.wrote == n {
			c.CloseWrite()
		}
	}
	p.apps[1] = func(now frame.Time, c *Conn) {
		b := make([]byte, 4096)
		for k := c.Read(now, b); k > 0; k = c.Read(now, b) {
			if x.got+k > n || !bytes.Equal(b[:k], x.data[x.got:x.got+k]) {
				p.t.Fatalf("bytes from %d on are not what was sent", x.got)
			}
			x.got += k
			x.last = now
		}
		if c.EOF() {
			c.CloseWrite()
		}
	}
	return x
}

type transfer struct {
	data             []byte
	want, wrote, got int
	last             frame.Time
}

func quick() Config {
	c := Default()
	c.MinRTO, c.TimeWait, c.Retries = 20*ms, 200*ms, 40
	return c
}

// Whatever the network loses, doubles, delays and reorders, all bytes arrive once
// and in order, and both ends close.
func TestStream(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := quick(), quick()
		for _, c := range []*Config{&a, &b} {
			c.SACK, c.Stamps, c.RACK, c.TailProbe = rapid.Bool().Draw(t, "sack"), rapid.Bool().Draw(t, "stamps"), rapid.Bool().Draw(t, "rack"), rapid.Bool().Draw(t, "probe")
			c.ECN = rapid.Bool().Draw(t, "ecn")
			c.Control = rapid.SampledFrom([]string{"reno", "cubic"}).Draw(t, "control")
			if c.ECN {
				c.Control = rapid.SampledFrom(Controls()).Draw(t, "control")
			}
			c.DelayedACK = frame.Time(rapid.IntRange(0, 40).Draw(t, "delayed")) * ms
			c.ReceiveBuffer = rapid.SampledFrom([]int{3000, 20_000, 128 << 10}).Draw(t, "buffer")
			c.MaxReceive = c.ReceiveBuffer * rapid.IntRange(1, 8).Draw(t, "grow")
			c.MSS = rapid.SampledFrom([]int{200, 536, 1460}).Draw(t, "mss")
		}
		p := newPair(t, rapid.Uint64().Draw(t, "seed"), a, b)
		p.delay = frame.Time(rapid.IntRange(1, 20_000).Draw(t, "delay")) * us
		p.gap = frame.Time(rapid.IntRange(0, 200).Draw(t, "gap")) * us
		p.queue, p.mark = rapid.IntRange(0, 30).Draw(t, "queue"), rapid.IntRange(0, 10).Draw(t, "mark")
		lose, double, late := rapid.IntRange(0, 15).Draw(t, "lose"), rapid.IntRange(0, 5).Draw(t, "double"), rapid.IntRange(0, 20).Draw(t, "late")
		p.fate = func(int, int, *Segment) (f fate) {
			f.lose, f.twice = p.r.IntN(100) < lose, p.r.IntN(100) < double
			if p.r.IntN(100) < late {
				f.late = frame.Time(p.r.Int64N(int64(3 * p.delay)))
			}
			return f
		}
		x := p.transfer(rapid.IntRange(0, 60_000).Draw(t, "bytes"))
		// Where each segment is lost once and nothing is measured meanwhile, each
		// waits for the longest timeout (RFC 6298 5.7).
		p.run(100_000 * frame.Second)
		for i, c := range p.ends {
			if c == nil || c.State() != Closed || c.Err() != nil {
				// The last acknowledgement of a FIN may be lost until the other end has stopped repeating it.
				if c != nil && i == 1 && c.State() == LastACK || c != nil && c.Err() == ErrTimedOut && x.got == x.want {
					continue
				}
				t.Fatalf("end %d: %v, %v; %d of %d bytes", i, c.State(), c.Err(), x.got, x.want)
			}
			if c.pipe != 0 && c.Err() == nil {
				t.Errorf("end %d: %d sequence numbers are still under way", i, c.pipe)
			}
		}
		if x.got != x.want {
			t.Fatalf("%d of %d bytes", x.got, x.want)
		}
	})
}

// Without losses a stream fills the link, and the windows grow to what that needs.
func TestThroughput(t *testing.T) {
	for _, control := range Controls() {
		t.Run(control, func(t *testing.T) {
			c := Default()
			c.Control, c.ECN = control, control == "dctcp"
			p := newPair(t, 1, c, c)
			p.delay, p.gap, p.queue = 5*ms, 12*us, 2000 // 1 Gb/s of 1500 bytes
			if c.ECN {
				p.mark = 200
			}
			const n = 30_000_000
			x := p.transfer(n)
			p.run(20 * frame.Second)
			ideal := frame.Time(n/1448)*12*us + 80*ms // seven round trips of slow start
			if c.ECN {
				ideal += ideal / 2 // the first mark halves the window: alpha begins at 1
			}
			if x.got != n || x.last > ideal*21/20 {
				t.Errorf("%d bytes in %v, the link needs %v", x.got, x.last.Duration(), ideal.Duration())
			}
			if s := p.ends[0].Stats; s.Timeouts != 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// The same inputs give the same segments.
func TestDeterministic(t *testing.T) {
	var traces [2][]string
	for i := range traces {
		p := newPair(t, 3, quick(), quick())
		p.log = true
		p.fate = func(int, int, *Segment) fate { return fate{lose: p.r.IntN(20) == 0} }
		p.transfer(200_000)
		p.run(100 * frame.Second)
		traces[i] = p.trace
	}
	if len(traces[0]) < 200 || fmt.Sprint(traces[0]) != fmt.Sprint(traces[1]) {
		t.Errorf("%d and %d lines differ", len(traces[0]), len(traces[1]))
	}
}

// One loss in the middle is repaired without a timeout, and one at the end by the
// tail probe; without it, by the timeout.
func TestRecovery(t *testing.T) {
	run := func(c Config, lose ...int) (*pair, *transfer) {
		p := newPair(t, 5, c, c)
		p.fate = func(from, k int, s *Segment) fate {
			if from != 0 {
				return fate{}
			}
			for _, l := range lose {
				if s.Len+int(s.Flags&FIN) > 0 && uint64(s.Seq-p.iss-1)/1000 == uint64(l) && p.ends[0].Stats.Retransmitted == 0 {
					return fate{lose: true}
				}
			}
			return fate{}
		}
		x := p.transfer(40_000)
		p.run(5 * frame.Second)
		if x.got != x.want {
			t.Fatalf("%d bytes", x.got)
		}
		return p, x
	}
	c := quick()
	c.MSS, c.MinRTO = 1012, 200*ms // 1000 bytes beside the stamps
	for _, sack := range []bool{true, false} {
		c.SACK = sack
		p, x := run(c, 12)
		if s := p.ends[0].Stats; s.Recoveries != 1 || s.Timeouts != 0 || s.Retransmitted != 1 || x.last > 30*ms {
			t.Errorf("sack %t: %+v in %v", sack, s, x.last.Duration())
		}
	}
	c.SACK = true
	p, x := run(c, 39, 40)
	if s := p.ends[0].Stats; s.TailProbes != 1 || s.Timeouts != 0 || x.last > 100*ms {
		t.Errorf("the last segment, with a probe: %+v in %v", s, x.last.Duration())
	}
	c.TailProbe = false
	p, x = run(c, 39, 40)
	if s := p.ends[0].Stats; s.TailProbes != 0 || s.Timeouts != 1 || x.last < 200*ms {
		t.Errorf("the last segment, without: %+v in %v", s, x.last.Duration())
	}
	// Many losses at once, with SACK, take one recovery.
	c.TailProbe = true
	p, x = run(c, 10, 11, 12, 15, 18)
	if s := p.ends[0].Stats; s.Timeouts != 0 || s.Retransmitted != 5 || s.Recoveries != 1 {
		t.Errorf("five losses: %+v in %v", s, x.last.Duration())
	}
}

// A receiver that does not read closes its window; the sender asks, and goes on
// when it reads.
func TestZeroWindow(t *testing.T) {
	c := quick()
	c.ReceiveBuffer, c.MaxReceive = 10_000, 10_000
	p := newPair(t, 6, c, c)
	x := p.transfer(50_000)
	read := p.apps[1]
	p.apps[1] = func(now frame.Time, c *Conn) {
		if now > 3*frame.Second {
			read(now, c)
		}
	}
	p.run(2 * frame.Second)
	s := &p.ends[0].Stats
	if p.ends[1].Readable() < 8000 || s.ZeroWindows == 0 || s.Timeouts != 0 {
		t.Fatalf("%d readable, %+v", p.ends[1].Readable(), *s)
	}
	before := s.Sent
	if before > 60 {
		t.Errorf("%d segments at a closed window", before)
	}
	p.run(60 * frame.Second)
	if x.got != x.want {
		t.Errorf("%d of %d bytes after the window opened", x.got, x.want)
	}
}

// A delayed acknowledgement comes after its time, and every second segment at once.
func TestDelayedACK(t *testing.T) {
	c := quick()
	c.QuickACKs, c.MinRTO = 0, 200*ms
	p := newPair(t, 7, c, c)
	p.run(10 * ms)
	p.ends[0].Write(make([]byte, 100))
	p.run(20 * ms)
	if p.ends[0].Unacked() != 100 {
		t.Error("one small segment is acknowledged at once")
	}
	p.run(60 * ms)
	if p.ends[0].Unacked() != 0 || p.ends[1].Stats.DelayedACKs != 1 {
		t.Errorf("%d bytes, %+v", p.ends[0].Unacked(), p.ends[1].Stats)
	}
	p.ends[0].Write(make([]byte, 2*1448))
	p.run(65 * ms)
	if p.ends[0].Unacked() != 0 {
		t.Error("two full segments are not acknowledged at once")
	}
}

// Both ends dial, or close, at once.
func TestSimultaneous(t *testing.T) {
	p := newPair(t, 8, quick(), quick())
	var err error
	if p.ends[1], err = Dial(0, quick(), 77); err != nil {
		t.Fatal(err)
	}
	p.run(50 * ms)
	for i, c := range p.ends {
		if c.State() != Established {
			t.Errorf("end %d is %v", i, c.State())
		}
		c.Write([]byte("hello"))
		c.CloseWrite()
	}
	p.run(100 * ms)
	for i, c := range p.ends {
		if c.State() != TimeWait || c.Readable() != 5 {
			t.Errorf("end %d is %v with %d bytes", i, c.State(), c.Readable())
		}
	}
	p.run(frame.Second)
	if p.ends[0].State() != Closed || p.ends[0].Err() != nil {
		t.Errorf("%v, %v", p.ends[0].State(), p.ends[0].Err())
	}
}

func TestResets(t *testing.T) {
	open := func() *pair {
		p := newPair(t, 9, quick(), quick())
		p.run(20 * ms)
		return p
	}
	// Abort.
	p := open()
	p.ends[0].Abort()
	p.run(40 * ms)
	if p.ends[1].Err() != ErrReset || p.ends[0].Err() != ErrAborted {
		t.Errorf("%v, %v", p.ends[0].Err(), p.ends[1].Err())
	}
	// A forged reset within the window but not at its beginning ends nothing (RFC
	// 5961), one outside is not even answered.
	p = open()
	c := p.ends[1]
	base := c.rcvWire(c.rcvNxt)
	var out Segment
	c.Receive(p.now, &Segment{Flags: RST, Seq: base + 1000})
	if c.State() != Established || !c.Next(p.now, &out) || out.Flags != ACK {
		t.Errorf("%v, answered with %v", c.State(), out.Flags)
	}
	c.Receive(p.now, &Segment{Flags: RST, Seq: base - 1})
	if c.State() != Established || c.Next(p.now, &out) {
		t.Errorf("%v, answered with %v", c.State(), out.Flags)
	}
	c.Receive(p.now, &Segment{Flags: RST, Seq: base})
	if c.Err() != ErrReset {
		t.Errorf("%v", c.Err())
	}
	// No host answers.
	refused, _ := Dial(0, quick(), 1)
	refused.Next(0, &out)
	refused.Receive(ms, &Segment{Flags: RST | ACK, Ack: out.Seq + 1})
	if refused.Err() != ErrRefused {
		t.Errorf("%v", refused.Err())
	}
	// No answer at all.
	silent := quick()
	silent.Retries = 3
	lone, _ := Dial(0, silent, 1)
	now := frame.Time(0)
	for n := 0; lone.State() != Closed; n++ {
		for lone.Next(now, &out) {
		}
		now = lone.Due()
		lone.Advance(now)
	}
	if lone.Err() != ErrTimedOut || now != 15*frame.Second {
		t.Errorf("%v after %v", lone.Err(), now.Duration())
	}
}

// Random segments from outside never break a connection that its peer keeps, and
// what they do is bounded.
func FuzzReceive(f *testing.F) {
	f.Add(uint64(1), []byte{0x10, 0, 0, 0, 0, 5, 0, 0, 0, 9})
	f.Fuzz(func(t *testing.T, seed uint64, b []byte) {
		p := newPair(t, seed, quick(), quick())
		x := p.transfer(20_000)
		p.run(5 * ms)
		for len(b) >= 10 {
			c := p.ends[b[0]&1]
			if c == nil {
				break
			}
			s := Segment{Flags: Flags(b[1]) &^ RST, Seq: c.rcvWire(c.rcvNxt) + uint32(int32(int8(b[2])))*uint32(b[3]), Ack: c.wire(c.una) + uint32(int32(int8(b[4])))*uint32(b[5]), Window: uint16(b[6]) << 8,
				Len: int(b[7]), Data: make([]byte, b[7])}
			s.Options.HasStamp, s.Options.Stamp = true, c.recent
			s.Options.SACKs = int(b[8] & 3)
			for i := range s.Options.SACKs {
				s.Options.SACK[i] = [2]uint32{c.wire(c.una) + uint32(b[9])*uint32(i), c.wire(c.una) + uint32(b[8])*uint32(i+1)}
			}
			c.Receive(p.now, &s)
			var out Segment
			for n := 0; c.Next(p.now, &out); n++ {
				if n > 1000 {
					t.Fatal("answers without end")
				}
			}
			if c.pipe < 0 || c.lostSegs < 0 || c.sackedSegs < 0 || c.una > c.nxt || c.in.n > c.cfg.MaxReceive {
				t.Fatalf("pipe %d, lost %d, sacked %d, una %d, nxt %d", c.pipe, c.lostSegs, c.sackedSegs, c.una, c.nxt)
			}
			b = b[10:]
		}
		_ = x
	})
}
