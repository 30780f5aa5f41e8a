package point

import (
	"fmt"
	"gswitch/notice"
	"slices"
	"testing"

	"gswitch/frame"
	"gswitch/qcn"
	"gswitch/vswitch"
	st "gswitch/vswitch/switchtest"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

func config(o Config) *vswitch.Config {
	cfg := st.Star()
	cfg.Ports[1].Options = vswitch.Options{Name: o}
	return cfg
}

var usual = Config{Queues: 1, Params: qcn.Default()}

func pointOf(r *st.Rig) *qcn.Point {
	return r.Switch.Nodes[0].Feature(Name).(*points).ports[1][0].Point
}

// messages takes the messages that leave by a port.
func messages(t *testing.T, r *st.Rig, port uint16) (list []qcn.Message, quotes [][]byte) {
	t.Helper()
	for range 1000 { // a microsecond each: they leave one behind the other
		r.Now += frame.Microsecond
		for _, b := range r.Out(port) {
			wt.Check(t, b, wt.Checksums())
			m, why := wt.Parse(b)
			if why != frame.Keep {
				t.Fatal(why)
			}
			typ := uint8(notice.Type4)
			if m.Flags&frame.HasIPv6 != 0 {
				typ = notice.Type6
			}
			var msg qcn.Message
			q, err := msg.Decode(b[m.L4:], typ)
			if err != nil || m.DSCP != 56 {
				t.Fatalf("%v, DSCP %d: %x", err, m.DSCP, b)
			}
			list, quotes = append(list, msg), append(quotes, append([]byte(nil), q...))
		}
	}
	return list, quotes
}

// A queue that grows notifies the senders of what it samples: as much as a point
// that stands beside it says, and as often.
func TestQuantizedFeedback(t *testing.T) {
	r := st.New(t, config(usual))
	r.Now = 1
	beside := *pointOf(r)
	want := map[uint16][]qcn.Message{}
	samples, queued := uint64(0), uint64(0)
	for range 400 {
		for _, port := range []uint16{0, 2} {
			b := st.RoCE(int(port)+1, 1, 1400)
			r.In(port, b)
			queued += uint64(len(b))
			if beside.Arrive(uint32(len(b))) {
				samples++
				m := qcn.Message{Point: 9<<32 | 1<<8}
				if m.Set(beside.Judge(queued)); m.Feedback > 0 {
					want[port] = append(want[port], m)
				}
			}
		}
	}
	sent := 0
	for _, port := range []uint16{0, 2} {
		list, quotes := messages(t, r, port)
		if fmt.Sprint(list) != fmt.Sprint(want[port]) {
			t.Errorf("by port %d came %v, want %v", port, list, want[port])
		}
		for _, q := range quotes {
			sent++
			if ip := wire.IPv4(q); len(q) != 20+8+12 || ip.Src() != [4]byte{10, 0, 0, byte(port + 1)} {
				t.Errorf("a message quotes %x", q)
			}
		}
	}
	v := Views(r.Switch.Nodes[0], nil)
	if len(v) != 1 || v[0].Samples != samples || v[0].Messages != uint64(sent) || sent < 20 || v[0].Unsent+v[0].NoSender != 0 {
		t.Errorf("%d messages of %d samples; the point says %+v", sent, samples, v)
	}
}

// Routers send messages by the route to the sender, over IPv4 and IPv6.
func TestQuantizedFeedbackOfARouter(t *testing.T) {
	cfg := st.Router()
	cfg.Ports[1].Options = vswitch.Options{Name: Config{Queues: 0xff, Params: qcn.Params{SetPoint: 5000, Weight: 2, Sample: 3000}}}
	r := st.New(t, cfg)
	v4 := wt.Frame(wt.Eth(st.SelfMAC, st.HostMAC(1)), wt.IPv4("10.0.0.1", "10.0.1.2"), wt.UDP(1000, 2000), wt.Zeros(1400))
	v6 := wt.Frame(wt.Eth(st.SelfMAC, st.HostMAC(1)), wt.IPv6("fd00::1", "fd01::2"), wt.UDP(1000, 2000), wt.Zeros(1300))
	for range 20 {
		var v [32]frame.Ref // as many as one vector has
		for i := range v {
			v[i] = r.Pools[0].New([][]byte{v4, v6}[i%2])
		}
		r.Switch.Nodes[0].Receive(r.Now, 0, v[:])
	}
	list, quotes := messages(t, r, 0)
	kinds := map[byte]int{}
	for _, q := range quotes {
		kinds[q[0]>>4]++
	}
	if len(list) < 50 || kinds[4] == 0 || kinds[6] == 0 {
		t.Errorf("%d messages: %v", len(list), kinds)
	}
	if got := Views(r.Switch.Nodes[0], nil)[0]; got.Messages != uint64(len(list)) {
		t.Errorf("%d came, of %+v", len(list), got)
	}
}

// Turned off and on again, a point forgets what it counted; numbers that
// cannot be meant are refused.
func TestQuantizedFeedbackIsReconfigured(t *testing.T) {
	cfg := config(usual)
	r := st.New(t, cfg)
	change := func(c Config) error {
		next := *cfg
		next.Ports = append([]vswitch.PortConfig(nil), cfg.Ports...)
		next.Ports[1].Options = vswitch.Options{Name: c}
		err := r.Switch.Apply(&next)
		r.Advance(1)
		return err
	}
	other := qcn.Params{SetPoint: 1, Weight: 1, Sample: 64}
	if err := change(Config{Queues: 1, Params: other}); err != nil || *pointOf(r).Params() != other {
		t.Error(err)
	}
	if err := change(Config{}); err != nil || len(Views(r.Switch.Nodes[0], nil)) != 0 {
		t.Error(err)
	}
	if err := change(Config{Queues: 1}); err == nil {
		t.Error("a point without a set point is taken")
	}
}

func TestQuantizedFeedbackAllocatesNothing(t *testing.T) {
	r := st.New(t, config(Config{Queues: 1, Params: qcn.Params{SetPoint: 1, Weight: 2, Sample: 64}}))
	n := r.Switch.Nodes[0]
	r.AllocatesNothing(slices.Repeat([][]byte{st.RoCE(1, 1, 1000)}, 16))
	if c := Views(n, nil)[0]; c.Messages < 1000 || c.Unsent != 0 {
		t.Errorf("%+v", c)
	}
}
