package agent

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"gswitch/cc"
	"gswitch/frame"
	"gswitch/hostnic"
)

// conn dials host 1 from host 0.
func (p *pair) conn() *Conn {
	p.t.Helper()
	none, err := cc.Factory("none", nil)
	if err != nil {
		p.t.Fatal(err)
	}
	c := &Conn{To: p.a[1].cfg.NIC.Addr, CC: "none", New: none, Tag: 1, Verbs: hostnic.VerbsConfig{Retries: 20}}
	if err := p.a[0].Dial(p.now, c); err != nil {
		p.t.Fatal(err)
	}
	return c
}

// listen offers memory at host 1.
func (p *pair) listen(size int) *Listener {
	p.t.Helper()
	l := &Listener{Region: make([]byte, size), Backlog: 8}
	var err error
	if l.Key, err = p.a[1].NIC().Memory().Register(0, l.Region, hostnic.RemoteRead|hostnic.RemoteWrite); err != nil {
		p.t.Fatal(err)
	}
	p.a[1].Listen(l)
	return l
}

// accepted returns the passive end of a connection.
func (p *pair) accepted() *Conn {
	p.t.Helper()
	for c := p.a[1].News(); c != nil; c = p.a[1].News() {
		if c.Tag == 0 {
			c.Tag = 2
			return c
		}
	}
	p.t.Fatal("there is no new connection")
	return nil
}

func (p *pair) until(what string, most frame.Time, done func() bool) {
	p.t.Helper()
	if p.run(most, done); !done() {
		p.t.Fatalf("not in %v: %s", most.Duration(), what)
	}
}

// Two programs connect, write, send and hang up, whatever is lost.
func TestConn(t *testing.T) {
	for _, hangs := range []int{0, 1} {
		for _, lossy := range []bool{false, true} {
			p := newPair(t, nil)
			l := p.listen(10_000)
			rng := frame.NewRand(3)
			if lossy {
				p.lose = func(int, []byte) bool { return rng.Uint64()%10 == 0 }
			}
			c := p.conn()
			p.until("a connection", 5*frame.Second, func() bool { return c.State == Running })
			d := p.accepted()
			p.a[1].Take(l)
			if c.Size != 10_000 || c.RKey == 0 || c.RKey == l.Key || d.Remote != c.Local || c.Remote != d.Local {
				t.Fatalf("%+v and %+v", c, d)
			}
			data := bytes.Repeat([]byte("0123456789"), 500)
			buf := make([]byte, 5000)
			if err := errors.Join(p.a[1].NIC().PostRecv(p.now, d.Local, hostnic.RecvRequest{ID: 5, Local: buf}),
				p.a[0].NIC().Post(p.now, c.Local, &hostnic.WorkRequest{ID: 6, Verb: hostnic.Write, Local: data, RKey: c.RKey, RemoteVA: 100}),
				p.a[0].NIC().Post(p.now, c.Local, &hostnic.WorkRequest{ID: 7, Verb: hostnic.Send, Local: data})); err != nil {
				t.Fatal(err)
			}
			var got []hostnic.Completion
			p.until("3 completions", 5*frame.Second, func() bool {
				got = append(append(got, c.Completions()...), d.Completions()...)
				return len(got) == 3
			})
			for _, e := range got {
				if e.Status != hostnic.StatusOK || e.ID < 5 || e.ID > 7 {
					t.Errorf("%+v", e)
				}
			}
			if !bytes.Equal(buf, data) || !bytes.Equal(l.Region[100:5100], data) {
				t.Error("something else arrived")
			}
			// It stays open without traffic.
			p.run(200*frame.Second, func() bool { return false })
			if c.State != Running || d.State != Running {
				t.Fatalf("after the idle time the ends are %v and %v: %v, %v", c.State, d.State, c.Err, d.Err)
			}
			ends := []*Conn{c, d}
			p.a[hangs].Hangup(p.now, ends[hangs])
			if ends[hangs].State != Ended {
				t.Error("it has not ended at once")
			}
			p.until("the other end to end", 20*frame.Second, func() bool { return c.State == Ended && d.State == Ended })
			p.until("nothing to be left", 30*frame.Second, func() bool { return p.a[0].Parting() == 0 })
			p.lose = nil
			p.idle()
		}
	}
}

