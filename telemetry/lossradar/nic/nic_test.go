package nic

import (
	"net/netip"
	"strings"
	"testing"

	"gswitch/frame"
	"gswitch/hostnic"
	"gswitch/telemetry/lossradar"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

const batch = frame.Millisecond

func options() lossradar.Config {
	return lossradar.Config{Shape: lossradar.DefaultShape(), Timing: lossradar.Timing{Period: batch, Timeout: 200 * frame.Microsecond}}
}

func mac(i int) wire.MAC       { return wire.MAC{2, 0, 0, 0, 0, byte(i)} }
func addr(i int) netip.Addr    { return netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}) }
func metersOf(h *host) *Meters { return h.nic.Feature(Name).(*Meters) }

// host is a NIC at an end of a cable.
type host struct {
	nic  *hostnic.NIC
	pool *frame.Pool
	shot int
}

func newHost(t *testing.T, i int, o hostnic.Options) *host {
	t.Helper()
	pool := frame.NewPool(frame.MustArena(256, 2048, frame.DefaultHeadroom))
	n, err := hostnic.New(&hostnic.Config{Name: "h", MAC: mac(i), Addr: addr(i), Rate: 10e9, Overhead: 24, Payload: 1000, AckClass: -1, AckPauseClass: -1, Options: o}, pool)
	if err != nil {
		t.Fatal(err)
	}
	n.SetLink(0, 0, true)
	return &host{nic: n, pool: pool}
}

// cable is two hosts, and what the digests of both ends come to.
type cable struct {
	t    *testing.T
	h    [2]*host
	now  frame.Time
	pair *lossradar.Pairer
	out  []lossradar.Outcome
}

func newCable(t *testing.T, a, b hostnic.Options) *cable {
	return &cable{t: t, h: [2]*host{newHost(t, 1, a), newHost(t, 2, b)}, pair: lossradar.NewPairer(options().Timing, batch, []lossradar.Segment{
		{Name: "1>2", Up: []lossradar.Meter{{Node: 1}}, Down: []lossradar.Meter{{Node: 2, Down: true}}},
		{Name: "2>1", Up: []lossradar.Meter{{Node: 2}}, Down: []lossradar.Meter{{Node: 1, Down: true}}},
	})}
}

// pass sends so many datagrams from one host to the other. Those that lose chooses do not
// arrive; touch may change them on the way.
func (c *cable) pass(from, frames int, lose func(i int) bool, touch func(b []byte) []byte) {
	c.t.Helper()
	a, b := c.h[from], c.h[1-from]
	for k := range frames {
		c.run(10 * frame.Microsecond)
		a.shot++
		a.nic.QueueFrame(c.now, a.pool.New(wt.Frame(wt.Eth(mac(2-from), mac(1+from)), wt.IPv4(addr(1+from).String(), addr(2-from).String(), wt.IPv4With(func(f *wire.IPv4Fields) { f.ID = uint16(a.shot) })), wt.UDP(7, 9), wt.Zeros(100))), false, 1)
		var out [4]frame.Ref
		if n := a.nic.Transmit(c.now, 0, out[:]); n != 1 {
			c.t.Fatalf("%d frames leave", n)
		}
		x := append([]byte(nil), a.pool.Bytes(out[0])...)
		a.pool.Free(out[0])
		if touch != nil {
			x = touch(x)
		}
		if lose == nil || !lose(k) {
			b.nic.Receive(c.now, 0, []frame.Ref{b.pool.New(x)})
		}
	}
}

// run lets time pass and takes the reports that are ready.
func (c *cable) run(dt frame.Time) {
	c.now += dt
	for i, h := range c.h {
		if h.nic.TimerWake(c.now) <= c.now {
			h.nic.Advance(c.now)
		}
		m, on := h.nic.Feature(Name).(*Meters)
		if !on {
			continue
		}
		for x, out := m.Reports().Take(); x != nil; x, out = m.Reports().Take() {
			x.Meter.Node = uint16(i + 1)
			c.pair.Add(c.now, x)
			x.Reset()
			out.Return(x)
		}
	}
	c.out = append(c.out, c.pair.Advance(c.now)...)
}

// end returns what was lost in all batches of a direction.
func (c *cable) end(segment int) (lost []lossradar.Fields, bad int, sent int64) {
	for range 100 {
		c.run(batch / 10)
	}
	for _, o := range c.out {
		if o.Segment != segment {
			continue
		}
		for _, s := range o.Lost {
			lost = append(lost, s.Fields())
		}
		bad += len(o.Extra) + o.Residual
		if sent += o.Sent; o.Unknown {
			bad++
		}
	}
	return lost, bad, sent
}

var metered = hostnic.Options{Name: options()}

