package verbs

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"gswitch/frame"
	"gswitch/transport"
)

// Sizes around whole frames, and nothing.
var lengths = []int{0, 1, 999, 1000, 1001, 4096, 100_003}

// Every operation moves the bytes that it should, and no others.
func TestOperations(t *testing.T) {
	for _, recovery := range []*transport.Kind{transport.GoBackN, transport.IRN} {
		d := newDuo(t, func(_ int, c *Config) { c.Recovery = recovery })
		l, m := d.listen(1<<20, ListenConfig{})
		a, b := d.connect(l, QPConfig{})
		if r := a.Remote(); r.RKey == 0 || r.RKey == m.key || r.Len != 1<<20 { // a key of its own
			t.Fatalf("offered %#x, got %+v", m.key, r)
		}
		for i, n := range lengths {
			id := uint64(100 * i)
			sent, buf := pattern(make([]byte, n), i), make([]byte, n+10)
			d.must(b.PostRecv(id, buf))
			d.must(a.SendImm(id+1, sent, uint32(i)))
			c := d.want(b, OpRecv, id, Success)
			if !bytes.Equal(buf[:n], sent) || c.Bytes != uint64(n) || !c.HasImm || c.Imm != uint32(i) || !bytes.Equal(buf[n:], make([]byte, 10)) {
				t.Errorf("%v: a Send of %d bytes: %+v", recovery, n, c)
			}
			d.want(a, OpSend, id+1, Success)

			at := uint64(1000*i + 8)
			d.must(m.Sync())
			clear(m.Bytes())
			d.must(m.Sync())
			d.must(b.PostRecv(id+2, nil))
			d.must(a.WriteImm(id+3, sent, a.Remote(), at, 77))
			if c = d.want(b, OpRecvWithImm, id+2, Success); c.Imm != 77 || c.Bytes != uint64(n) {
				t.Errorf("%v: a Write of %d bytes: %+v", recovery, n, c)
			}
			d.want(a, OpWrite, id+3, Success)
			if got := m.Bytes(); !bytes.Equal(got[at:][:n], sent) || !zero(got[:at]) || !zero(got[at+uint64(n):]) {
				t.Errorf("%v: a Write of %d bytes wrote something else", recovery, n)
			}

			got := make([]byte, n)
			d.must(a.Read(id+4, got, a.Remote(), at))
			d.want(a, OpRead, id+4, Success)
			if !bytes.Equal(got, sent) {
				t.Errorf("%v: a Read of %d bytes read something else", recovery, n)
			}
		}
		word := make([]byte, 8)
		PutUint64(m.Bytes()[16:], 40)
		d.must(m.Sync())
		d.must(a.FetchAdd(1, word, a.Remote(), 16, 2))
		if d.want(a, OpAtomic, 1, Success); Uint64(word) != 40 {
			t.Errorf("a fetch-add found %d", Uint64(word))
		}
		d.must(a.CompareSwap(2, word, a.Remote(), 16, 41, 7))
		if d.want(a, OpAtomic, 2, Success); Uint64(word) != 42 {
			t.Errorf("a compare-swap that must not swap found %d", Uint64(word))
		}
		d.must(a.CompareSwap(3, word, a.Remote(), 16, 42, 7))
		d.want(a, OpAtomic, 3, Success)
		if d.must(m.Sync()); Uint64(m.Bytes()[16:]) != 7 {
			t.Errorf("a compare-swap left %d", Uint64(m.Bytes()[16:]))
		}
	}
}

func zero(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }

