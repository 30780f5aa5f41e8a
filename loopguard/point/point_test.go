package point

import (
	"bytes"
	"strings"
	"testing"

	"gswitch/frame"
	"gswitch/loopguard"
	"gswitch/vswitch"
	st "gswitch/vswitch/switchtest"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// guarded is a bridge of ports that looks for loops every second.
func guarded(ports int) *vswitch.Config {
	cfg := st.Base(ports)
	cfg.Secret = 99
	cfg.Options = vswitch.Options{Name: Options{Interval: frame.Second, Shut: 10 * frame.Second}}
	return cfg
}

// values are what a switch counts at a port, those with labels by name and label.
func values(r *st.Rig, port uint16) map[string]float64 {
	v := map[string]float64{}
	for _, n := range r.Switch.Nodes {
		n.ReadFeatures(func(f *vswitch.Feature, c int, at uint16, x float64, labels ...string) {
			if f.Name == Name && at == port {
				v[strings.Join(append([]string{f.Counters[c].Name}, labels...), " ")] += x
			}
		})
	}
	return v
}

// cable carries what leaves by port a to port b. A loop is one both ways.
type cable struct{ a, b uint16 }

// run lets time pass, and cables carry what they get, vector by vector. It returns what left by each port.
func run(r *st.Rig, d frame.Time, cables ...cable) map[uint16][][]byte {
	left := map[uint16][][]byte{}
	const step = 50 * frame.Millisecond
	for end := r.Now + d; r.Now < end; {
		r.Advance(step)
		for p := range uint16(len(r.Switch.Nodes[0].Config().Ports)) {
			out := r.Out(p)
			left[p] = append(left[p], out...)
			for _, c := range cables {
				if c.a == p && len(out) > 0 {
					r.In(c.b, out...)
				}
			}
		}
	}
	return left
}

func open(r *st.Rig, port uint16) bool { return r.Switch.DisabledBy(port) == "" }

func wantOpen(t *testing.T, what string, r *st.Rig, want ...bool) {
	t.Helper()
	for p, x := range want {
		if open(r, uint16(p)) != x {
			t.Errorf("%s: port %d is open %v, want %v: %v", what, p, !x, x, values(r, uint16(p)))
		}
	}
}

// Of two ports that a cable joins the later one is shut, for its time, and again as long as the cable is there. The
// other ports and what goes between them are not touched.
func TestCable(t *testing.T) {
	for _, workers := range []int{1, 2} {
		cfg := guarded(4)
		for i := range cfg.Ports {
			cfg.Ports[i].Worker = i % workers
		}
		r := st.NewOf(t, cfg, workers, 4096)
		both := []cable{{1, 2}, {2, 1}}
		run(r, 2*frame.Second, both...)
		wantOpen(t, "with the cable", r, true, true, false, true)
		v := values(r, 2)
		if s := v["loops_shut_seconds b"]; s <= 7 || s > 10 || v["loops_received_total shut"] != 1 {
			t.Errorf("the port on the loop: %v", v)
		}
		if v = values(r, 1); v["loops_received_total shut"] != 0 || v["loops_shut_seconds c"] != 0 {
			t.Errorf("the other end: %v", v)
		}
		r.Out(0)
		r.In(3, wt.Frame(wt.Eth(wire.BroadcastMAC, st.HostMAC(3)), wt.Zeros(46)))
		r.Advance(0)
		if a, b, c := len(r.Out(0)), len(r.Out(1)), len(r.Out(2)); a != 1 || b != 1 || c != 0 {
			t.Errorf("a broadcast leaves by a %d, b %d and c %d times", a, b, c)
		}
		run(r, 10*frame.Second, both...)
		wantOpen(t, "when its time is over, with the cable", r, true, true, false, true)
		if v = values(r, 2); v["loops_received_total shut"] != 2 {
			t.Errorf("shut again: %v", v)
		}
		run(r, 12*frame.Second)
		wantOpen(t, "without the cable", r, true, true, true, true)
	}
}

// The later port is shut, too, where the frame of the later one comes first.
func TestLaterPort(t *testing.T) {
	r := st.New(t, guarded(3))
	r.Advance(frame.Second)
	of1, of2 := r.Out(1), r.Out(2)
	r.In(1, probe(t, of2))
	wantOpen(t, "the first frame", r, true, true, true)
	r.In(2, probe(t, of1))
	wantOpen(t, "the second", r, true, true, false)
}

// A way that leads in one direction only is a loop, too, whichever it is, and a port can be on one with itself.
func TestOneWay(t *testing.T) {
	for _, c := range []cable{{1, 2}, {2, 1}, {1, 1}} {
		r := st.New(t, guarded(3))
		run(r, 4*frame.Second, c)
		for p := range uint16(3) {
			if open(r, p) == (p == c.b) {
				t.Errorf("from %d to %d: port %d is open %v, %v", c.a, c.b, p, open(r, p), values(r, p))
			}
		}
	}
}

// A loop through a neighbour that puts a tag on is found.
func TestTagged(t *testing.T) {
	cfg := guarded(2)
	cfg.Ports[1].VLANMode, cfg.VLANs = vswitch.VLANTrunk, []vswitch.VLANConfig{{ID: 7}}
	r := st.New(t, cfg)
	b := probe(t, run(r, 2*frame.Second)[0])
	r.In(1, append(append(append([]byte(nil), b[:12]...), 0x81, 0, 0, 7), b[12:]...))
	wantOpen(t, "tagged", r, true, false)
}

// probe is the last frame to find loops among some.
func probe(t *testing.T, v [][]byte) []byte {
	t.Helper()
	for i := len(v) - 1; i >= 0; i-- {
		if wire.Ethernet(v[i]).EtherType() == loopguard.EtherType {
			return v[i]
		}
	}
	t.Fatalf("no probe among %d frames", len(v))
	return nil
}

// A neighbour that repeats what it got, changes it or makes it up, shuts at most its own port, and the probes of other
// switches pass as what they are: frames to a group.
func TestHostile(t *testing.T) {
	r := st.New(t, guarded(4))
	got := probe(t, run(r, 2*frame.Second)[1])
	for i := wire.EthernetLen; i < 58; i++ { // what follows is padding
		b := bytes.Clone(got)
		b[i] ^= 1
		r.In(1, b)
		if i%8 == 7 {
			run(r, frame.Second)
		}
	}
	old := bytes.Clone(got)
	run(r, 3*frame.Second)
	r.In(1, old)
	run(r, frame.Second)
	wantOpen(t, "changed, and too late", r, true, true, true, true)
	v := values(r, 1)
	if v["loops_received_total forged"] == 0 || v["loops_received_total stale"] != 1 || v["loops_received_total shut"] != 0 {
		t.Errorf("%v", v)
	}
	for range 3 * maxLooks {
		r.In(1, got)
	}
	if v = values(r, 1); v["loops_received_total over-rate"] != 2*maxLooks {
		t.Errorf("looked at in a second: %v", v)
	}
	r.In(1, probe(t, run(r, 2*frame.Second)[1]))
	wantOpen(t, "repeated", r, true, false, true, true)
	for p := range uint16(4) {
		r.Out(p)
	}

	other := loopguard.NewKey(3, st.HostMAC(9))
	b := make([]byte, 64)
	b = b[:other.Encode(b, st.HostMAC(9), loopguard.Probe{Port: 2, Sent: r.Now})]
	r.In(2, b)
	r.Advance(0)
	if out := r.Out(0); len(out) != 1 || !bytes.Equal(out[0], b) {
		t.Errorf("of another switch's probe %d frames go on", len(out))
	}
	wantOpen(t, "of another switch", r, true, false, true, true)
}

// A port that is disabled and enabled again works; so does one at which the feature is turned off.
func TestBackAtOnce(t *testing.T) {
	cfg := guarded(2)
	r := st.New(t, cfg)
	loop := []cable{{1, 1}}
	run(r, 2*frame.Second, loop...)
	wantOpen(t, "on a loop", r, true, false)
	off := *cfg
	off.Ports = append([]vswitch.PortConfig(nil), cfg.Ports...)
	off.Ports[1].Enabled = false
	r.Apply(&off)
	run(r, 100*frame.Millisecond)
	r.Apply(cfg)
	run(r, 100*frame.Millisecond)
	if !open(r, 1) || !r.Switch.Nodes[0].LinkUp(1) {
		t.Error("the port is not back")
	}
	none := *cfg
	none.Options = nil
	run(r, 2*frame.Second, loop...)
	wantOpen(t, "on a loop again", r, true, false)
	r.Apply(&none)
	sent := run(r, 100*frame.Millisecond, loop...)
	if len(sent[0])+len(sent[1]) != 0 || !open(r, 1) || len(values(r, 1)) != 0 {
		t.Errorf("without the feature: %d frames, open %v, %v", len(sent[0])+len(sent[1]), open(r, 1), values(r, 1))
	}
}

// Only the ports that are named take part; what cannot be meant is refused.
func TestPorts(t *testing.T) {
	cfg := guarded(3)
	cfg.Options = vswitch.Options{Name: Options{Interval: frame.Second, Shut: 10 * frame.Second, Ports: []string{"a", "b"}}}
	cfg.Ports[0].Addresses = st.Prefixes("10.0.0.1/24")
	r := st.New(t, cfg)
	sent := run(r, 2500*frame.Millisecond, cable{1, 2}, cable{2, 1})
	if n := len(sent[0]) + len(sent[2]); n != 0 || len(sent[1]) < 2 {
		t.Errorf("%d frames by ports that take no part, %d by the one that does", n, len(sent[1]))
	}
	wantOpen(t, "a port that takes no part", r, true, true, true)
	for _, s := range []Section{{Ports: []string{"nosuch"}}, {Ports: []string{"b", "a"}}} {
		if _, err := s.Options(cfg); err == nil {
			t.Errorf("%+v is taken", s)
		}
	}
	if o, err := (&Section{Ports: []string{"c"}}).Options(cfg); err != nil || len(o.(Options).Ports) != 1 {
		t.Errorf("%v %v", o, err)
	}
	for _, o := range []any{nil, Options{Shut: frame.Second}, Options{Interval: frame.Second}} {
		bad := st.Base(1)
		bad.Options = vswitch.Options{Name: o}
		if check(bad) == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}
