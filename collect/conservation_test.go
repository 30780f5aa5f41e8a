package collect

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"gswitch/feature"
	"gswitch/frame"
	watch "gswitch/mirror/point"
	"gswitch/scheduler"
	"gswitch/section"
	"gswitch/telemetry"
	"gswitch/telemetry/export"
	"gswitch/telemetry/flowradar"
	flows "gswitch/telemetry/flowradar/point"
	"gswitch/telemetry/lossradar"
	losses "gswitch/telemetry/lossradar/point"
	"gswitch/vswitch"
	st "gswitch/vswitch/switchtest"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// reporting is a switch of a line that reports all that it can: Everflow, FlowRadar and LossRadar. Behind
// port 0 is a host, behind port 1 the other switch, behind port 2 who takes copies.
type reporting struct {
	*st.Rig
	t     *testing.T
	name  string
	id    uint16
	mac   wire.MAC
	hello telemetry.Hello
	out   *export.Exporter

	entered  uint64            // frames that came, without copies
	selected uint64            // copies that are to be made of them
	copies   [][]byte          // that left for the receiver of copies
	reports  map[string]uint64 // that were taken, by kind
	packets  []uint64          // by the number of the report: those in a slot of FlowRadar
	wire     [][]byte          // the report, by its number
}

func newReporting(t *testing.T, n *Network, k int) *reporting {
	s := &reporting{t: t, name: []string{"s1", "s2"}[k], id: uint16(k + 1), mac: wire.MAC{2, 0xaa, 0, 0, 0, byte(k + 1)}, reports: map[string]uint64{}, packets: []uint64{0}, wire: [][]byte{nil}}
	i, _ := n.plan.Topology.Lookup(s.name)
	cfg := st.Base(3)
	cfg.ID, cfg.MAC, cfg.Loopbacks = s.id, s.mac, n.plan.Nodes[i].Loopback[:1]
	for p, a := range []string{fmt.Sprintf("10.0.%d.254/24", k), fmt.Sprintf("10.99.0.%d/30", k+1), "10.9.0.254/24"} {
		cfg.Ports[p].Addresses, cfg.Ports[p].Scheduler = st.Prefixes(a), scheduler.PortConfig{}
	}
	via := netip.AddrFrom4([4]byte{10, 99, 0, byte(2 - k)})
	cfg.Routes = []vswitch.Route{{Prefix: netip.MustParsePrefix(fmt.Sprintf("10.0.%d.0/24", 1-k)), NextHops: []vswitch.NextHop{{Via: via}}}}
	cfg.Neighbors = []vswitch.StaticNeighbor{{Addr: netip.MustParseAddr(fmt.Sprintf("10.0.%d.2", k)), MAC: st.HostMAC(k + 1)},
		{Addr: via, MAC: wire.MAC{2, 0xaa, 0, 0, 0, byte(2 - k)}}, {Addr: netip.MustParseAddr("10.9.0.1"), MAC: st.HostMAC(9)}}
	whole := func(name, text string) {
		x := vswitch.Find(name).Whole()
		if err := section.Parse(name, []byte(text), x).Err(); err != nil {
			t.Fatal(err)
		}
		section.Fill(x)
		o, err := x.Options(cfg)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Options = cfg.Options.With(name, o)
	}
	whole(watch.Name, "sessions: [{name: e, to: 10.9.0.1, rate: 200kbps, burst: 2000B, everflow: {sample: 0}, drops: [all]}]")
	whole(flows.Name, "mode: both\nflows: 200\nslot: 10ms")
	x := vswitch.Find(losses.Name).Section()
	section.Fill(x)
	o, err := x.Options(0xff, 0)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Ports[1].Options = cfg.Ports[1].Options.With(losses.Name, o)
	s.Rig = st.New(t, cfg)
	s.Now = 0
	return s
}