// Goroutines post on queue pairs of their own, and all completions come through
// two shared queues.
func TestManyPairs(t *testing.T) {
	const pairs, rounds, size = 64, 20, 3000
	d := newDuo(t, nil)
	shared := [2]*CompletionQueue{}
	for i, h := range d.host {
		var err error
		if shared[i], err = h.NewCompletionQueue(pairs * 16); err != nil {
			t.Fatal(err)
		}
	}
	l, m := d.listen(pairs*size, ListenConfig{QP: QPConfig{SendDepth: 8, RecvDepth: 8, CQ: shared[1]}})
	var wg sync.WaitGroup
	done := map[*QueuePair]*atomicCount{}
	var ends []*QueuePair
	for range pairs {
		a, b := d.connect(l, QPConfig{SendDepth: 8, RecvDepth: 8, CQ: shared[0]})
		done[a] = new(atomicCount)
		ends = append(ends, a)
		if b.Peer() != d.host[0].Addr() || a.Peer() != d.host[1].Addr() {
			t.Fatalf("peers are %v and %v", a.Peer(), b.Peer())
		}
	}
	for i, a := range ends {
		wg.Go(func() {
			mine := pattern(make([]byte, size), i)
			for r := 0; r < rounds; {
				switch err := a.Write(uint64(r), mine, a.Remote(), uint64(i*size)); {
				case err == nil:
					r++
				case errors.Is(err, ErrQueueFull):
					done[a].wait(d.ctx, r-4)
				default:
					t.Error(err)
					return
				}
			}
		})
	}
	var out [16]Completion
	for left := pairs * rounds; left > 0; {
		d.must(shared[0].Wait(d.ctx))
		n := shared[0].Poll(out[:])
		for _, c := range out[:n] {
			if c.Status != Success || c.Opcode != OpWrite || c.WRID != uint64(done[c.QP].get()) {
				t.Fatalf("%+v", c)
			}
			done[c.QP].add()
		}
		left -= n
	}
	wg.Wait()
	d.must(m.Sync())
	for i := range ends {
		if !bytes.Equal(m.Bytes()[i*size:][:size], pattern(make([]byte, size), i)) {
			t.Errorf("what queue pair %d wrote is not there", i)
		}
	}
}

// atomicCount is a number that can be waited for.
type atomicCount struct {
	mu   sync.Mutex
	n    int
	bell chan struct{}
}

func (c *atomicCount) get() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

func (c *atomicCount) add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n++; c.bell != nil {
		close(c.bell)
		c.bell = nil
	}
}

func (c *atomicCount) wait(ctx context.Context, n int) {
	for {
		c.mu.Lock()
		if c.n >= n {
			c.mu.Unlock()
			return
		}
		if c.bell == nil {
			c.bell = make(chan struct{})
		}
		bell := c.bell
		c.mu.Unlock()
		select {
		case <-bell:
		case <-ctx.Done():
			return
		}
	}
}

// What the other end refuses, or cannot take, ends as ibverbs would have it.
func TestRefusedAccess(t *testing.T) {
	for name, c := range map[string]struct {
		post func(a, b *QueuePair) error
		want Status
	}{
		"beyond the end": {func(a, _ *QueuePair) error { return a.Write(1, make([]byte, 10), a.Remote(), 995) }, RemoteAccessError},
		"wrong key": {func(a, _ *QueuePair) error {
			return a.Read(1, make([]byte, 10), RemoteMemory{RKey: a.Remote().RKey + 1}, 0)
		}, RemoteAccessError},
		"too long": {func(a, b *QueuePair) error {
			return errors.Join(b.PostRecv(9, make([]byte, 10)), a.Send(1, make([]byte, 11)))
		}, RemoteInvalidRequest},
		"no buffer": {func(a, _ *QueuePair) error { return a.Send(1, make([]byte, 10)) }, RNRRetryExceeded},
	} {
		d := newDuo(t, nil)
		l, _ := d.listen(1000, ListenConfig{})
		a, b := d.connect(l, QPConfig{RNRRetry: 3})
		d.must(c.post(a, b))
		if got := d.next(a); got.WRID != 1 || got.Status != c.want || got.Err() == nil {
			t.Errorf("%s: %v", name, got.Err())
		}
		// What follows is flushed.
		d.must(a.Send(2, nil))
		var failed *CompletionError
		if got := d.next(a); got.WRID != 2 || got.Status != WRFlushError || !errors.As(got.Err(), &failed) {
			t.Errorf("%s: afterwards: %v", name, got.Err())
		}
	}
}

