package vswitch_test

import (
	"testing"

	"gswitch/frame"
	"gswitch/vswitch"
	st "gswitch/vswitch/switchtest"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// watcher is a feature that looks at what comes and what is dropped at the ports
// that have its options. It takes frames of an EtherType of its own, and
// understands MAC control frames of one opcode.
type watcher struct {
	node             *vswitch.Node
	came, wrong      int
	controls, adopts int
	at               [4]int // came, by port
	dropped          map[frame.Reason]int
	lastDrop         frame.Time
}

const (
	watched = "test-watcher"
	ownType = 0x88b6
)

func init() {
	vswitch.Register(vswitch.Feature{Name: watched, New: func(n *vswitch.Node) vswitch.Instance {
		w := &watcher{node: n, dropped: map[frame.Reason]int{}}
		return vswitch.Instance{State: w, Adopt: func(frame.Time) { w.adopts++ }, Listens: func(_ uint16, c *vswitch.PortConfig) bool { return c.Options[watched] != nil },
			Arrives: w.arrives, Control: w.control, Dropped: w.drops, Port: w.port, Departs: w.departs}
	}})
}

func (w *watcher) arrives(_ frame.Time, port uint16, v []frame.Ref) []frame.Ref {
	keep := v[:0]
	for _, r := range v {
		m := w.node.Arena().Meta(r)
		w.came++
		w.at[port]++
		if m.Reason != frame.Keep {
			w.wrong++
		}
		if m.EtherType == ownType {
			w.node.Consume(port, r, frame.LocalConsumed)
			continue
		}
		keep = append(keep, r)
	}
	return keep
}

func (w *watcher) control(port uint16, c wire.MACControl) bool {
	if c.Opcode() != wire.OpRequest {
		return false
	}
	w.controls++
	return true
}

func (w *watcher) drops(v []frame.Ref) {
	for _, r := range v {
		w.dropped[w.node.Arena().Meta(r).Reason]++
		w.lastDrop = w.node.Now()
	}
}

// shedding, as options of a port, has it drop all that it is to send.
const shedding = "shedding"

func (w *watcher) port(_ frame.Time, _ uint16, c *vswitch.PortConfig) vswitch.Stages {
	switch c.Options[watched] {
	case shedding:
		return vswitch.AtDeparts | vswitch.AtSheds
	case true:
		return vswitch.AtControl
	}
	return 0
}

func (w *watcher) departs(_ uint16, v []frame.Ref) {
	for _, r := range v {
		w.node.Arena().Meta(r).Reason = frame.QueueShed
	}
}

// What a feature drops in place of sending is counted, frees its memory and its room
// in the buffer, and is shown at the instant at which it would have left.
func TestFeatureShedsAtDeparture(t *testing.T) {
	cfg := st.Star()
	cfg.Ports[1].Options = vswitch.Options{watched: shedding}
	r := st.New(t, cfg)
	w := r.Switch.Nodes[0].Feature(watched).(*watcher)
	r.In(0, st.L2(2, 1))
	r.Now += frame.Millisecond
	if r.None(1); w.dropped[frame.QueueShed] != 1 || w.lastDrop != r.Now {
		t.Errorf("%v dropped, the last at %v, want one shed at %v", w.dropped, w.lastDrop, r.Now)
	}
	r.WantDrop(0, frame.QueueShed)
	if c := r.Counts(1); c.Tx.Frames != 0 {
		t.Errorf("%d frames are counted as sent", c.Tx.Frames)
	}
}

func watching(cfg *vswitch.Config, ports ...int) *vswitch.Config {
	for _, p := range ports {
		cfg.Ports[p].Options = vswitch.Options{watched: true}
	}
	return cfg
}

// A feature sees what comes in by the ports that it asked for, before the switch
// asks anything of it, and what it takes goes no further and is counted.
func TestFeatureSeesArrivals(t *testing.T) {
	r := st.New(t, watching(st.Star(), 0))
	w := r.Switch.Nodes[0].Feature(watched).(*watcher)
	data := st.L2(2, 1)
	own := wt.Frame(wt.Eth(st.HostMAC(2), st.HostMAC(1)), wt.Zeros(50))
	own[12], own[13] = ownType>>8, ownType&0xff
	short := data[:20]
	r.In(0, data, own, short, data)
	r.In(2, data)
	if w.came != 4 || w.at[0] != 4 || w.wrong != 1 {
		t.Errorf("%d frames were seen, %v by port, %d of them wrong", w.came, w.at, w.wrong)
	}
	sent := 0
	for range 5 {
		r.Advance(frame.Microsecond)
		sent += len(r.Out(1))
	}
	if sent != 4 { // the short one is bridged
		t.Errorf("%d frames went on: %v", sent, r.Drops())
	}
	if c := r.Counts(0); c.Rx.Frames != 4 || c.Drops[frame.LocalConsumed] != 1 {
		t.Errorf("%d frames are counted, %d consumed", c.Rx.Frames, c.Drops[frame.LocalConsumed])
	}
	r.Apply(watching(st.Star(), 2))
	r.In(0, own)
	if w.came != 4 || w.adopts != 2 {
		t.Errorf("a port without the options is watched; %d configurations", w.adopts)
	}
	r.In(2, own)
	if w.at[2] != 1 {
		t.Error("a port that has got the options is not watched")
	}
}

// Frames that one worker receives from a port of another are shown on that one.
func TestFeatureSeesArrivalsOnEachWorker(t *testing.T) {
	cfg := watching(st.Star(), 0)
	cfg.Ports[1].Worker = 1
	r := st.NewOf(t, cfg, 2, 4096)
	r.InOn(1, 0, st.L2(2, 1))
	for i, want := range []int{0, 1} {
		if w := r.Switch.Nodes[i].Feature(watched).(*watcher); w.came != want {
			t.Errorf("worker %d saw %d frames, want %d", i, w.came, want)
		}
	}
}

// A MAC control frame with an opcode that the switch does not handle is given to the features of the
// port that take such frames, and one that none of them takes is counted as such.
func TestFeatureUnderstandsControl(t *testing.T) {
	r := st.New(t, watching(st.Star(), 1))
	w := r.Switch.Nodes[0].Feature(watched).(*watcher)
	b := make([]byte, wire.MinFrame)
	(&wire.RequestFields{Src: st.HostMAC(9), Hops: 1}).Encode(b)
	r.In(1, b)
	r.In(2, b)
	r.WantDrop(2, frame.LocalUnhandled)
	(&wire.TokenFields{Src: st.HostMAC(9), Hops: 1}).Encode(b)
	r.In(1, b)
	if c := r.Counts(1); w.controls != 1 || c.Drops[frame.LocalConsumed] != 1 || c.Drops[frame.LocalUnhandled] != 1 {
		t.Errorf("%d understood; %v", w.controls, r.Drops())
	}
}

// A feature sees what is dropped anywhere, with the reason.
func TestFeatureSeesDrops(t *testing.T) {
	r := st.New(t, watching(st.Star(), 0))
	w := r.Switch.Nodes[0].Feature(watched).(*watcher)
	r.In(2, wt.Frame(wt.Eth(wire.MAC{1, 0x80, 0xc2, 0, 0, 1}, st.HostMAC(3)), wt.Zeros(50)))
	r.In(0, st.L2(2, 1))
	r.SetLink(1, false)
	r.In(0, st.L2(2, 1))
	if w.dropped[frame.ReservedMulticast] != 1 || w.dropped[frame.QueueFlush] != 1 || w.dropped[frame.EgressPortDown] != 1 {
		t.Errorf("saw %v, counted %v", w.dropped, r.Drops())
	}
}
