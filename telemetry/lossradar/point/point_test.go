package point

import (
	"fmt"
	"testing"

	"gswitch/frame"
	"gswitch/pipeline"
	"gswitch/telemetry/lossradar"
	"gswitch/vswitch"
	st "gswitch/vswitch/switchtest"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

const batch = frame.Millisecond

func options() Config {
	return Config{0xff, lossradar.Config{Shape: lossradar.DefaultShape(), Timing: lossradar.Timing{Period: batch, Timeout: 200 * frame.Microsecond}}}
}

// metered is a star whose ports are metered.
func metered(id uint16, ports ...int) *vswitch.Config {
	cfg := st.Star()
	cfg.ID = id
	for _, p := range ports {
		cfg.Ports[p].Options = vswitch.Options{Name: options()}
	}
	return cfg
}

// line is two switches with a link from port 1 of the first to port 0 of the
// second.
type line struct {
	t    *testing.T
	a, b *st.Rig
	pair *lossradar.Pairer
	out  []lossradar.Outcome
}

func newLine(t *testing.T, a, b *vswitch.Config) *line {
	return &line{t: t, a: st.New(t, a), b: st.New(t, b), pair: lossradar.NewPairer(options().Timing, batch, []lossradar.Segment{
		{Name: "a>b", Up: []lossradar.Meter{{Node: 1, Port: 1}}, Down: []lossradar.Meter{{Node: 2, Port: 0, Down: true}}},
	})}
}

func metersOf(r *st.Rig) *Meters { return r.Switch.Nodes[0].Feature(Name).(*Meters) }

// pass sends frames in at the first switch; those that lose does not choose go on
// to the second.
func (l *line) pass(lose func(i int) bool, frames ...[]byte) (left int) {
	l.a.In(0, frames...)
	i := 0
	for range len(frames) + 1 {
		l.run(frame.Microsecond)
		for _, f := range l.a.Out(1) {
			if lose == nil || !lose(i) {
				l.b.In(0, f)
			}
			i++
		}
		l.run(0)
		left += len(l.b.Out(1))
	}
	return left
}

// run lets time pass and takes the reports that are ready.
func (l *line) run(dt frame.Time) {
	l.a.Advance(dt)
	l.b.Now = l.a.Now
	l.b.Advance(0)
	for _, r := range []*st.Rig{l.a, l.b} {
		for x, out := metersOf(r).Reports().Take(); x != nil; x, out = metersOf(r).Reports().Take() {
			l.pair.Add(l.a.Now, x)
			x.Reset()
			out.Return(x)
		}
	}
	l.out = append(l.out, l.pair.Advance(l.a.Now)...)
}

// end returns what was lost in all batches.
func (l *line) end() (lost []lossradar.Fields, extra, unknown, residual int, sent int64) {
	for range 100 {
		l.run(batch / 10)
	}
	for _, o := range l.out {
		for _, s := range o.Lost {
			lost = append(lost, s.Fields())
		}
		extra += len(o.Extra)
		residual += o.Residual
		sent += o.Sent
		if o.Unknown {
			unknown++
		}
	}
	return lost, extra, unknown, residual, sent
}

func datagram(i int) []byte {
	return wt.Frame(wt.Eth(st.HostMAC(2), st.HostMAC(1)), wt.IPv4("10.0.0.1", "10.0.0.2", wt.IPv4With(func(f *wire.IPv4Fields) { f.ID = uint16(i) })), wt.UDP(1000, 2000), wt.Zeros(100))
}

func datagrams(n int) (v [][]byte) {
	for i := range n {
		v = append(v, datagram(i))
	}
	return v
}

// Of what a link loses every frame is named, and nothing else; without losses
// nothing is, over many batches.
func TestLinkLosses(t *testing.T) {
	l := newLine(t, metered(1, 1), metered(2, 0))
	for range 30 {
		if left := l.pass(nil, datagrams(100)...); left != 100 {
			t.Fatalf("%d of 100 frames came out", left)
		}
	}
	if lost, extra, unknown, residual, sent := l.end(); len(lost) != 0 || extra != 0 || unknown != 0 || residual != 0 || sent != 3000 {
		t.Fatalf("without losses: %v lost, %d extra, %d unknown, %d residual, %d sent", lost, extra, unknown, residual, sent)
	}
	l.out = nil
	l.pass(func(i int) bool { return i%10 == 3 }, datagrams(200)...)
	lost, extra, unknown, residual, _ := l.end()
	if len(lost) != 20 || extra != 0 || unknown != 0 || residual != 0 {
		t.Fatalf("%d lost, want 20; %d extra, %d unknown, %d residual", len(lost), extra, unknown, residual)
	}
	for _, f := range lost {
		if f.ID%10 != 3 || f.Src != 0x0a000001 || f.SrcPort != 1000 || f.Proto != wire.ProtoUDP {
			t.Errorf("lost is %+v", f)
		}
	}
}

// A frame that the second switch drops without being asked to is missing on the
// link that brought it, and one that it drops because it was asked to is not.
func TestDropsBehindTheLink(t *testing.T) {
	b := metered(2, 0)
	b.FDB.Static = b.FDB.Static[1:] // station 2 is not known: frames for it are flooded
	b.Ports[0].Storm.UnknownUnicast = 8000
	l := newLine(t, metered(1, 1), b)
	l.pass(nil, datagrams(400)...)
	if n := l.b.Drops()["storm-control"]; n == 0 {
		t.Fatal("nothing is dropped")
	}
	if lost, extra, _, _, _ := l.end(); len(lost) != 0 || extra != 0 {
		t.Errorf("what storm control drops: %d lost, %d extra", len(lost), extra)
	}

	b = metered(2, 0)
	b.Ports[1].MTU = 100 // unlike the link's other end
	l = newLine(t, metered(1, 1), b)
	l.pass(nil, datagrams(7)...)
	if lost, _, _, _, _ := l.end(); len(lost) != 7 || l.b.Drops()["mtu-exceeded"] != 7 {
		t.Errorf("%d lost, drops %v", len(lost), l.b.Drops())
	}
}

// What the queue of the first switch drops is lost on its link.
func TestQueueDrops(t *testing.T) {
	a := metered(1, 1)
	a.Buffer = vswitch.BufferConfig{Size: 1 << 16, QueueLimit: 2000}
	l := newLine(t, a, metered(2, 0))
	left := l.pass(nil, datagrams(64)...)
	lost, _, _, _, _ := l.end()
	if len(lost) == 0 || len(lost)+left != 64 {
		t.Errorf("%d left, %d lost", left, len(lost))
	}
}

// Frames without a tag, from a neighbour that does not take part, go on as they
// came; so do those that are not IP.
func TestNeighbourThatDoesNotTakePart(t *testing.T) {
	l := newLine(t, metered(1, 1), metered(2, 0))
	l.b.In(0, datagrams(5)...)
	plain := 0
	for range 10 {
		l.run(frame.Microsecond)
		plain += len(l.b.Out(1))
	}
	if plain != 5 {
		t.Errorf("%d of 5 frames came out", plain)
	}
	other := wt.Frame(wt.EthType(st.HostMAC(2), st.HostMAC(1), 0x9000), wt.Zeros(60))
	if left := l.pass(nil, other); left != 1 {
		t.Errorf("%d frames left", left)
	}
	if lost, extra, _, _, sent := l.end(); len(lost)+extra != 0 || sent != 0 {
		t.Errorf("%d lost, %d extra, %d sent", len(lost), extra, sent)
	}
	// By a port without meters no tag leaves.
	l.a.In(1, wt.Frame(wt.Eth(st.HostMAC(1), st.HostMAC(2)), wt.IPv4("10.0.0.2", "10.0.0.1"), wt.UDP(1, 2), wt.Zeros(40)))
	l.a.Advance(frame.Microsecond)
	wt.Check(t, l.a.One(0), wt.Addrs("10.0.0.2", "10.0.0.1"))
}

func TestMetersAreChecked(t *testing.T) {
	bad := func(what string, change func(cfg *vswitch.Config)) {
		t.Helper()
		cfg := metered(1, 0, 1)
		change(cfg)
		if _, err := vswitch.New(cfg, st.New(t, st.Star()).Pools); err == nil {
			t.Errorf("%s is taken", what)
		}
	}
	set := func(cfg *vswitch.Config, f func(o *Config)) {
		o := options()
		f(&o)
		cfg.Ports[1].Options = vswitch.Options{Name: o}
	}
	bad("a port with another batch", func(cfg *vswitch.Config) { set(cfg, func(o *Config) { o.Timing.Period *= 2 }) })
	bad("a gigabyte of digests", func(cfg *vswitch.Config) {
		o := options()
		o.Shape.Cells = 65536
		for len(cfg.Ports) < 64 {
			cfg.Ports = append(cfg.Ports, vswitch.PortConfig{Name: fmt.Sprint("p", len(cfg.Ports))})
		}
		for i := range cfg.Ports {
			cfg.Ports[i].Options = vswitch.Options{Name: o}
		}
	})
	bad("a digest of two cells", func(cfg *vswitch.Config) { set(cfg, func(o *Config) { o.Shape.Cells = 2 }) })
	if o, err := (&Section{lossradar.Keys{Batch: 1e7, Timeout: 2e6, Cells: 400, Hashes: 3}}).Options(1, 0); err != nil || o != (Config{1, lossradar.Config{Shape: lossradar.DefaultShape(), Timing: lossradar.DefaultTiming()}}) {
		t.Errorf("%+v, %v", o, err)
	}
}

// Meters come and go while frames pass.
func TestMetersChange(t *testing.T) {
	l := newLine(t, metered(1, 1), metered(2, 0))
	l.pass(nil, datagrams(10)...)
	l.a.Apply(metered(1, 0, 1))
	if left := l.pass(nil, datagrams(10)...); left != 10 {
		t.Errorf("%d frames left", left)
	}
	l.a.Apply(metered(1))
	l.a.In(0, datagram(1))
	l.a.Advance(frame.Microsecond)
	wt.Check(t, l.a.One(1), wt.Addrs("10.0.0.1", "10.0.0.2"))
	if metersOf(l.a).Reports().Outbox() != nil {
		t.Error("there are reports without meters")
	}
}

func TestMetersAllocateNothing(t *testing.T) {
	r := st.New(t, metered(1, 0, 1))
	r.AllocatesNothing([][]byte{tag(datagram(1)), tag(datagram(2))})
	if n := metersOf(r).ports[1].count.Sent; n < 200 {
		t.Errorf("%d frames are counted", n)
	}
}

// Each link has digests of its own: one of which a host loses more than its digest names
// says how many these are, and takes nothing from what others name.
func TestFullDigestIsOfItsLink(t *testing.T) {
	const flood, few = 1000, 3 // the first is far more than 400 cells can name
	r := st.New(t, metered(1, 1, 2))
	metersOf(r).Reports().Take()
	to := func(station, i int) []byte {
		return wt.Frame(wt.Eth(st.HostMAC(station), st.HostMAC(1)), wt.IPv4("10.0.0.1", "10.0.0.2", wt.IPv4With(func(f *wire.IPv4Fields) { f.ID = uint16(i) })), wt.UDP(1000, 2000), wt.Zeros(100))
	}
	for i := range flood + few {
		station := 2
		if i >= flood {
			station = 3
		}
		r.In(0, to(station, i))
		r.Advance(1)
		r.Out(1)
		r.Out(2)
	}
	r.Advance(batch)
	r.Advance(batch)
	got := map[uint16]lossradar.Decoded{}
	for x, out := metersOf(r).Reports().Take(); x != nil; x, out = metersOf(r).Reports().Take() {
		if !x.Meter.Down && x.Packets() > 0 {
			got[x.Meter.Port] = x.Clone().Decode() // as where nothing arrived
		}
		x.Reset()
		out.Return(x)
	}
	if d := got[1]; d.Net != flood || d.Complete() || len(d.Lost) > flood/2 {
		t.Errorf("of the full digest: %d lost, %d named, %d cells left", d.Net, len(d.Lost), d.Residual)
	}
	if d := got[2]; d.Net != few || !d.Complete() || len(d.Lost) != few {
		t.Errorf("beside it: %d lost, %d named, %d cells left", d.Net, len(d.Lost), d.Residual)
	}
}

// tag is a frame with a tag before it.
func tag(b []byte) []byte {
	return append(append(append([]byte(nil), b[:12]...), 0x88, 0xb6, 0x40, 1, 0, 0, 0, 1), b[12:]...)
}

// A host without meters that puts tags before its frames, one, many, behind a VLAN tag that
// the switch takes off, or in a class that is not metered, changes nothing of what the two
// ends of a link between switches count: neither does it hide that frames are lost, nor have
// others reported as lost that were not. Its frames arrive as it sent them.
func TestHostsForgeNoTags(t *testing.T) {
	some := options()
	some.Queues = 1
	tagged := func(b []byte, n int) []byte {
		for range n {
			b = tag(b)
		}
		return b
	}
	behindVLAN := append(append(append([]byte(nil), datagram(3)[:12]...), 0x81, 0x00, 0, 10), tag(datagram(3))[12:]...)
	for name, c := range map[string]struct {
		sent, arrives []byte
		change        func(a, b *vswitch.Config)
	}{
		"one":   {tagged(datagram(3), 1), tagged(datagram(3), 1), nil},
		"three": {tagged(datagram(3), 3), tagged(datagram(3), 3), nil},
		"behind a VLAN tag": {behindVLAN, tag(datagram(3)), func(a, _ *vswitch.Config) {
			a.VLANs = []vswitch.VLANConfig{{ID: 1}, {ID: 10}}
			a.FDB.Static[0].VLAN = 10
			for i := range a.Ports {
				a.Ports[i].VLANMode, a.Ports[i].PVID = vswitch.VLANAccess, 10
			}
		}},
		"by a mirror": {tagged(datagram(3), 1), tagged(datagram(3), 1), func(a, _ *vswitch.Config) {
			a.FDB.Static[0].Port = 2 // station 2 is elsewhere
			a.Mirrors = []vswitch.Mirror{{Name: "m", Port: 1}}
			a.ACLs = []vswitch.ACL{{Name: "all", Default: pipeline.Action{Ops: pipeline.OpPermit | pipeline.OpMirror}}}
			a.Ports[0].ACL = "all"
		}},
		"in a class that is not metered": {tagged(datagram(3), 1), tagged(datagram(3), 1), func(a, b *vswitch.Config) {
			for _, cfg := range []*vswitch.Config{a, b} {
				cfg.Ports[0].DefaultClass = 1
				for i := range cfg.Ports {
					if cfg.Ports[i].Options != nil {
						cfg.Ports[i].Options = vswitch.Options{Name: some}
					}
				}
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := metered(1, 1), metered(2, 0)
			if c.change != nil {
				c.change(a, b)
			}
			l := newLine(t, a, b)
			const forged = 50
			for range forged {
				l.a.In(0, c.sent)
				l.run(frame.Microsecond)
				for _, f := range l.a.Out(1) {
					l.b.In(0, f)
				}
				l.run(frame.Microsecond)
				for _, f := range l.b.Out(1) {
					if string(f) != string(c.arrives) {
						t.Fatalf("%x arrives, want %x", f, c.arrives)
					}
				}
			}
			if n := metersOf(l.a).ports[1].count.Foreign; n != forged {
				t.Errorf("%d of %d forged tags are counted as such", n, forged)
			}
			if n := metersOf(l.b).ports[0].count; n.Arrived+n.Wild != 0 {
				t.Errorf("%d forged frames are counted, %d as wild", n.Arrived, n.Wild)
			}
			if c.change != nil {
				return // honest frames are of another VLAN or class
			}
			l.pass(func(i int) bool { return i == 3 }, datagrams(10)...)
			if lost, extra, unknown, residual, sent := l.end(); len(lost) != 1 || extra+unknown+residual != 0 || sent != 10 {
				t.Errorf("%v lost, %d extra, %d unknown, %d residual, of %d", lost, extra, unknown, residual, sent)
			}
		})
	}
}

// BenchmarkMeters is what both ends of the meters cost: a vector of frames comes by
// a metered port and leaves by one, beside a switch without.
func BenchmarkMeters(b *testing.B) {
	var plain, on [][]byte
	for i := range 64 {
		plain = append(plain, datagram(i))
		on = append(on, tag(datagram(i)))
	}
	unrated := func(cfg *vswitch.Config) *vswitch.Config { return st.Rated(cfg, 0) }
	st.BenchBeside(b, st.NewPump(b, unrated(metered(1)), plain), st.NewPump(b, unrated(metered(1, 0, 1)), on))
}