// A key is good on the queue pair that it was made for: on another one, of the same host
// or not, it is refused, and the memory is as it was.
func TestKeyOfAnotherQueuePair(t *testing.T) {
	d := newDuo(t, nil)
	l, m := d.listen(1000, ListenConfig{})
	a, passive := d.connect(l, QPConfig{})
	for name, try := range map[string]func(q *QueuePair, key RemoteMemory) (Opcode, error){
		"write": func(q *QueuePair, key RemoteMemory) (Opcode, error) {
			return OpWrite, q.Write(1, []byte("mine"), key, 0)
		},
		"read": func(q *QueuePair, key RemoteMemory) (Opcode, error) {
			return OpRead, q.Read(1, make([]byte, 4), key, 0)
		},
		"atomic": func(q *QueuePair, key RemoteMemory) (Opcode, error) {
			return OpAtomic, q.FetchAdd(1, make([]byte, 8), key, 0, 1)
		},
	} {
		other, theirs := d.connect(l, QPConfig{})
		before := d.refused(1)
		op, err := try(other, a.Remote())
		d.must(err)
		d.want(other, op, 1, RemoteAccessError)
		if got := d.refused(1) - before; got != 1 {
			t.Errorf("%s: %d requests are counted as refused", name, got)
		}
		d.must(errors.Join(other.Close(), theirs.Close()))
	}
	for _, b := range m.Bytes() {
		if b != 0 {
			t.Fatalf("the memory is changed: %q", m.Bytes()[:8])
		}
	}
	// The region's own key opens nothing, either.
	other, _ := d.connect(l, QPConfig{})
	d.must(other.Read(2, make([]byte, 4), RemoteMemory{m.key, 4}, 0))
	d.want(other, OpRead, 2, RemoteAccessError)

	d.must(a.Write(3, []byte("good"), a.Remote(), 0))
	d.want(a, OpWrite, 3, Success)
	// Memory that was not offered is opened in the same way, to one queue pair.
	more, err := d.host[1].Register(make([]byte, 100), RemoteWrite)
	d.must(err)
	key, err := more.Remote(passive)
	d.must(err)
	if again, err := more.Remote(passive); err != nil || again != key || key.Len != 100 || key.RKey == more.key {
		t.Errorf("%+v, %+v: %v", key, again, err)
	}
	d.must(a.Write(4, []byte("more"), key, 0))
	d.want(a, OpWrite, 4, Success)
	if _, err := more.Remote(a); err == nil {
		t.Error("a key was made for a queue pair of another host")
	}
	d.must(passive.Close())
	if _, err := more.Remote(passive); err == nil {
		t.Error("a key was made for a queue pair that is closed")
	}
}

// refused returns how many requests a host refused for want of access.
func (d *duo) refused(host int) (n uint64) {
	d.t.Helper()
	d.must(d.host[host].look(func(frame.Time) { n = d.host[host].node.NIC().Counts().AccessRefused }))
	return n
}

// A peer that stops sending is noticed by those that wait for it.
func TestPeerDisappears(t *testing.T) {
	d := newDuo(t, nil)
	l, _ := d.listen(1000, ListenConfig{})
	a, _ := d.connect(l, QPConfig{Retry: 5})
	d.must(d.host[1].engine.SetLink(d.host[1].port, false))
	d.must(a.Write(1, make([]byte, 100), a.Remote(), 0))
	d.must(a.Write(2, make([]byte, 100), a.Remote(), 0))
	d.want(a, OpWrite, 1, RetryExceeded)
	d.want(a, OpWrite, 2, WRFlushError)
	d.must(d.host[1].engine.SetLink(d.host[1].port, true))
}

// Close in the middle: each request gets its completion, the other end learns
// of it, and the host can go on.
func TestClose(t *testing.T) {
	for who := range 2 {
		d := newDuo(t, func(_ int, c *Config) { c.Rate = 10e6 }) // eight seconds of what is posted, however late the close comes
		l, _ := d.listen(1<<20, ListenConfig{})
		a, b := d.connect(l, QPConfig{})
		buf := make([]byte, 1000)
		d.must(b.PostRecv(50, buf))
		data := make([]byte, 1<<20)
		for i := range 10 {
			d.must(a.Write(uint64(i), data, a.Remote(), 0))
		}
		ends := [2]*QueuePair{a, b}
		d.must(ends[who].Close())
		if who == 0 {
			clear(data) // it is the program's again
		}
		select {
		case <-ends[1-who].Done():
		case <-d.ctx.Done():
			t.Fatal("the other end is not notified")
		}
		if err := ends[1-who].Err(); err != nil {
			t.Errorf("%d closed: the other end's error is %v", who, err)
		}
		flushed := 0
		for i := range 10 {
			c := d.next(a)
			if c.WRID != uint64(i) || c.Status != Success && c.Status != WRFlushError {
				t.Errorf("%d closed: %+v", who, c)
			}
			if c.Status == WRFlushError {
				flushed++
			}
		}
		if flushed == 0 {
			t.Errorf("%d closed: 80 Mbit were gone before the close", who)
		}
		d.want(b, OpRecv, 50, WRFlushError)
		if err := ends[who].Send(1, nil); !errors.Is(err, ErrClosed) {
			t.Errorf("%d closed: a post afterwards: %v", who, err)
		}
		d.must(ends[1-who].Send(60, nil))
		d.want(ends[1-who], OpSend, 60, WRFlushError)
		d.must(ends[1-who].Close())
		a, b = d.connect(l, QPConfig{})
		d.must(b.PostRecv(1, buf))
		d.must(a.Send(2, []byte("again")))
		if d.want(b, OpRecv, 1, Success); string(buf[:5]) != "again" {
			t.Errorf("%d closed: %q", who, buf[:5])
		}
	}
}