// The other end disappears without a message: both ends notice, also the one that
// only listens. One that was started again says so.
func TestPeerOfAConnectionGone(t *testing.T) {
	p := newPair(t, nil)
	p.listen(0)
	c := p.conn()
	p.until("a connection", frame.Second, func() bool { return c.State == Running })
	d := p.accepted()
	p.lose = func(int, []byte) bool { return true }
	p.until("both ends to notice", sessionIdle+2*sessionLook, func() bool { return c.State == Ended && d.State == Ended })
	if c.Err == nil || !strings.Contains(c.Err.Error(), "has not answered") {
		t.Errorf("the active end says %v", c.Err)
	}
	p.lose = nil
	p.idle()

	p = newPair(t, nil)
	l := p.listen(0)
	c = p.conn()
	p.until("a connection", frame.Second, func() bool { return c.State == Running })
	d = p.accepted()
	p.a[1].sessions = nil // it forgets
	p.until("the active end to notice", 2*keepAlive, func() bool { return c.State == Ended })
	if !errors.Is(c.Err, errHungUp) {
		t.Errorf("the active end says %v", c.Err)
	}
	p.until("what was opened by mistake to be closed", frame.Second, func() bool { return p.a[0].Parting() == 0 })
	p.a[1].sessions = append(p.a[1].sessions, d.session)
	if p.a[1].Hangup(p.now, d); l.waiting != 2 {
		t.Errorf("%d connections wait to be taken", l.waiting)
	}
	p.idle()
}

// A transfer writes into what a program offers, and a program reads what ghost
// serves.
func TestConnAndTransfer(t *testing.T) {
	p := newPair(t, nil)
	l := p.listen(100_000)
	tr := transfer(p, 60_000, 3)
	tr.Service, tr.Verb = Memory, hostnic.Write
	p.finish(tr)
	if tr.Err != nil || tr.Received != (Received{Bytes: 60_000}) || !Matches(l.Region[:60_000], 0) {
		t.Errorf("%v: received %+v", tr.Err, tr.Received)
	}
	tr = transfer(p, 10, 1) // messages are not for programs
	if p.finish(tr); tr.Err == nil || !strings.Contains(tr.Err.Error(), "does not serve") {
		t.Errorf("messages: %v", tr.Err)
	}
	p.a[1].Listen(nil)
	p.serve(1 << 16)
	c := p.conn()
	p.until("a connection", frame.Second, func() bool { return c.State == Running })
	into := make([]byte, c.Size)
	if err := p.a[0].NIC().Post(p.now, c.Local, &hostnic.WorkRequest{ID: 1, Verb: hostnic.Read, Local: into, RKey: c.RKey}); err != nil {
		t.Fatal(err)
	}
	done := 0
	p.until("a completion", frame.Second, func() bool { done += len(c.Completions()); return done == 1 })
	if len(into) != 1<<16 || !Matches(into, 0) {
		t.Error("something else was read")
	}
	p.a[0].Hangup(p.now, c)
	p.idle()
}

// Whatever the other end says of a connection: no panic, no queue pair lost.
func FuzzConn(f *testing.F) {
	var b [messageLen]byte
	for _, m := range []message{{kind: accept, qpn: 0x123456}, {kind: accept, qpn: 0xffffff, size: 1 << 63, rkey: 1}, {kind: reject, reason: noRoom}, {kind: closed}, {kind: closing}, {kind: request, service: Memory}} {
		for _, open := range []bool{false, true} {
			m.encode(&b)
			f.Add(b[:], open)
		}
	}
	f.Fuzz(func(t *testing.T, in []byte, open bool) {
		if len(in) > hostnic.MaxDatagram {
			return
		}
		p := newPair(t, nil)
		p.listen(0)
		c := p.conn()
		p.until("a connection", frame.Second, func() bool { return c.State == Running })
		if !open {
			p.a[0].Hangup(p.now, c)
		}
		if len(in) == messageLen {
			be.PutUint64(in[8:], c.id) // of this connection
		}
		if err := p.a[1].NIC().SendDatagram(p.now, p.a[0].cfg.NIC.Addr, Port, in); err != nil {
			t.Fatal(err)
		}
		p.run(50*tick, func() bool { return false })
		p.a[0].Hangup(p.now, c)
		p.a[1].Listen(nil)
		p.until("the end", 100*frame.Second, func() bool { s, n := p.a[1].Counts(); return p.a[0].Parting()+s+n == 0 })
		p.idle()
	})
}
