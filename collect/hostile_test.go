package collect

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"

	"gswitch/control/api"
	"gswitch/frame"
	"gswitch/telemetry"
	"gswitch/telemetry/flowradar"
	"gswitch/telemetry/lossradar"
)

// peers are those that a pool is divided among in tests.
var peers = []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")}

// A client that has its share waits, and others do not wait for it; one that waits for what is
// never given back is refused, and counted.
func TestPoolIsShared(t *testing.T) {
	p := newPool(100, 60)
	a, b := p.of(peers[0]), p.of(peers[1])
	if err := a.take(t.Context(), 60, time.Minute); err != nil {
		t.Fatal(err)
	}
	if a.try(1) {
		t.Error("more than its share")
	}
	second := p.of(peers[0])
	got := make(chan error, 1)
	go func() { got <- second.take(t.Context(), 50, time.Minute) }()
	for waits := 0; waits == 0; time.Sleep(time.Millisecond) {
		p.mu.Lock()
		waits = len(p.waiting)
		p.mu.Unlock()
	}
	if err := b.take(t.Context(), 40, time.Minute); err != nil {
		t.Error("a peer waits for the share of another one:", err)
	}
	c := p.of(peers[1])
	if err := c.take(t.Context(), 1, 0); !errors.Is(err, errFull) {
		t.Error("there was nothing left:", err)
	}
	a.release()
	if err := <-got; err != nil {
		t.Error(err)
	}
	b.release()
	second.release()
	if used, refused := p.use(); used != 0 || refused != 1 || len(p.peers) != 0 || len(p.waiting) != 0 {
		t.Errorf("%d are in use, %d refused, %v, %d wait", used, refused, p.peers, len(p.waiting))
	}
}

// smallReceiver is a receiver with little memory, which waits so long for a hello, and what it counts.
func smallReceiver(t *testing.T, h *hub, hellos, bodies int, hello time.Duration) (r *Receiver, at string, reg *prometheus.Registry) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	reg = prometheus.NewRegistry()
	var store *Store
	if h != nil {
		store = h.store
	}
	r = NewReceiver(store, &Network{}, nil, NewMetrics(reg), discard)
	r.hellos, r.bodies, r.hello = newPool(hellos, hellos), newPool(bodies, bodies), hello
	done := make(chan error, 1)
	go func() { done <- r.Serve(t.Context(), l) }()
	t.Cleanup(func() {
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return r, l.Addr().String(), reg
}

func dial(t *testing.T, at string, said []byte) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := c.Write(said); err != nil {
		t.Fatal(err)
	}
	return c
}

// untilClosed waits until the other side has ended a connection.
func untilClosed(t *testing.T, c net.Conn) {
	t.Helper()
	if _, err := io.ReadAll(c); err != nil && !errors.Is(err, unix.ECONNRESET) {
		t.Error(err)
	}
}

// Many that announce a large hello have the memory of a few: others are refused, and
// nothing is left taken.
func TestHellosTakeLittleMemory(t *testing.T) {
	const size = 1 << 20
	r, at, reg := smallReceiver(t, nil, 4*size, 4*size, 50*time.Millisecond)
	// Those that come so slowly that the memory of the ones before is free again are not refused: then others come.
	for refused, came := 0.0, 0.0; refused == 0; {
		var all []net.Conn
		for range 16 {
			all = append(all, dial(t, at, binary.BigEndian.AppendUint32(nil, size-4)))
			came++
		}
		for ended := 0.0; ended < came; time.Sleep(time.Millisecond) {
			if used, _ := r.hellos.use(); used > 4*size {
				t.Fatalf("hellos took %d bytes of %d", used, 4*size)
			}
			refused = counter(t, reg, "gcollect_refused_total", "memory")
			ended = refused + counter(t, reg, "gcollect_bad_connections_total", "")
		}
		for _, c := range all {
			untilClosed(t, c)
		}
	}
	for used := uint64(1); used > 0; time.Sleep(time.Millisecond) {
		used, _ = r.hellos.use()
	}
}

