package xsk

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gswitch/bpf"
	"gswitch/frame"
)

// The ladder says which mode was obtained and why the better ones were not.
func TestModeLadder(t *testing.T) {
	l := newLab(t)
	l.pair("h0", "s0", 1500, 1)
	g := newGroup(t, 512, 2048)
	p := g.openPort(PortConfig{Interface: "s0", Socket: inLab(l, Config{FillSize: 64})})
	r := p.Rungs()
	if p.Mode() != Native || len(r) != 2 || r[0].Mode != ZeroCopy || !errors.Is(r[0].Err, unix.EOPNOTSUPP) || r[1] != (Rung{Mode: Native}) {
		t.Fatalf("mode %v, rungs %v", p.Mode(), r)
	}
	g.closeAll()
	s, err := Open(g.u, inLab(l, Config{IfIndex: l.ifindex("s0")}))
	if err != nil || s.Mode() != Native || len(s.Rungs()) != 2 {
		t.Fatalf("socket alone: %v, %v", s, err)
	}
	s.Close()
	_, err = OpenPort(g.u, PortConfig{Interface: "s0", Socket: inLab(l, Config{Mode: ZeroCopy})})
	if err == nil || !strings.Contains(err.Error(), "s0") || !strings.Contains(err.Error(), "zero-copy") {
		t.Fatalf("pinned zero-copy on veth: %v", err)
	}
	if id := l.attached("s0"); id != 0 {
		t.Fatalf("program %d was left behind by a port that did not open", id)
	}

	// Loopback has no native XDP: the ladder goes down to generic.
	l.do(func() error { return setUp("lo", true) })
	g2 := newGroup(t, 512, 4096)
	p = g2.openPort(PortConfig{Interface: "lo", Socket: inLab(l, Config{FillSize: 64, Multibuffer: true})})
	if p.Mode() != Generic || len(p.Rungs()) != 3 {
		t.Fatalf("lo: mode %v, rungs %v", p.Mode(), p.Rungs())
	}
	g2.closeAll()
}

// The kernel keeps a queue busy for a while after its socket was closed.
func TestReopen(t *testing.T) {
	l := newLab(t)
	l.pair("h0", "s0", 1500, 1)
	g := newGroup(t, 1024, 2048)
	in, out := l.wire("h0"), make([]frame.Ref, 64)
	for i := range 20 {
		s := g.open(l, "s0", Config{Mode: Native, FillSize: 256})
		in.send(testFrame(60, uint32(i)))
		for s.Receive(g.a, out) == 0 {
		}
		// Leave a frame in every place: received, posted, sent.
		s.Transmit(g.a, out[:1])
		if i%2 == 0 {
			if err := s.Kick(); err != nil {
				t.Fatal(err)
			}
		}
		g.closeAll()
	}
}

func TestQueueHeldByAnother(t *testing.T) {
	l := newLab(t)
	l.pair("h0", "s0", 1500, 1)
	g, other := newGroup(t, 512, 2048), newGroup(t, 512, 2048)
	c := inLab(l, Config{IfIndex: l.ifindex("s0"), Mode: Native})
	s, err := Open(g.u, c)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, err = Open(other.u, c)
	if !errors.Is(err, ErrQueueBusy) || !strings.Contains(err.Error(), "s0") || !strings.Contains(err.Error(), "queue 0") {
		t.Fatalf("second socket on a queue: %v", err)
	}
}

func TestPortRefusesSecondProgram(t *testing.T) {
	l := newLab(t)
	l.pair("h0", "s0", 1500, 1)
	g, other := newGroup(t, 512, 2048), newGroup(t, 512, 2048)
	g.open(l, "s0", Config{FillSize: 64})
	for _, mode := range []Mode{Auto, Native, Generic} {
		_, err := OpenPort(other.u, PortConfig{Interface: "s0", Socket: inLab(l, Config{Mode: mode})})
		var busy *bpf.BusyError
		if !errors.As(err, &busy) || busy.Interface != "s0" || busy.ID != l.attached("s0") || busy.Name != "gswitch_port" {
			t.Fatalf("mode %v: %v", mode, err)
		}
	}
}

// Busy polling is set where it is configured, and a driver without it loses
// nothing by it.
func TestBusyPoll(t *testing.T) {
	for _, budget := range []int{0, 64} {
		l := newLab(t)
		l.pair("h0", "s0", 1500, 1)
		g := newGroup(t, 1024, 2048)
		s := g.open(l, "s0", Config{FillSize: 256, BusyPoll: budget})
		prefer, err := unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_PREFER_BUSY_POLL)
		if err != nil || (prefer != 0) != (budget > 0) {
			t.Errorf("budget %d: preferred %d, %v", budget, prefer, err)
		}
		in, v := l.wire("h0"), make([]frame.Ref, 64)
		for i := range uint32(50) {
			in.send(testFrame(60, i))
			for s.Receive(g.a, v) == 0 {
				if s.NeedsRxWakeup() {
					if err := s.WakeRx(); err != nil {
						t.Fatal(err)
					}
				}
			}
			g.p.Free(v[0])
			s.Fill(g.p)
		}
		id, err := unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_INCOMING_NAPI_ID)
		if want := budget > 0 && id != 0; err != nil || s.BusyPoll() != want || s.enableNAPI {
			t.Errorf("budget %d: polls %v with NAPI id %d, %v", budget, s.BusyPoll(), id, err)
		}
		g.closeAll()
	}
}

func TestConfigErrors(t *testing.T) {
	for want, c := range map[string]Config{
		"RX ring: 100":        {IfIndex: 1, RxSize: 100},
		"completion ring":     {IfIndex: 1, TxSize: 4096, CompSize: 2048},
		"TX budget":           {IfIndex: 1, TxBudget: 5000},
		"interface index 0":   {},
		"busy poll budget -1": {IfIndex: 1, BusyPoll: -1},
		"queue -1":            {IfIndex: 1, Queue: -1},
		"namespace xsk-none":  {IfIndex: 1, NetNS: "xsk-none"},
	} {
		u, err := NewUMEM(16, 2048, Options{HugePages: true})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Open(u, c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want it to say %q", c, err, want)
		}
		if err := u.Close(); err != nil {
			t.Error(err)
		}
	}
}