// takes has a frame of a host or of the link come in. One copy is made if it opens a connection,
// and one if it is dropped.
func (s *reporting) takes(port uint16, b []byte) {
	s.entered++
	for range strings.Count(string(b), opens) + strings.Count(string(b), dropped) {
		s.selected++
	}
	s.In(port, b)
}

const (
	opens   = "it opens a connection"
	dropped = "no switch has a route"
)

// report takes what the systems report.
func (s *reporting) report() {
	for _, name := range []string{flows.Name, losses.Name} {
		from := s.Switch.Nodes[0].Feature(name).(feature.Reporter)
		for {
			b, ok := from.TakeReport(nil)
			if !ok {
				break
			}
			n := uint64(0)
			if name == flows.Name {
				r, err := flowradar.Parse(b)
				if err != nil {
					s.t.Fatal(err)
				}
				n = r.Packets
			}
			s.packets = append(s.packets, n)
			s.reports[name]++
			r := telemetry.Report{Kind: name, Node: s.id, Body: b}
			s.out.Add(r)
			r.Boot, r.Sequence = s.hello.Boot, uint64(len(s.wire))
			s.wire = append(s.wire, r.Append(nil))
		}
	}
	s.copies = append(s.copies, s.Out(2)...)
}

// counter sums up a counter by a label.
func (s *reporting) counter(name string) map[string]uint64 {
	out := map[string]uint64{}
	s.Switch.Nodes[0].ReadFeatures(func(f *vswitch.Feature, c int, _ uint16, v float64, labels ...string) {
		if f.Counters[c].Name == name && v != 0 {
			out[strings.Join(labels, " ")] += uint64(v)
		}
	})
	return out
}

// packetsOf are datagrams as sockets give them: each with the switch that sent it.
type packetsOf struct {
	net.PacketConn
	v    []sentFrom
	gone chan struct{}
}

type sentFrom struct {
	from netip.Addr
	b    []byte
}

func (p *packetsOf) ReadFrom(b []byte) (int, net.Addr, error) {
	if len(p.v) == 0 {
		<-p.gone
		return 0, nil, net.ErrClosed
	}
	x := p.v[0]
	p.v = p.v[1:]
	return copy(b, x.b), &net.IPAddr{IP: x.from.AsSlice()}, nil
}

func (p *packetsOf) Close() error { close(p.gone); return nil }

// From the frame to the event every number adds up, with all systems on, with packets that the
// link loses, copies that are lost on their way, reports that there was no memory for, that come
// twice, and a collector that is started again: what was selected was copied or is counted with a
// reason, each copy came or is missing, each report was made once, came once or is missing, and each
// lost packet is named, or its batch is unknown.
func TestEverythingIsAccountedFor(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { accountFor(t, rand.New(rand.NewPCG(seed, 17))) })
	}
}

