package collect

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"

	"gswitch/natsserver"
	"gswitch/telemetry"
	"gswitch/telemetry/export"
)

var discard = slog.New(slog.NewTextHandler(io.Discard, nil))

// hub is an embedded server with its streams.
type hub struct {
	*natsserver.Server
	nc    *nats.Conn
	store *Store
}

func openHub(t *testing.T, dir string, limit int64) *hub {
	t.Helper()
	s, err := NewServer(dir, "127.0.0.1:0", 2*limit, false, discard)
	if err != nil {
		t.Fatal(err)
	}
	h := &hub{Server: s}
	t.Cleanup(h.close)
	if h.nc, err = s.Connect(); err != nil {
		t.Fatal(err)
	}
	if h.store, err = Open(t.Context(), h.nc, Limits{Reports: limit, Events: limit, Age: time.Hour, Replicas: 1}); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *hub) close() {
	if h.nc != nil {
		h.nc.Close()
		h.nc = nil
		h.Close()
	}
}

// numbers are those of the reports in the stream, and how often each is there.
func (h *hub) numbers(t *testing.T) map[uint64]int {
	t.Helper()
	got := map[uint64]int{}
	h.eachMessage(t, func(_ time.Time, m *message) {
		for _, r := range m.reports {
			got[r.Sequence]++
		}
	})
	return got
}

// eachMessage calls f with the messages in the stream, of subjects if there are some.
func (h *hub) eachMessage(t *testing.T, f func(time.Time, *message), subjects ...string) {
	t.Helper()
	c, err := h.store.reports.OrderedConsumer(t.Context(), jetstream.OrderedConsumerConfig{FilterSubjects: subjects})
	if err != nil {
		t.Fatal(err)
	}
	i, err := c.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	it, err := c.Messages()
	if err != nil {
		t.Fatal(err)
	}
	defer it.Stop()
	for range i.NumPending {
		msg, err := it.Next()
		if err != nil {
			t.Fatal(err)
		}
		meta, err := msg.Metadata()
		if err != nil {
			t.Fatal(err)
		}
		m, err := decode(msg.Data())
		if err != nil {
			t.Fatal(err)
		}
		f(meta.Timestamp, m)
	}
}

// receive takes reports at an address until stop is called.
func (h *hub) receive(t *testing.T, at string) (m *Metrics, address string, stop func()) {
	t.Helper()
	return h.receiveFor(t, at, &Network{})
}

// receiveFor is receive for a network.
func (h *hub) receiveFor(t *testing.T, at string, network *Network) (m *Metrics, address string, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	m = NewMetrics(prometheus.NewRegistry())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	r := NewReceiver(h.store, network, nil, m, discard)
	go func() {
		defer close(done)
		if err := r.Serve(ctx, l); err != nil {
			t.Error(err)
		}
	}()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return m, l.Addr().String(), stop
}

