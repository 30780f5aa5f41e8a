package collect

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"

	"gswitch/telemetry"
)

// peers are those that a pool is divided among in tests.
var peers = []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")}

// Who has its share waits, and others do not wait for it; who waits for what nobody
// gives back is refused, and counted.
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
	go func() { got <- second.take(t.Context(), 30, time.Minute) }()
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

// strangers is a receiver with little memory, and what it counts.
func strangers(t *testing.T, h *hub, hellos, bodies int) (r *Receiver, at string, reg *prometheus.Registry) {
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
	r = NewReceiver(store, &Network{}, nil, NewMetrics(reg), quietly)
	r.hellos, r.bodies, r.hello = newPool(hellos, hellos), newPool(bodies, bodies), 50*time.Millisecond
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
	r, at, reg := strangers(t, nil, 4*size, 4*size)
	most := 0
	var all []net.Conn
	for range 16 {
		all = append(all, dial(t, at, binary.BigEndian.AppendUint32(nil, size-4)))
	}
	for refused := 0.0; refused < 12; time.Sleep(time.Millisecond) {
		used, _ := r.hellos.use()
		most = max(most, int(used))
		refused = counter(t, reg, "gcollect_refused_total", "memory") + counter(t, reg, "gcollect_bad_connections_total", "")
	}
	for _, c := range all {
		untilClosed(t, c)
	}
	if most > 4*size {
		t.Errorf("hellos took %d bytes of %d", most, 4*size)
	}
	if n := counter(t, reg, "gcollect_refused_total", "memory"); n == 0 {
		t.Error("nobody was refused")
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
	r, at, _ := strangers(t, h, 1<<20, 1<<20)
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

// Exporters that are ever new, with kinds of reports that nobody knows, take neither
// memory nor labels of metrics without end.
func TestEverNewExporters(t *testing.T) {
	a := NewAnalysis(line(t))
	position := map[string]Seen{}
	const more = mostSeen + 200
	for i := range more {
		m := &message{Hello: telemetry.Hello{Version: 1, Name: "stranger", Boot: uint64(i + 1)}, reports: []telemetry.Report{{Kind: fmt.Sprintf("\xff%d", i), Sequence: 1}}}
		at := start.Add(time.Duration(i) * time.Millisecond)
		a.Add(at, m)
		remember(position, token(&m.Hello), Seen{1, at})
	}
	if len(a.seen) != mostSeen || len(position) != mostSeen {
		t.Errorf("%d and %d exporters are remembered, of %d", len(a.seen), len(position), mostSeen)
	}
	first, last := token(&telemetry.Hello{Name: "stranger", Boot: 1}), token(&telemetry.Hello{Name: "stranger", Boot: more})
	if _, there := a.seen[first]; there || a.seen[last].Sequence != 1 {
		t.Error("the wrong ones are forgotten")
	}
	reg := prometheus.NewRegistry()
	m := NewMetrics(reg)
	m.analysed(0, a.Stats())
	if n := counter(t, reg, "gcollect_analysed_reports_total", "other"); n != more {
		t.Errorf("%v reports of other kinds", n)
	}
}