func accountFor(t *testing.T, rng *rand.Rand) {
	const (
		each  = 6   // frames each way and batch
		loses = 2   // of these, the link
		lasts = 120 // batches
		idle  = 60  // batches without frames afterwards
	)
	network, dir := lineOf(t, "l3"), t.TempDir()
	h := openHub(t, dir, 64<<20)
	var ends [2]*reporting
	boot := time.Now().Add(-time.Hour)
	for k := range ends {
		s := newReporting(t, network, k)
		s.hello = telemetry.Hello{Version: 1, Name: s.name, Boot: uint64(boot.UnixNano()), Nodes: []telemetry.Node{{ID: s.id, Name: s.name, Workers: 1}}}
		s.out = export.New(discard, "127.0.0.1:1", uint64(200+100*k)<<10, s.hello) // where nothing listens: it is full in the middle
		defer s.out.Close(0)
		ends[k] = s
	}
	var life []*Metrics
	address := ""
	listen := func() (stop func()) {
		m, at, stop := h.receiveFor(t, "127.0.0.1:0", network)
		life, address = append(life, m), at
		for _, s := range ends {
			s.out.Change(at, 64<<20, s.hello)
		}
		return stop
	}
	acknowledged := func() {
		for _, s := range ends {
			for s.out.Counts().Waiting > 0 {
				time.Sleep(time.Millisecond)
			}
		}
	}
	var stop func()
	id := uint16(0)
	for batch := range lasts + idle {
		for _, s := range ends {
			s.Advance(0)
			s.report()
		}
		var lost [2][each]bool
		for k := range lost {
			for _, i := range rng.Perm(each)[:loses] {
				lost[k][i] = true
			}
		}
		for i := range each {
			for k, s := range ends {
				if batch >= lasts {
					break
				}
				id++
				text, flags, dst := "it goes on", uint8(wire.TCPAck), fmt.Sprintf("10.0.%d.2", 1-k)
				if rng.IntN(4) == 0 {
					text, flags = opens, wire.TCPSyn
				}
				of := func(dst, more string) []byte {
					ip := wt.IPv4(fmt.Sprintf("10.0.%d.2", k), dst, wt.IPv4With(func(f *wire.IPv4Fields) { f.ID = id }))
					return wt.Frame(wt.Eth(s.mac, st.HostMAC(k+1)), ip, wt.TCP(wire.TCPFields{SrcPort: uint16(rng.IntN(20)), DstPort: 80, Flags: flags}), wt.Payload([]byte(text+more)))
				}
				s.takes(0, of(dst, ""))
				if rng.IntN(8) == 0 {
					id++
					s.takes(0, of("10.77.0.1", dropped))
				}
				for _, f := range s.Out(1) {
					if !lost[k][i] {
						ends[1-k].takes(1, f)
					}
				}
				ends[1-k].Out(0)
				for _, x := range ends {
					x.Advance(frame.Time(rng.IntN(200)) * frame.Microsecond)
				}
			}
		}
		for _, s := range ends { // on to the next batch, whenever the last frame came
			s.Advance(frame.Time(batch+1)*period - s.Now)
			s.Out(0)
			s.Out(1)
		}
		switch batch {
		case lasts / 2:
			stop = listen()
			acknowledged()
		case lasts * 3 / 4:
			acknowledged() // what is counted of a message that is on its way then, is not known
			stop()
			h.close()
			h = openHub(t, dir, 64<<20)
			listen()
		}
	}
	acknowledged()
	var stored, again, missing, made, kept, forgotten uint64
	all := streamOf(t, h)
	for _, s := range ends {
		c := s.out.Counts()
		s.resend(address, all[s.name])
		for origin, n := range s.out.Status().Origins {
			if n != s.reports[origin.Kind] {
				t.Errorf("%s: %d reports of %s were taken, of %d", s.name, s.reports[origin.Kind], origin.Kind, n)
			}
		}
		if c.Made != s.reports[flows.Name]+s.reports[losses.Name] || c.Made != c.Acknowledged+c.Lost || c.Lost == 0 || c.Acknowledged != uint64(len(all[s.name])) {
			t.Errorf("%s: %+v; in the stream are %d", s.name, c, len(all[s.name]))
		}
		made, kept, forgotten = made+c.Made, kept+c.Acknowledged, forgotten+c.Lost
		counted, lost := uint64(0), uint64(0)
		for number, n := range s.packets {
			if all[s.name][uint64(number)] > 0 {
				counted += n
			} else {
				lost += n
			}
		}
		// FlowRadar counts a frame once at each switch; what it counts is in reports.
		if got := s.counter("flowradar_packets_total")[""]; counted+lost != s.entered || got != s.entered || lost == 0 {
			t.Errorf("%s: slots have %d packets, those that were lost %d, the switch counts %d; %d came", s.name, counted, lost, got, s.entered)
		}
	}
	for _, m := range life {
		stored += uint64(testutil.ToFloat64(m.reports.WithLabelValues("stored")))
		again += uint64(testutil.ToFloat64(m.reports.WithLabelValues("again")))
		missing += uint64(testutil.ToFloat64(m.missing))
	}
	if stored != kept || missing != forgotten || made != stored+missing || again < kept {
		t.Errorf("of %d reports %d are stored, %d missing, and %d came again; exporters say %d and %d", made, stored, missing, again, kept, forgotten)
	}
	for name, v := range streamOf(t, h) {
		for number, n := range v {
			if n != 1 {
				t.Errorf("%s: report %d is there %d times", name, number, n)
			}
		}
		if len(v) != len(all[name]) {
			t.Errorf("%s: %d reports are there, of %d", name, len(v), len(all[name]))
		}
	}
	came := ends[0].accountForCopies(rng, h, network, ends[1])
	accountForEvents(t, h, network, kept, came, lasts, each, loses)
}