// counter is what a registry says of a metric with a label.
func counter(t *testing.T, reg *prometheus.Registry, name, label string) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			if label == "" || len(m.GetLabel()) > 0 && m.GetLabel()[0].GetValue() == label {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

// A report that is announced and does not come holds memory for others' reports no
// longer than until it is late, and reports that all are there do not wait.
func TestReportsShareMemory(t *testing.T) {
	h := openHub(t, t.TempDir(), 16<<20)
	r, at, _ := smallReceiver(t, h, 1<<20, 1<<20, time.Hour)
	var b bytes.Buffer
	if err := testHello.Write(&b); err != nil {
		t.Fatal(err)
	}
	announced := (&telemetry.Report{Kind: "a", Node: 1, Boot: testHello.Boot, Sequence: 1, Body: make([]byte, 1<<19)}).Append(nil)[:100]
	dial(t, at, append(bytes.Clone(b.Bytes()), announced...))
	for used := uint64(0); used == 0; time.Sleep(time.Millisecond) {
		used, _ = r.bodies.use()
	}
	other := testHello
	other.Name = "s2"
	b.Reset()
	if err := other.Write(&b); err != nil {
		t.Fatal(err)
	}
	wire := b.Bytes()
	for i := range 100 {
		wire = (&telemetry.Report{Kind: "a", Node: 1, Boot: other.Boot, Sequence: uint64(i + 1), Body: make([]byte, 1<<16)}).Append(wire)
	}
	c := dial(t, at, nil)
	go c.Write(wire)
	var ack [8]byte
	for last := uint64(0); last < 100; last = binary.BigEndian.Uint64(ack[:]) {
		if _, err := io.ReadFull(c, ack[:]); err != nil {
			t.Fatalf("after %d reports: %v", last, err)
		}
	}
	once(t, h.numbers(t), 100)
}

// An exporter that sends a report and the beginning of another holds no memory for the first one
// any more: it is stored.
func TestHalfAHeaderHoldsNothing(t *testing.T) {
	h := openHub(t, t.TempDir(), 16<<20)
	r, at, _ := smallReceiver(t, h, 1<<20, 1<<20, time.Hour)
	var b bytes.Buffer
	if err := testHello.Write(&b); err != nil {
		t.Fatal(err)
	}
	wire := (&telemetry.Report{Kind: "a", Node: 1, Boot: testHello.Boot, Sequence: 1, Body: make([]byte, 1<<10)}).Append(b.Bytes())
	next := (&telemetry.Report{Kind: "a", Node: 1, Boot: testHello.Boot, Sequence: 2, Body: make([]byte, 1<<10)}).Append(nil)
	c := dial(t, at, append(wire, next[:telemetry.ReportHeader-1]...))
	var ack [8]byte
	for last := uint64(0); last < 1; last = binary.BigEndian.Uint64(ack[:]) {
		if _, err := io.ReadFull(c, ack[:]); err != nil {
			t.Fatal(err)
		}
	}
	for used := uint64(1); used > 0; time.Sleep(time.Millisecond) {
		used, _ = r.bodies.use()
	}
}

// Switches that an exporter has, and of which there is no report, take no room in the
// stream.
func TestHelloIsNotRepeated(t *testing.T) {
	h := openHub(t, t.TempDir(), 64<<20)
	_, at, _ := h.receive(t, "127.0.0.1:0")
	many := testHello
	many.Nodes = nil
	for i := range 2000 {
		many.Nodes = append(many.Nodes, telemetry.Node{ID: uint16(i), Name: fmt.Sprintf("switch-%0100d", i), Workers: 1 + i%4})
	}
	var b bytes.Buffer
	if err := many.Write(&b); err != nil {
		t.Fatal(err)
	}
	wire := b.Bytes()
	for i := range 300 {
		wire = (&telemetry.Report{Kind: "a", Node: uint16(i), Boot: many.Boot, Sequence: uint64(i + 1)}).Append(wire)
	}
	c := dial(t, at, wire)
	var ack [8]byte
	for last := uint64(0); last < 300; last = binary.BigEndian.Uint64(ack[:]) {
		if _, err := io.ReadFull(c, ack[:]); err != nil {
			t.Fatalf("after %d reports: %v", last, err)
		}
	}
	info, err := h.store.reports.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if info.State.Msgs == 0 || info.State.Bytes > 300*300 {
		t.Errorf("300 reports take %d bytes in %d messages", info.State.Bytes, info.State.Msgs)
	}
	once(t, h.numbers(t), 300)
	raw, err := h.store.reports.GetLastMsgForSubject(t.Context(), "gswitch.report.>")
	if err != nil {
		t.Fatal(err)
	}
	m, err := decode(raw.Data)
	if err != nil {
		t.Fatal(err)
	}
	for i := range m.reports {
		if id := m.reports[i].Node; nodeName(&m.Hello, id) != many.Nodes[id].Name {
			t.Errorf("switch %d is %q", id, nodeName(&m.Hello, id))
		}
	}
}

// Ever new exporters, with unknown kinds of reports, take neither memory nor labels of metrics
// without end.
func TestEverNewExporters(t *testing.T) {
	a := NewAnalysis(line(t))
	position := map[string]Seen{}
	const more = mostSeen + 200
	for i := range more {
		m := &message{Hello: telemetry.Hello{Version: 1, Name: "stranger", Boot: uint64(i + 1)}, reports: []telemetry.Report{{Kind: fmt.Sprintf("\xff%d", i), Sequence: 1}}}
		at := start.Add(time.Duration(i) * time.Millisecond)
		a.Add(at, m)
		keepSeen(position, token(&m.Hello), Seen{1, at})
	}
	if len(a.seen) != mostSeen || len(position) != mostSeen {
		t.Errorf("%d and %d exporters are kept, of %d", len(a.seen), len(position), mostSeen)
	}
	first, last := token(&telemetry.Hello{Name: "stranger", Boot: 1}), token(&telemetry.Hello{Name: "stranger", Boot: more})
	if _, there := a.seen[first]; there || a.seen[last].Sequence != 1 {
		t.Error("the wrong ones are forgotten")
	}
	reg := prometheus.NewRegistry()
	m := NewMetrics(reg)
	m.analysed(0, a.Stats(), a.uses())
	if n := counter(t, reg, "gcollect_analysed_reports_total", "other"); n != more {
		t.Errorf("%v reports of other kinds", n)
	}
}

// flowReports returns a message with so many reports of a switch about one slot, of an
// instant that no other switch reports, so that it waits.
func flowReports(n int, encoded *flowradar.Flowset, exact *flowradar.Exact) (*message, frame.Time) {
	long := frame.Time(slotLength)
	slot := uint64(time.Second / slotLength)
	r := flowradar.Report{Node: 1, Slots: 1, Encoded: encoded, Exact: exact, Slot: slot, From: frame.Time(slot) * long, To: frame.Time(slot+1) * long}
	body := r.Append(nil)
	m := &message{Hello: telemetry.Hello{Version: 1, Name: "s1", Boot: uint64(start.UnixNano()), Nodes: []telemetry.Node{{ID: 1, Name: "s1", Workers: n}}}}
	for i := range n {
		m.reports = append(m.reports, telemetry.Report{Kind: flowKind, Node: 1, Boot: m.Boot, Sequence: uint64(i + 1), Body: body})
	}
	return m, long
}

// Reports of a few bytes that announce tables of many megabytes take a few bytes, however
// many they are: all of them are judged, in less memory than one such table.
func TestAnnouncedTablesCostNothing(t *testing.T) {
	const cells, filter = 1 << 21, 1 << 27
	a := NewAnalysis(line(t))
	m, _ := flowReports(100, flowradar.New(flowradar.Params{FilterBits: filter, FilterHashes: 4, Cells: cells, CellHashes: 4}), nil)
	if n := len(m.reports[0].Body); n > 200 {
		t.Fatalf("an empty table takes %d bytes", n)
	}
	a.Add(start.Add(2*time.Second), m)
	took := ^uint64(0)
	for range 3 { // others may take memory meanwhile
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for i := range m.reports {
			r, err := flowradar.Parse(m.reports[i].Body)
			if err != nil {
				t.Fatal(err)
			}
			r.Image.Single()
		}
		runtime.ReadMemStats(&after)
		took = min(took, after.TotalAlloc-before.TotalAlloc)
	}
	if took > filter/8 {
		t.Errorf("100 reports take %d bytes, a table alone has more than %d", took, filter/8)
	}
	if u := a.uses(); u.judged == 0 || u.judged > 100*200*flowCost || u.refused != (refusals{}) {
		t.Errorf("%+v", u)
	}
	for a.judgeOldest() {
	}
	if n := a.Stats()[Stat{reportProblems, "full"}] + a.Stats()[Stat{reportProblems, "bad"}]; n != 0 || a.uses().judged != 0 {
		t.Errorf("%d reports were not judged, %+v", n, a.uses())
	}
}

// Reports of one slot that would take more than their bound together are left out, and
// counted.
func TestSlotsTakeTheirBound(t *testing.T) {
	a := NewAnalysis(line(t))
	a.most.judged = 16 << 20
	exact := flowradar.NewExact(1 << 12)
	for i := range 1 << 12 {
		exact.Update(flowradar.Key{Addrs: uint64(i) << 20, Rest: uint64(i)}, flowradar.Traffic{Packets: 1, Bytes: 100})
	}
	m, long := flowReports(100, nil, exact)
	a.Add(start.Add(2*time.Second), m)
	full := a.Stats()[Stat{reportProblems, "full"}]
	w := a.slots[long].waiting
	if full == 0 || len(w) != 1 {
		t.Fatalf("%d are refused, %d slots wait", full, len(w))
	}
	for _, s := range w {
		if s.cost > a.most.judged || len(s.reports)+int(full) != 100 {
			t.Errorf("%d reports cost %d, %d are refused", len(s.reports), s.cost, full)
		}
	}
	if u := a.uses(); u.flows == 0 || u.judged == 0 || u.judged > a.most.judged || u.refused.judged != full {
		t.Errorf("%+v", u)
	}
	reg := NewMetrics(prometheus.NewRegistry())
	reg.analysed(0, a.Stats(), a.uses())
	for _, l := range reg.Limits() {
		if l.Name == "a slot of flows while it is judged" && (l.Refused != full || l.Used == 0 || l.Limit != mostJudged) {
			t.Errorf("reported is %v", l)
		}
	}
}

// Slots of instants far apart wait until they take their bound; then the oldest are
// judged.
func TestSlotsThatWaitAreBounded(t *testing.T) {
	a := NewAnalysis(line(t))
	a.most.waiting, a.most.followed = 1<<20, 1000
	long := frame.Time(slotLength)
	exact := flowradar.NewExact(1 << 12)
	for i := range 1 << 12 {
		exact.Update(flowradar.Key{Addrs: uint64(i) << 20, Rest: uint64(i)}, flowradar.Traffic{Packets: 1, Bytes: 100})
	}
	hello := telemetry.Hello{Version: 1, Name: "s1", Boot: uint64(start.UnixNano()), Nodes: []telemetry.Node{{ID: 1, Name: "s1", Workers: 1}}}
	most := 0
	for i := range 30 {
		slot := uint64(100 + i)
		r := flowradar.Report{Node: 1, Slots: 1, Exact: exact, Slot: slot, From: frame.Time(slot) * long, To: frame.Time(slot+1) * long}
		m := &message{Hello: hello, reports: []telemetry.Report{{Kind: flowKind, Node: 1, Boot: hello.Boot, Sequence: uint64(i + 1), Body: r.Append(nil)}}}
		a.Add(start.Add(2*time.Second), m)
		most = max(most, a.waitingBytes())
	}
	if s := a.slots[long]; most > a.most.waiting || s.next == 0 || a.uses().followed > a.most.followed || a.uses().refused.followed == 0 {
		t.Errorf("%d bytes waited, judged up to slot %d, %+v", most, s.next, a.uses())
	}
}

// Digests of an end whose other end says nothing, and of instants that are far ahead,
// wait until they take their bound; then the newest are left out.
func TestDigestsThatWaitAreBounded(t *testing.T) {
	a := NewAnalysis(line(t))
	a.most.digests = 1 << 20
	d := lossradar.NewDigest(lossradar.Shape{Cells: 1 << 10, Hashes: 3})
	hello := telemetry.Hello{Version: 1, Name: "s1", Boot: uint64(start.UnixNano()), Nodes: []telemetry.Node{{ID: 1, Name: "s1", Workers: 1}}}
	for i := range 200 {
		at := frame.Time(3600+i) * frame.Second
		r := lossradar.Report{Meter: lossradar.Meter{Node: 1, Port: 1}, Batch: uint64(i), From: at, To: at + period, Digest: d}
		m := &message{Hello: hello, reports: []telemetry.Report{{Kind: lossKind, Node: 1, Boot: hello.Boot, Sequence: uint64(i + 1), Body: r.Append(nil)}}}
		a.Add(start.Add(time.Second), m)
		if a.digests > a.most.digests {
			t.Fatalf("%d bytes wait", a.digests)
		}
	}
	u := a.uses()
	if n := a.Stats()[Stat{reportProblems, "full"}]; n == 0 || u.refused.digests != n {
		t.Errorf("%d are left out, %+v", n, u)
	}
	for _, l := range a.links {
		if l.waiting[0].Batch != 0 || l.waiting[len(l.waiting)-1].Batch != uint64(len(l.waiting)-1) {
			t.Error("the wrong ones are left out")
		}
	}
	backwards := lossradar.Report{Meter: lossradar.Meter{Node: 1, Port: 1}, From: 2 * frame.Second, To: frame.Second, Digest: d}
	a.Add(start.Add(time.Second), &message{Hello: hello, reports: []telemetry.Report{{Kind: lossKind, Node: 1, Boot: hello.Boot, Sequence: 1000, Body: backwards.Append(nil)}}})
	if n := a.Stats()[Stat{reportProblems, "bad"}]; n != 1 {
		t.Errorf("a batch that ends before it begins: %d", n)
	}
}

// Each collector that runs reports what is bounded.
func TestLimitsAreReported(t *testing.T) {
	h := openHub(t, t.TempDir(), 16<<20)
	if _, err := h.store.lanes.Put(t.Context(), "collector.a", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := h.store.lanes.Put(t.Context(), "collector.b", nil); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 2)
	for _, id := range []string{"b", "a"} {
		r := NewReceiver(h.store, &Network{}, nil, NewMetrics(prometheus.NewRegistry()), discard)
		part := r.bodies.of(peers[0])
		if !part.try(1000) {
			t.Fatal("no room")
		}
		go func() {
			done <- h.store.AnswerLimits(t.Context(), func(ctx context.Context) (*api.Limits, error) {
				v, err := h.store.Limits(ctx)
				v = append(append(v, r.Limits()...), r.Metrics.Limits()...)
				for _, l := range v {
					l.Switch = id
				}
				return &api.Limits{Limits: v}, err
			})
		}()
	}
	var all *api.Limits
	for {
		var err error
		if all, err = h.store.AskLimits(t.Context()); err == nil && all.Limits[0].Switch != all.Limits[len(all.Limits)-1].Switch {
			break // both have begun to answer
		}
	}
	got := map[string]*api.Limit{}
	for _, l := range all.Limits {
		got[l.Switch+" "+l.Name] = l
	}
	for name, want := range map[string][2]uint64{"a reports that are being read": {1000, mostBodies}, "b connections of exporters": {0, mostConnections},
		"b what exporters said they are": {0, mostHellos}, "a stream of reports": {0, 16 << 20}, "a lanes that are analysed here": {0, Lanes}} {
		if l := got[name]; l == nil || l.Used != want[0] || l.Limit != want[1] {
			t.Errorf("%s: %v, want %v", name, l, want)
		}
	}
}