// The host is closed while requests are under way: they are flushed, and
// nothing waits for ever.
func TestCloseHost(t *testing.T) {
	d := newDuo(t, func(_ int, c *Config) { c.Rate = 1e6 }) // eight seconds of what is posted, however late the close comes
	l, m := d.listen(1<<20, ListenConfig{})
	a, b := d.connect(l, QPConfig{})
	d.must(a.Write(1, make([]byte, 1<<20), a.Remote(), 0))
	d.must(b.PostRecv(2, make([]byte, 10)))
	waits := make(chan error)
	go func() {
		for {
			var c [8]Completion
			if err := b.CQ().Wait(d.ctx); err != nil {
				waits <- err
				return
			}
			for _, c := range c[:b.Poll(c[:])] {
				if c.WRID != 2 || c.Status != WRFlushError {
					t.Errorf("%+v", c)
				}
			}
		}
	}()
	d.must(d.host[1].Close())
	if err := <-waits; !errors.Is(err, ErrClosed) {
		t.Errorf("waiting at a closed host: %v", err)
	}
	if _, err := l.Accept(d.ctx); !errors.Is(err, ErrClosed) {
		t.Errorf("accepting at a closed host: %v", err)
	}
	if _, err := d.host[1].Register(nil, 0); !errors.Is(err, ErrClosed) {
		t.Errorf("registering at a closed host: %v", err)
	}
	d.must(m.Close())
	d.must(b.Close())
	d.must(d.host[1].Close())
	<-a.Done()
	d.want(a, OpWrite, 1, WRFlushError)
}