// resend sends all reports that are in the stream again, as an exporter does that did not get the
// acknowledgement.
func (s *reporting) resend(at string, have map[uint64]int) {
	var b bytes.Buffer
	if err := s.hello.Write(&b); err != nil {
		s.t.Fatal(err)
	}
	last := uint64(0)
	for number, w := range s.wire {
		if have[uint64(number)] > 0 {
			b.Write(w)
			last = uint64(number)
		}
	}
	c := dial(s.t, at, nil)
	defer c.Close()
	go c.Write(b.Bytes())
	var ack [8]byte
	for n := uint64(0); n < last; n = binary.BigEndian.Uint64(ack[:]) {
		if _, err := io.ReadFull(c, ack[:]); err != nil {
			s.t.Fatal(err)
		}
	}
}

// accountForCopies has the collector take copies, some of which are lost on their way, and returns
// how many it has.
func (s *reporting) accountForCopies(rng *rand.Rand, h *hub, n *Network, other *reporting) (came uint64) {
	t, m := s.t, NewMetrics(prometheus.NewRegistry())
	conn := &packetsOf{gone: make(chan struct{})}
	made := uint64(0)
	for _, x := range []*reporting{s, other} {
		copied, lost := x.counter("watch_copies_total")["e"], uint64(0)
		for _, v := range x.counter("watch_lost_copies_total") {
			lost += v
		}
		if copied+lost != x.selected || copied != uint64(len(x.copies)) || lost == 0 {
			t.Errorf("%s: of %d copies %d were made and %d lost; %d left", x.name, x.selected, copied, lost, len(x.copies))
		}
		made += copied
		for i, b := range x.copies {
			if i > 0 && i < len(x.copies)-1 && rng.IntN(10) == 0 {
				continue
			}
			a, _ := netip.AddrFromSlice(b[wire.EthernetLen+12:][:4])
			conn.v = append(conn.v, sentFrom{a, b[wire.EthernetLen+wire.IPv4Len:]})
		}
	}
	came = uint64(len(conn.v))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- (&Copies{Store: h.store, Network: n, Name: "c", Metrics: m, Log: discard}).Serve(ctx, conn)
	}()
	outcome := func(what string) uint64 { return uint64(testutil.ToFloat64(m.copies.WithLabelValues(what))) }
	for outcome("stored")+outcome("overrun")+outcome("lost") < came {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	missing := uint64(testutil.ToFloat64(m.lost))
	if outcome("stored") != came || came+missing != made || missing == 0 {
		t.Errorf("of %d copies %d came, %d are stored, %d missing", made, came, outcome("stored"), missing)
	}
	return came
}