// A client that connects and sends nothing, or half a report, does not keep the place of an exporter.
func TestIdleConnections(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	r := NewReceiver(nil, &Network{}, nil, NewMetrics(prometheus.NewRegistry()), discard)
	r.hello = time.Millisecond
	go func() { done <- r.Serve(ctx, l) }()
	for _, said := range []string{"", "\x00\x00\x00\x20half a word"} {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, said); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(c); err != nil && !errors.Is(err, unix.ECONNRESET) {
			t.Error(err)
		}
		c.Close()
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

var testHello = telemetry.Hello{Version: 1, Name: "s1", Boot: 77, Nodes: []telemetry.Node{{ID: 1, Name: "s1", Workers: 1}}}

// kinds spread reports over lanes.
var kinds = []string{"a", "b", "c", "d", "e"}

func add(e *export.Exporter, from, n int) {
	for i := range n {
		e.Add(telemetry.Report{Kind: kinds[(from+i)%len(kinds)], Node: 1, Body: make([]byte, 1000)})
	}
}

// once holds that n reports are in the stream, each once.
func once(t *testing.T, got map[uint64]int, n int) {
	t.Helper()
	for i := range uint64(n) {
		if got[i+1] != 1 {
			t.Errorf("report %d is there %d times", i+1, got[i+1])
		}
	}
	if len(got) != n {
		t.Errorf("%d reports are there, of %d", len(got), n)
	}
}

// Each report is in the stream once: over connections that end, a server that begins
// anew, and an exporter that did not get the acknowledgement.
func TestReportsOnce(t *testing.T) {
	dir := t.TempDir()
	h := openHub(t, dir, 64<<20)
	_, at, stop := h.receive(t, "127.0.0.1:0")
	e := export.New(discard, at, 64<<20, testHello)
	add(e, 0, 500)
	stop()
	h.close()
	add(e, 500, 500)
	h = openHub(t, dir, 64<<20)
	h.receive(t, at)
	add(e, 1000, 500)
	e.Close(time.Minute)
	if c := e.Counts(); c.Acknowledged != 1500 || c.Lost != 0 || c.Made != 1500 {
		t.Errorf("%+v", c)
	}
	once(t, h.numbers(t), 1500)

	// The same again, all of it, as one that was never answered.
	c, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var b bytes.Buffer
	if err := testHello.Write(&b); err != nil {
		t.Fatal(err)
	}
	wire := b.Bytes()
	for i := range 1501 {
		r := telemetry.Report{Kind: kinds[i%len(kinds)], Node: 1, Boot: testHello.Boot, Sequence: uint64(i + 1), Body: make([]byte, 1000)}
		wire = r.Append(wire)
	}
	go c.Write(wire)
	var ack [8]byte
	for last := uint64(0); last < 1501; last = binary.BigEndian.Uint64(ack[:]) {
		if _, err := io.ReadFull(c, ack[:]); err != nil {
			t.Fatalf("after %d reports: %v", last, err)
		}
	}
	once(t, h.numbers(t), 1501)
}

// What is not a report, or not of this exporter, ends the connection.
func TestBadConnections(t *testing.T) {
	h := openHub(t, t.TempDir(), 16<<20)
	_, at, _ := h.receive(t, "127.0.0.1:0")
	var hello bytes.Buffer
	if err := testHello.Write(&hello); err != nil {
		t.Fatal(err)
	}
	report := func(boot, seq uint64) []byte {
		return (&telemetry.Report{Kind: "a", Boot: boot, Sequence: seq}).Append(nil)
	}
	for what, bad := range map[string][]byte{
		"a request of HTTP": []byte("GET / HTTP/1.1\r\n\r\n"), "another boot": append(hello.Bytes(), report(78, 1)...), "no report": append(hello.Bytes(), make([]byte, 64)...),
		"a number twice": append(append(hello.Bytes(), report(77, 5)...), report(77, 5)...),
	} {
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(bytes.Clone(bad)); err != nil {
			t.Fatal(err)
		}
		if answer, err := io.ReadAll(c); err == nil && len(answer) > 8 {
			t.Errorf("%s: %x", what, answer)
		}
		c.Close()
	}
	if n := len(h.numbers(t)); n > 1 {
		t.Errorf("%d reports are there", n)
	}
	if allowed([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}) || !allowed([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, &net.TCPAddr{IP: net.IPv4(10, 0, 2, 1)}) {
		t.Error("who may send")
	}
}

// A stream that may take no more has reports wait; when it may, they come, each once.
func TestFullStream(t *testing.T) {
	dir := t.TempDir()
	h := openHub(t, dir, 256<<10)
	_, at, stop := h.receive(t, "127.0.0.1:0")
	e := export.New(discard, at, 64<<20, testHello)
	add(e, 0, 1000)
	for e.Counts().Connects < 3 { // it was refused, and tried again
		time.Sleep(time.Millisecond)
	}
	if c := e.Counts(); c.Waiting == 0 || c.Acknowledged > 256 {
		t.Errorf("%+v fit into 256 KiB", c)
	}
	stop()
	h.close()
	h = openHub(t, dir, 16<<20)
	h.receive(t, at)
	e.Close(time.Minute)
	if c := e.Counts(); c.Acknowledged != 1000 || c.Lost != 0 {
		t.Errorf("%+v", c)
	}
	once(t, h.numbers(t), 1000)
}

// A disk that is full: nothing that was acknowledged is lost, and when there is room
// the rest comes.
func TestFullDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "small")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("gcollect-test", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Skip("no file system can be mounted here: ", err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	h := openHub(t, dir, 64<<20)
	_, at, stop := h.receive(t, "127.0.0.1:0")
	e := export.New(discard, at, 64<<20, testHello)
	add(e, 0, 4000)
	<-h.Failed()
	h.close()
	stop()
	before := e.Counts().Acknowledged
	if before == 4000 {
		t.Error("4 MB fit on a disk of 2 MB")
	}
	if err := unix.Mount("gcollect-test", dir, "tmpfs", unix.MS_REMOUNT, "size=64m"); err != nil {
		t.Fatal(err)
	}
	h = openHub(t, dir, 64<<20)
	got := h.numbers(t)
	for i := range before {
		if got[i+1] != 1 {
			t.Errorf("report %d, which was acknowledged, is there %d times", i+1, got[i+1])
		}
	}
	h.receive(t, at)
	e.Close(time.Minute)
	once(t, h.numbers(t), 4000)
}

// Two collectors share the lanes; one that fails leaves its own to the other, and all
// losses are found, each once.
func TestCollectorsShare(t *testing.T) {
	h := openHub(t, t.TempDir(), 64<<20)
	network := line(t)
	type party struct {
		nc   *nats.Conn
		stop context.CancelFunc
		done chan struct{}
	}
	begin := func(id string) *party {
		nc, err := h.Connect()
		if err != nil {
			t.Fatal(err)
		}
		s, err := Find(t.Context(), nc)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		p := &party{nc, stop, make(chan struct{})}
		w := &Workers{Store: s, Network: network, ID: id, Metrics: NewMetrics(prometheus.NewRegistry()), Log: discard}
		go func() { defer close(p.done); w.Run(ctx) }()
		t.Cleanup(func() { stop(); <-p.done; nc.Close() })
		return p
	}
	// The lane of the link is the first collector's.
	lane := 2 // the third link
	ids := []string{"one", "two"}
	first := best(lane, ids)
	second := ids[0]
	if first == second {
		second = ids[1]
	}
	a := begin(first)
	begin(second)
	v, lost := metered(t, 0, 0)
	var hello telemetry.Hello
	keepers := map[string]*keeper{}
	put := func(v []stored) {
		for _, s := range v {
			m, err := decode(s.data)
			if err != nil {
				t.Fatal(err)
			}
			if hello = m.Hello; len(m.reports) == 0 {
				continue
			}
			k := keepers[hello.Name]
			if k == nil {
				k = newKeeper(h.store, network, hello)
				keepers[hello.Name] = k
			}
			if _, err := k.keep(t.Context(), m.reports); err != nil {
				t.Fatal(err)
			}
		}
	}
	put(v[:len(v)/2])
	a.nc.Close() // as one that is killed: from here on it does nothing
	put(v[len(v)/2:])
	deadline := time.Now().Add(2 * time.Minute)
	for {
		events := map[string]Event{}
		if err := h.store.Events(t.Context(), Filter{Kinds: []string{Loss}}, func(e *Event) error {
			if _, twice := events[e.ID]; twice {
				t.Errorf("twice: %v", e)
			}
			events[e.ID] = *e
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		n := lossesOf(events)
		if int(n) == lost {
			return
		}
		if int(n) > lost || time.Now().After(deadline) {
			t.Fatalf("%d losses are named, of %d", n, lost)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