// Contexts end waits, and leave nothing.
func TestContext(t *testing.T) {
	d := newDuo(t, nil)
	l, _ := d.listen(0, ListenConfig{})
	short, cancel := context.WithTimeout(d.ctx, 5*time.Millisecond)
	defer cancel()
	if _, err := l.Accept(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Accept: %v", err)
	}
	if _, err := d.host[0].Dial(short, netip.MustParseAddr("10.9.0.77"), QPConfig{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Dial: %v", err)
	}
	a, _ := d.connect(l, QPConfig{})
	if err := a.CQ().Wait(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Wait: %v", err)
	}
	d.must(a.Close())
	if free := len(d.host[0].rest); free != maxQueuePairs {
		t.Errorf("%d of %d queue pairs are free", free, maxQueuePairs)
	}
}

// A backlog that is full refuses; a listener that is closed hangs up.
func TestBacklog(t *testing.T) {
	d := newDuo(t, nil)
	l, _ := d.listen(0, ListenConfig{Backlog: 2})
	var ends []*QueuePair
	for range 2 {
		q, err := d.host[0].Dial(d.ctx, d.host[1].Addr(), QPConfig{})
		d.must(err)
		ends = append(ends, q)
	}
	if _, err := d.host[0].Dial(d.ctx, d.host[1].Addr(), QPConfig{}); err == nil || !strings.Contains(err.Error(), "no queue pair left") {
		t.Errorf("beyond the backlog: %v", err)
	}
	q, err := l.Accept(d.ctx)
	d.must(err)
	d.must(l.Close())
	for _, e := range ends[1:] {
		select {
		case <-e.Done():
		case <-d.ctx.Done():
			t.Fatal("who was not accepted is not hung up")
		}
	}
	if _, err := l.Accept(d.ctx); !errors.Is(err, ErrClosed) {
		t.Errorf("a closed listener: %v", err)
	}
	if _, err := d.host[0].Dial(d.ctx, d.host[1].Addr(), QPConfig{}); err == nil || !strings.Contains(err.Error(), "does not serve") {
		t.Errorf("nobody listens: %v", err)
	}
	d.must(q.PostRecv(1, make([]byte, 4)))
	d.must(ends[0].Send(1, []byte("stay")))
	d.want(q, OpRecv, 1, Success)
}

func TestBadArguments(t *testing.T) {
	d := newDuo(t, nil)
	l, m := d.listen(1000, ListenConfig{})
	a, _ := d.connect(l, QPConfig{SendDepth: 2, RecvDepth: 1})
	h := d.host[0]
	small, err := h.NewCompletionQueue(16)
	d.must(err)
	other, err := d.host[1].NewCompletionQueue(1000)
	d.must(err)
	dial := func(c QPConfig) error { _, err := h.Dial(d.ctx, d.host[1].Addr(), c); return err }
	for want, err := range map[string]error{
		"there is no verb":         a.post1(WorkRequest{Verb: 99}),
		"needs 8 local bytes":      a.FetchAdd(1, make([]byte, 7), a.Remote(), 0, 1),
		"multiple of 8":            a.CompareSwap(1, make([]byte, 8), a.Remote(), 4, 0, 1),
		"SendDepth -1":             dial(QPConfig{SendDepth: -1}),
		"Retry 256":                dial(QPConfig{Retry: 256}),
		"RNRTimer -1ns":            dial(QPConfig{RNRTimer: -1}),
		"MaxReads 129":             dial(QPConfig{MaxReads: 129}),
		"make a longer one":        dial(QPConfig{CQ: small}),
		"of another host":          dial(QPConfig{CQ: other}),
		"the address of this host": func() error { _, err := h.Dial(d.ctx, h.Addr(), QPConfig{}); return err }(),
		"no gateway":               func() error { _, err := h.Dial(d.ctx, netip.MustParseAddr("1.2.3.4"), QPConfig{}); return err }(),
		"address family":           func() error { _, err := h.Dial(d.ctx, netip.MustParseAddr("fd00::1"), QPConfig{}); return err }(),
		"no rights 0x80":           func() error { _, err := h.Register(nil, 0x80); return err }(),
		"not registered at":        func() error { _, err := h.Listen(ListenConfig{Offer: m}); return err }(),
		"listens already":          func() error { _, err := d.host[1].Listen(ListenConfig{}); return err }(),
		"Backlog of -1":            func() error { _, err := h.Listen(ListenConfig{Backlog: -1}); return err }(),
		"queue of 0":               func() error { _, err := h.NewCompletionQueue(0); return err }(),
		"Interface is empty":       func() error { _, err := Open(d.ctx, Config{}); return err }(),
		"is not that of a host":    func() error { _, err := Open(d.ctx, Config{Interface: "x"}); return err }(),
		"no-such-interface": func() error {
			_, err := Open(d.ctx, Config{Interface: "no-such-interface", Address: netip.MustParsePrefix("10.0.0.1/24")})
			return err
		}(),
		"Telemetry \"x\"": func() error {
			_, err := Open(d.ctx, Config{Interface: "x", Address: netip.MustParsePrefix("10.0.0.1/24"), Telemetry: "x"})
			return err
		}(),
		"Congestion": func() error {
			_, err := Open(d.ctx, Config{Interface: "x", Address: netip.MustParsePrefix("10.0.0.1/24"), Congestion: "x"})
			return err
		}(),
		"hpcc needs telemetry": func() error {
			_, err := Open(d.ctx, Config{Interface: "x", Address: netip.MustParsePrefix("10.0.0.1/24"), Telemetry: "none"})
			return err
		}(),
		"is not within 64 and 3800": func() error {
			_, err := Open(d.ctx, Config{Interface: "x", Address: netip.MustParsePrefix("10.0.0.1/24"), Payload: 10})
			return err
		}(),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error is %v", want, err)
		}
	}
	// Depths: what is posted counts until it is polled.
	n, err := a.PostSend(make([]WorkRequest, 3))
	if n != 2 || !errors.Is(err, ErrQueueFull) {
		t.Errorf("3 requests on a queue of 2: %d, %v", n, err)
	}
	d.must(a.PostRecv(1, nil))
	if err := a.PostRecv(2, nil); !errors.Is(err, ErrQueueFull) {
		t.Errorf("2 buffers on a queue of 1: %v", err)
	}
	if n, err := a.PostSend([]WorkRequest{{Verb: 99}, {}}); n != 0 || err == nil {
		t.Errorf("a request that cannot be: %d, %v", n, err)
	}
}

// Memory whose registration has ended cannot be reached.
func TestDeregister(t *testing.T) {
	d := newDuo(t, nil)
	l, m := d.listen(1000, ListenConfig{})
	a, _ := d.connect(l, QPConfig{})
	d.must(a.Write(1, []byte("here"), a.Remote(), 0))
	d.want(a, OpWrite, 1, Success)
	d.must(m.Close())
	d.must(m.Close())
	if string(m.Bytes()[:4]) != "here" {
		t.Errorf("%q", m.Bytes()[:4])
	}
	d.must(a.Write(2, []byte("gone"), a.Remote(), 0))
	d.want(a, OpWrite, 2, RemoteAccessError)
}
