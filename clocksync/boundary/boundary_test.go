package boundary

import (
	"strings"
	"testing"

	"gswitch/clocksync"
	"gswitch/frame"
	"gswitch/vswitch"
	st "gswitch/vswitch/switchtest"
	"gswitch/wire"
)

// options make a clock that follows port 0 and sends by port 1.
func options() clocksync.Options {
	c := clocksync.Config{Epoch: 1, Accept: 0, Backup: 2, Interval: clocksync.DefaultInterval, Timeout1: clocksync.DefaultTimeout1, EpsBase: 10, EpsBackup: 30}
	c.Transmit.Add(1)
	return clocksync.Options{Config: c, Domain: clocksync.DefaultDomain}
}

func config() *vswitch.Config {
	cfg := st.Star()
	cfg.Options = cfg.Options.With(Name, options())
	return cfg
}

// messages decodes the PTP messages that leave by a port.
func messages(t *testing.T, r *st.Rig, port uint16) (v []clocksync.Packet) {
	t.Helper()
	for _, b := range r.Out(port) {
		var f clocksync.Packet
		if _, ok := f.Decode(b); !ok {
			t.Fatalf("%x", b)
		}
		v = append(v, f)
	}
	return v
}

func encode(f *clocksync.Packet) []byte {
	f.Src, f.Domain = st.HostMAC(1), clocksync.DefaultDomain
	b := make([]byte, 128)
	return b[:f.Encode(b)]
}

func syncMessage(at frame.Time) []byte {
	return encode(&clocksync.Packet{PTPFields: wire.PTPFields{Type: wire.PTPSync, Clock: 77, Time: wire.PTPTime{Nanoseconds: uint32(at)}}, HasSundial: true, Sundial: clocksync.Fields{Epoch: 1, Root: 77}})
}

// A switch measures its links, sets its clock by its parent alone, and sends to its
// child when, and only when, it has received something.
func TestBoundaryClock(t *testing.T) {
	r := st.New(t, config())
	c := Of(r.Switch.Nodes[0])
	r.Advance(1)
	asked := messages(t, r, 0)
	if len(asked) != 1 || asked[0].Type != wire.PTPPdelayReq {
		t.Fatalf("%+v", asked)
	}
	r.Advance(1000)
	r.In(0, encode(&clocksync.Packet{PTPFields: wire.PTPFields{Type: wire.PTPPdelayResp, Sequence: asked[0].Sequence, RequestClock: asked[0].Clock, RequestPort: 1}}))
	if d, ok := c.Delay(0).Value(); !ok || d < 300 || d > 501 {
		t.Errorf("a delay of %d, %t", d, ok)
	}
	messages(t, r, 1)
	r.In(2, syncMessage(500_000))
	if n := len(messages(t, r, 1)); n != 0 || c.State() != clocksync.Unsynced {
		t.Errorf("%d messages, %v: it followed who is not its parent", n, c.State())
	}
	r.In(0, syncMessage(500_000))
	sent := messages(t, r, 1)
	if len(sent) != 1 || c.State() != clocksync.Primary || !sent[0].HasSundial || sent[0].Sundial.Depth != 1 || sent[0].Sundial.Root != 77 {
		t.Fatalf("%v, %+v", c.State(), sent)
	}
	if d, _ := c.Delay(0).Value(); sent[0].Time.Nanoseconds < uint32(500_000+d) || sent[0].Time.Nanoseconds > uint32(500_000+d)+1000 {
		t.Errorf("it sends %d ns", sent[0].Time.Nanoseconds)
	}
	r.Advance(80 * frame.Microsecond)
	for _, f := range messages(t, r, 1) {
		if f.Type == wire.PTPSync {
			t.Error("a message that nothing was the reason for")
		}
	}
	r.Advance(200 * frame.Microsecond)
	if c.State() != clocksync.Holdover || c.Parent() != 2 || c.Uncertainty(r.Now) < 30 {
		t.Errorf("behind the timeout: %v by port %d", c.State(), c.Parent())
	}
}

// Without a clock the messages are what other link-local frames are.
func TestWithoutClock(t *testing.T) {
	for _, cfg := range []*vswitch.Config{st.Star(), config()} {
		r := st.New(t, cfg)
		r.Advance(1)
		for p := range uint16(3) {
			r.Out(p)
		}
		lldp := syncMessage(1)
		lldp[12], lldp[13] = 0x88, 0xcc
		r.In(0, lldp)
		r.In(0, syncMessage(1))
		var k vswitch.PortCounts
		r.Switch.Nodes[0].ReadPort(0, &k)
		taken := uint64(len(cfg.Options))
		if k.Drops[frame.ReservedMulticast] != 2-taken || k.Drops[frame.LocalConsumed] != taken {
			t.Errorf("dropped %d, taken %d of 2", k.Drops[frame.ReservedMulticast], k.Drops[frame.LocalConsumed])
		}
		for p := range uint16(3) {
			if n := len(r.Out(p)); n != 0 {
				t.Errorf("%d frames leave by port %d", n, p)
			}
		}
	}
}

