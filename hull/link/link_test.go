package link

import (
	"testing"

	"gswitch/frame"
	"gswitch/hull"
	"gswitch/vswitch"
	st "gswitch/vswitch/switchtest"
	wt "gswitch/wire/wiretest"
)

// ect is a datagram of station 1 to station 2 whose sender understands marks, or
// does not.
func ect(on bool) []byte {
	tos := uint8(0)
	if on {
		tos = 2
	}
	return wt.Frame(wt.Eth(st.HostMAC(2), st.HostMAC(1)), wt.IPv4("10.0.0.1", "10.0.0.2", wt.TOS(tos)), wt.UDP(1000, 2000), wt.Zeros(1400))
}

func config(o Config) *vswitch.Config {
	cfg := st.Star()
	cfg.Ports[1].Options = vswitch.Options{Name: o}
	return cfg
}

// burst sends frames one behind the other, and returns how many of them leave
// with a mark.
func burst(t *testing.T, r *st.Rig, b []byte, n int) (marked int) {
	t.Helper()
	for range n {
		r.In(0, b)
	}
	left := 0
	for range n {
		r.Now += 300 // a frame takes 293 ns
		for _, f := range r.Out(1) {
			left++
			if m, why := wt.Parse(f); why != frame.Keep {
				t.Fatal(why)
			} else if m.Flags&frame.IsCE != 0 {
				marked++
			}
		}
	}
	if left != n {
		t.Fatalf("%d of %d frames left", left, n)
	}
	return marked
}

func (l *links) count() (n float64) {
	l.read(func(_ int, _ uint16, v float64, _ ...string) { n += v })
	return n
}

// What leaves at the rate of the link is marked as soon as the phantom queue has
// grown beyond its threshold, where the sender understands marks, and by no other
// port or queue.
func TestLinksMark(t *testing.T) {
	r := st.New(t, config(Config{Queues: 1, Params: hull.Params{Drain: 0.5, Threshold: 5000}}))
	state := r.Switch.Nodes[0].Feature(Name).(*links)
	if n := burst(t, r, ect(false), 50); n != 0 || state.count() != 0 {
		t.Errorf("%d frames are marked whose sender does not understand it", n)
	}
	r.Advance(frame.Millisecond)
	// 1466 bytes each, with what the link adds, of which 750 are gone when the next
	// one leaves. The seven before the eighth leave more than 5000.
	if n := burst(t, r, ect(true), 50); n != 43 || state.count() != 43 {
		t.Errorf("%d frames are marked and %v counted, want 43", n, state.count())
	}
	r.Apply(config(Config{Queues: 2, Params: hull.Params{Drain: 0.5, Threshold: 5000}}))
	if n := burst(t, r, ect(true), 50); n != 0 {
		t.Errorf("%d frames of another queue are marked", n)
	}
	r.Apply(st.Star())
	if n := burst(t, r, ect(true), 50); n != 0 {
		t.Errorf("%d frames are marked without a phantom queue", n)
	}
}

func TestLinksAreChecked(t *testing.T) {
	r := st.New(t, st.Star())
	bad := config(Config{Queues: 1, Params: hull.Params{Drain: 2, Threshold: 1}})
	if r.Switch.Apply(bad) == nil {
		t.Error("a drain above the rate of the link is taken")
	}
	unrated := config(Config{Queues: 1, Params: hull.Default()})
	unrated.Ports[1].Scheduler.Rate = 0
	if r.Switch.Apply(unrated) == nil {
		t.Error("a port without a rate is taken")
	}
	s := Section{Drain: 0.95, Threshold: 6000}
	if _, err := s.Options(1, 0); err == nil {
		t.Error("a section at a port without a rate is taken")
	}
	if o, err := s.Options(3, 1e9); err != nil || o != (Config{Queues: 3, Params: hull.Default()}) {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestLinksAllocateNothing(t *testing.T) {
	r := st.New(t, config(Config{Queues: 1, Params: hull.Params{Drain: 0.001, Threshold: 1}}))
	r.AllocatesNothing([][]byte{ect(true), ect(true), ect(true)})
	if r.Switch.Nodes[0].Feature(Name).(*links).count() < 200 {
		t.Error("hardly any frame is marked")
	}
}