// Each frame that a cable between two hosts loses is named, in the direction in which it
// was lost, and no other: over many batches, and whatever queues hold.
func TestCable(t *testing.T) {
	c := newCable(t, metered, metered)
	c.pass(0, 500, func(i int) bool { return i%50 == 7 }, nil)
	c.pass(1, 300, nil, nil)
	lost, bad, sent := c.end(0)
	if len(lost) != 10 || bad != 0 || sent != 500 {
		t.Errorf("%d are named, want 10; %d of what there is not; %d sent", len(lost), bad, sent)
	}
	for _, f := range lost {
		if (f.ID-1)%50 != 7 || f.Src != 0x0a000001 || f.DstPort != 9 {
			t.Errorf("lost is %+v", f)
		}
	}
	if lost, bad, sent := c.end(1); len(lost)+bad != 0 || sent != 300 {
		t.Errorf("the other way: %d lost, %d of what there is not, %d sent", len(lost), bad, sent)
	}
	if a, b := metersOf(c.h[0]).count, metersOf(c.h[1]).count; a.Sent != 500 || a.Arrived != 300 || b.Sent != 300 || b.Arrived != 490 {
		t.Errorf("%+v, %+v", a, b)
	}
}

// A tag is eight bytes of the link, which takes the longer for them, and the host behind it
// gets the frame as it was.
func TestTagIsOfTheLink(t *testing.T) {
	c := newCable(t, metered, metered)
	var on []byte
	c.pass(0, 1, nil, func(x []byte) []byte { on = x; return x })
	if et := uint16(on[12])<<8 | uint16(on[13]); et != wire.EtherTypeLinkTag || len(on) != 142+wire.LinkTagLen {
		t.Errorf("EtherType %#x, %d bytes", et, len(on))
	}
	if n := c.h[0].nic.Counts(); n.LinkBytes != uint64(len(on)+24) {
		t.Errorf("the link has carried %d bytes", n.LinkBytes)
	}
	if n := c.h[1].nic.Counts(); n.RxBytes != 142 {
		t.Errorf("%d bytes came", n.RxBytes)
	}
}

// Frames without a tag are not counted and arrive as before; those whose header was
// changed on the way are lost.
func TestOthers(t *testing.T) {
	c := newCable(t, nil, metered)
	c.pass(0, 20, nil, func(x []byte) []byte {
		if len(x) != 142 {
			t.Fatalf("a host without meters sends %d bytes", len(x))
		}
		return x
	})
	if m := metersOf(c.h[1]); m.count != (lossradar.Counts{}) || c.h[1].nic.Counts().RxFrames != 20 {
		t.Errorf("%+v", m.count)
	}
	c = newCable(t, metered, metered)
	c.pass(0, 20, nil, func(x []byte) []byte { x[wire.LinkTagLen+wire.EthernetLen+12]++; return x })
	if lost, bad, _ := c.end(0); len(lost) != 20 || bad != 0 || metersOf(c.h[1]).count.Wild != 20 {
		t.Errorf("%d lost, %d of what there is not, %+v", len(lost), bad, metersOf(c.h[1]).count)
	}
}

// Without options the meters are gone, and with others they are made anew.
func TestChange(t *testing.T) {
	c := newCable(t, metered, metered)
	c.pass(0, 5, nil, nil)
	cfg := c.h[0].nic.Config()
	cfg.Options = nil
	if err := c.h[0].nic.Reconfigure(c.now, &cfg); err != nil {
		t.Fatal(err)
	}
	c.pass(0, 5, nil, func(x []byte) []byte {
		if len(x) != 142 {
			t.Fatalf("%d bytes", len(x))
		}
		return x
	})
	if m := metersOf(c.h[0]); m.Reports().Outbox() != nil {
		t.Error("there are reports without meters")
	}
	cfg.Options = metered
	if err := c.h[0].nic.Reconfigure(c.now, &cfg); err != nil {
		t.Fatal(err)
	}
	c.out = nil
	c.pass(0, 100, func(i int) bool { return i == 50 }, nil)
	if lost, _, _ := c.end(0); len(lost) != 1 {
		t.Errorf("%d lost", len(lost))
	}
}

func TestRefusals(t *testing.T) {
	for want, o := range map[string]any{"options of another kind": 7, "too few": lossradar.Config{Shape: lossradar.Shape{Cells: 2, Hashes: 3}, Timing: lossradar.DefaultTiming()}} {
		cfg := newHost(t, 1, nil).nic.Config()
		cfg.Options = hostnic.Options{Name: o}
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := (&Section{lossradar.Keys{Batch: 1, Timeout: 2e6, Cells: 400, Hashes: 3}}).Options(nil); err == nil {
		t.Error("a batch of 1 ns is taken")
	}
}

// Frames that come and go allocate nothing.
func TestNothingIsAllocated(t *testing.T) {
	c := newCable(t, metered, metered)
	c.pass(0, 1, nil, nil)
	a := c.h[0]
	plain := wt.Frame(wt.Eth(mac(2), mac(1)), wt.IPv4("10.0.0.1", "10.0.0.2"), wt.UDP(7, 9), wt.Zeros(100))
	var out [4]frame.Ref
	if n := testing.AllocsPerRun(100, func() {
		c.now += frame.Microsecond
		a.nic.Advance(c.now)
		a.nic.QueueFrame(c.now, a.pool.New(plain), false, 1)
		k := a.nic.Transmit(c.now, 0, out[:])
		a.nic.Receive(c.now, 0, out[:k])
	}); n != 0 {
		t.Errorf("%v allocations per frame", n)
	}
}