func TestCheck(t *testing.T) {
	cfg := config()
	o := options()
	o.Timeout1 = o.Interval
	cfg.Options = cfg.Options.With(Name, o)
	if err := r(cfg); err == nil || !strings.Contains(err.Error(), "two intervals") {
		t.Error(err)
	}
}

func r(cfg *vswitch.Config) error { return check(cfg) }

// A link that goes takes what waits for it along, and the clock goes on behind it.
func TestLinkGoes(t *testing.T) {
	r := st.New(t, config())
	c := Of(r.Switch.Nodes[0])
	r.Advance(1)
	r.Out(0)
	for range 3 {
		req := encode(&clocksync.Packet{PTPFields: wire.PTPFields{Type: wire.PTPPdelayReq, Clock: 5, Port: 1}})
		r.In(0, req)
		r.Switch.Nodes[0].SetLink(r.Now, 0, false)
		r.Switch.Nodes[0].SetLink(r.Now, 0, true)
		r.Advance(10 * clocksync.DefaultInterval)
		r.In(0, req)
		got := 0
		for _, f := range messages(t, r, 0) {
			if f.Type == wire.PTPPdelayResp {
				got++
			}
		}
		if got == 0 {
			t.Fatalf("no answer any more: %+v", c.Messages)
		}
		r.Advance(10 * clocksync.DefaultInterval)
		r.Out(0)
	}
}

// A switch of two workers has one clock to be read, and messages that the worker
// without it took from the link have the stamp of their arrival.
func TestClockOfTwoWorkers(t *testing.T) {
	r := st.NewOf(t, config(), 2, 4096)
	r.Advance(1)
	messages(t, r, 1)
	came := r.Now
	ask := r.Pools[1].New(encode(&clocksync.Packet{PTPFields: wire.PTPFields{Type: wire.PTPPdelayReq, Clock: 5, Port: 1, Sequence: 3}}))
	r.Switch.Nodes[1].Receive(r.Now, 1, []frame.Ref{ask})
	r.Advance(7 * frame.Microsecond)
	answers := messages(t, r, 1)
	if len(answers) != 1 || answers[0].Type != wire.PTPPdelayResp || frame.Time(answers[0].Correction>>16) < r.Now-came {
		t.Errorf("%+v: the request waited for %d ns", answers, r.Now-came)
	}
	states := 0
	for _, n := range r.Switch.Nodes {
		n.ReadFeatures(func(f *vswitch.Feature, c int, _ uint16, v float64, labels ...string) {
			if f.Counters[c].Name == "clock_state" {
				states++
			}
		})
	}
	if states != 1 {
		t.Errorf("%d states are read", states)
	}
}

// What the switch stamps is in synchronised time from the first message on, and in its own
// without a clock.
func TestStampsAreSynchronised(t *testing.T) {
	r := st.New(t, config())
	n := r.Switch.Nodes[0]
	c := Of(n)
	r.Advance(1)
	asked := messages(t, r, 0)
	r.Advance(1000)
	if n.Synchronised(r.Now) != r.Now {
		t.Errorf("%d at %d before any message", n.Synchronised(r.Now), r.Now)
	}
	r.In(0, encode(&clocksync.Packet{PTPFields: wire.PTPFields{Type: wire.PTPPdelayResp, Sequence: asked[0].Sequence, RequestClock: asked[0].Clock, RequestPort: 1}}))
	r.In(0, syncMessage(500_000))
	if at := n.Synchronised(r.Now); at != c.At(r.Now) || at < 500_000 {
		t.Errorf("%d, and the clock says %d", at, c.At(r.Now))
	}
	// Set back, stamps do not follow at once.
	took := c.At(r.Now) - 500_000 // the message on the link
	r.Advance(clocksync.DefaultInterval)
	back := c.At(r.Now) - took - 10
	last := n.Synchronised(r.Now)
	r.In(0, syncMessage(back))
	if at := n.Synchronised(r.Now); c.At(r.Now) >= last || at < last {
		t.Errorf("%d, behind %d; the clock says %d", at, last, c.At(r.Now))
	}
	if at := n.Synchronised(r.Now + 1000); at != c.At(r.Now+1000) {
		t.Errorf("stamps have not caught up: %d, not %d", at, c.At(r.Now+1000))
	}
	cfg := config()
	cfg.Options = nil
	r.Apply(cfg)
	if n.Synchronised(r.Now) != r.Now {
		t.Error("synchronised without a clock")
	}
}

// Messages for which there is no memory are counted, with the clock and with the switch.
func TestWithoutMemory(t *testing.T) {
	r := st.New(t, config())
	n := r.Switch.Nodes[0]
	pool := r.Pools[0]
	pool.FailAt([]frame.Misses{{First: pool.Asked() + 1, N: 1 << 40}})
	r.Advance(1)
	self := n.SelfDrops()
	if unsent := Of(n).Messages.Unsent; unsent == 0 || self[frame.ArenaExhausted] != unsent {
		t.Errorf("%d messages were not sent, %d frames are missing", unsent, self[frame.ArenaExhausted])
	}
	pool.FailAt(nil)
}