// accountForEvents analyses all that is in the stream.
func accountForEvents(t *testing.T, h *hub, n *Network, reports, copied uint64, lasts, each, loses int) {
	sum, events, ends := Stats{}, map[string]int{}, map[batch]uint8{}
	named := uint64(0)
	for lane := range Lanes {
		a := NewAnalysis(n)
		now := time.Time{}
		take := func(at time.Time, m *message) {
			now = at
			for _, r := range m.reports {
				if r.Kind == lossKind {
					b, end := ofBatch(t, &r)
					ends[b] |= end
				}
			}
			for _, e := range a.Add(at, m) {
				events[e.Kind+" "+e.What]++
				if e.Kind == Loss {
					named += e.Packets
				}
			}
		}
		h.eachMessage(t, take, laneSubject(lane))
		if now.IsZero() {
			continue
		}
		for range 100 {
			take(now.Add(idleWait), &message{})
		}
		sum.add(a.Stats())
	}
	if got := sum[Stat{analysedReports, flowKind}] + sum[Stat{analysedReports, lossKind}]; got != reports || sum[Stat{analysedReports, Mirrored}] != copied {
		t.Errorf("of %d reports %d are analysed, of %d copies %d", reports, got, copied, sum[Stat{analysedReports, Mirrored}])
	}
	if got := sum[Stat{copies, "traced"}]; got != copied || sum[Stat{copies, "other"}] != 0 {
		t.Errorf("of %d copies %d are in traces", copied, got)
	}
	ended := map[string]uint64{}
	for k, v := range sum {
		switch k.Family {
		case tracedPackets:
			ended[k.Label] += v
		case eventsLeftOut:
			events[k.Label] += int(v)
		case reportProblems:
			t.Errorf("%d reports are %s", v, k.Label)
		}
	}
	for _, what := range []string{"dropped", "lost", "looped"} {
		if int(ended[what]) != events["trace "+what] {
			t.Errorf("%d packets were %s, %d have an event or are counted as without", ended[what], what, events["trace "+what])
		}
	}
	if ended["delivered"] == 0 || ended["dropped"] == 0 || ended["lost"] == 0 {
		t.Errorf("packets ended as %v", ended)
	}
	link := func(of, name string) int { return int(sum[Stat{of, name}]) }
	found := 0
	for _, name := range []string{"s1>s2", "s2>s1"} {
		sent, lost, unknown := link(linkSent, name), link(linkLost, name), link(linkUnknown, name)
		both, one := 0, 0
		for b, n := range ends { // that reported it
			switch {
			case b.link != name || b.number >= uint64(lasts):
			case n == 3:
				both++
			default:
				one++
			}
		}
		if known := sent / each; sent != known*each || lost != known*loses || known > both || both == 0 || one == 0 || both+one > known+unknown {
			t.Errorf("%s: %d packets were sent and %d lost, %d and %d in each batch; %d batches are reported by both ends, %d by one, and %d are unknown", name, sent, lost, each, loses, both, one, unknown)
		}
		found += lost
	}
	if int(named) != found {
		t.Errorf("of %d lost packets %d are named", found, named)
	}
}

// batch is a batch of a link.
type batch struct {
	link   string
	number uint64
}

// ofBatch is the batch that a digest is of, and at which end: 1 for that where it began, 2 for the other.
func ofBatch(t *testing.T, r *telemetry.Report) (b batch, end uint8) {
	d, err := lossradar.Parse(r.Body, 1<<20)
	if err != nil || d.Merged > 0 {
		t.Fatalf("%+v, %v", d, err)
	}
	b, end = batch{"s1>s2", d.Batch}, 1
	if d.Meter.Down {
		end = 2
	}
	if (d.Meter.Node == 1) == d.Meter.Down {
		b.link = "s2>s1"
	}
	return b, end
}

// streamOf is how often each report is in the stream, by exporter.
func streamOf(t *testing.T, h *hub) map[string]map[uint64]int {
	got := map[string]map[uint64]int{}
	for lane := range Lanes {
		h.eachMessage(t, func(_ time.Time, m *message) {
			for _, r := range m.reports {
				if got[m.Name] == nil {
					got[m.Name] = map[uint64]int{}
				}
				got[m.Name][r.Sequence]++
			}
		}, laneSubject(lane))
	}
	return got
}
