package collect

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"

	"gswitch/natsserver"
	"gswitch/telemetry"
	"gswitch/telemetry/export"
)

// nodeOptions are those of a server of a cluster, in a process of its own.
type nodeOptions struct {
	Name, Dir, Routes string
	At                netip.AddrPort // for the other servers
}

// nodeVariable has the test's program be a server of a cluster.
const nodeVariable = "COLLECT_TEST_NODE"

func init() {
	if text := os.Getenv(nodeVariable); text != "" {
		fmt.Fprintln(os.Stderr, runNode(text))
		os.Exit(1)
	}
}

// runNode is a server until its standard input ends.
func runNode(text string) error {
	var n nodeOptions
	if err := json.Unmarshal([]byte(text), &n); err != nil {
		return err
	}
	s, err := server.NewServer(&server.Options{ServerName: n.Name, Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, JetStream: true, StoreDir: n.Dir,
		MaxPayload: natsserver.MaxPayload, Cluster: server.ClusterOpts{Name: "test", Host: n.At.Addr().String(), Port: int(n.At.Port())}, Routes: server.RoutesFromStr(n.Routes)})
	if err != nil {
		return err
	}
	go s.Start()
	if !s.ReadyForConnections(time.Minute) {
		return fmt.Errorf("%s does not start", n.Name)
	}
	fmt.Println(s.ClientURL())
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// cluster is servers of NATS, each a process that can be killed.
type cluster struct {
	urls  []string
	nodes map[string]*exec.Cmd
}

func newCluster(t *testing.T, n int) *cluster {
	t.Helper()
	// Each has an address of its own. Those that know it beforehand dial it before it is there:
	// at 127.0.0.1 another connection might have the port by then.
	var at []netip.AddrPort
	var routes []string
	pid := os.Getpid()
	for i := range n {
		at = append(at, netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, byte(1 + pid>>14&0x7f), byte(pid >> 6), byte(pid<<2 | i + 1)}), 6222))
		routes = append(routes, "nats://"+at[i].String())
	}
	c := &cluster{nodes: map[string]*exec.Cmd{}}
	for i, at := range at {
		o, err := json.Marshal(nodeOptions{fmt.Sprintf("n%d", i), t.TempDir(), strings.Join(routes, ","), at})
		if err != nil {
			t.Fatal(err)
		}
		x := exec.Command(os.Args[0])
		x.Env, x.Stderr = append(os.Environ(), nodeVariable+"="+string(o)), t.Output()
		in, err := x.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := x.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := x.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { in.Close(); x.Process.Kill(); x.Wait() })
		url, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		c.urls = append(c.urls, strings.TrimSpace(url))
		c.nodes[fmt.Sprintf("n%d", i)] = x
	}
	return c
}

// party is a collector at a cluster.
type party struct {
	nc      *nats.Conn
	store   *Store
	address string // for exporters
	metrics *Metrics
	kill    func()
}

// join adds a collector. The first one makes the streams, as soon as the cluster has
// a leader.
func (c *cluster) join(t *testing.T, id string, network *Network) *party {
	t.Helper()
	nc, err := nats.Connect(strings.Join(c.urls, ","), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	p := &party{nc: nc, metrics: NewMetrics(prometheus.NewRegistry())}
	retried(t, func(ctx context.Context) (err error) {
		p.store, err = Open(ctx, nc, Limits{Reports: 64 << 20, Events: 64 << 20, Age: time.Hour, Replicas: len(c.urls)})
		return err
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.address = l.Addr().String()
	ctx, stop := context.WithCancel(context.Background())
	received, analysed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(received)
		r := NewReceiver(p.store, network, nil, p.metrics, discard)
		if err := r.Serve(ctx, l); err != nil {
			t.Error(err)
		}
	}()
	go func() {
		defer close(analysed)
		w := &Workers{Store: p.store, Network: network, ID: id, Metrics: p.metrics, Log: discard}
		w.Run(ctx)
	}()
	// As one that is killed: from here on it does nothing.
	p.kill = func() { nc.Close(); stop(); <-received; <-analysed }
	t.Cleanup(p.kill)
	return p
}

// stock is how often each report is in the stream, by its exporter and number, and for
// how long no message of an exporter came between two of its own; whole says that none was
// analysed so long ago that it is gone.
func (s *Store) stock(ctx context.Context) (got map[string]int, gap time.Duration, whole bool, err error) {
	info, err := s.reports.Info(ctx)
	if err != nil {
		return nil, 0, false, err
	}
	whole = info.State.FirstSeq == 1 && info.State.NumDeleted == 0
	c, err := s.reports.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
	if err != nil {
		return nil, 0, false, err
	}
	i, err := c.Info(ctx)
	if err != nil {
		return nil, 0, false, err
	}
	it, err := c.Messages()
	if err != nil {
		return nil, 0, false, err
	}
	defer it.Stop()
	got = map[string]int{}
	latest := map[string]time.Time{}
	// The stream's leader says what there is. The server that has the consumer may be behind,
	// and what is pending is what it has.
	for n, last := uint64(0), uint64(0); whole && last < info.State.LastSeq || !whole && n < i.NumPending; n++ {
		msg, err := it.Next(jetstream.NextContext(ctx))
		if err != nil {
			return nil, 0, false, err
		}
		m, err := decode(msg.Data())
		if err != nil {
			return nil, 0, false, err
		}
		meta, err := msg.Metadata()
		if err != nil {
			return nil, 0, false, err
		}
		last = meta.Sequence.Stream
		if t, ok := latest[m.Name]; ok && len(m.reports) > 0 {
			gap = max(gap, meta.Timestamp.Sub(t))
		}
		for _, r := range m.reports {
			got[fmt.Sprint(m.Name, " ", r.Sequence)]++
			latest[m.Name] = meta.Timestamp
		}
	}
	if info, err = s.reports.Info(ctx); err != nil {
		return nil, 0, false, err
	}
	return got, gap, whole && info.State.FirstSeq == 1 && info.State.NumDeleted == 0, nil
}

// retried calls f until a cluster that chooses new leaders has let it succeed.
func retried(t *testing.T, f func(ctx context.Context) error) {
	t.Helper()
	for {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		err := f(ctx)
		cancel()
		if err == nil {
			return
		}
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// named returns the losses that were found, each of them once.
func named(t *testing.T, s *Store) map[string]Event {
	t.Helper()
	events := map[string]Event{}
	retried(t, func(ctx context.Context) error {
		clear(events)
		return s.Events(ctx, Filter{Kinds: []string{Loss}}, func(e *Event) error {
			if _, twice := events[e.ID]; twice {
				t.Errorf("twice: %v", e)
			}
			events[e.ID] = *e
			return nil
		})
	})
	return events
}

// Two collectors share the work at a cluster of three servers. The server that leads
// the stream is killed while reports come, and then the collector that has the lane
// of the link: every report is in the stream once, and all losses are found, each once. Of
// batches of which the reports of one end come more than ten seconds late nothing is said:
// how long a cluster takes to choose a leader is not ours (TestCollectorsShare has none).
func TestCollectorsAtACluster(t *testing.T) {
	c := newCluster(t, 3)
	network := line(t)
	ids := []string{"one", "two"}
	first := best(2, ids) // whose is the lane of the third link
	second := ids[0]
	if first == second {
		second = ids[1]
	}
	a := c.join(t, first, network)
	b := c.join(t, second, network)
	v, lost := metered(t, 0, 0)
	exporters := map[string]*export.Exporter{}
	put := func(v []stored) {
		for _, s := range v {
			m, err := decode(s.data)
			if err != nil {
				t.Fatal(err)
			}
			if len(m.reports) == 0 {
				continue
			}
			e := exporters[m.Name]
			first := e == nil
			if first {
				e = export.New(discard, a.address, 64<<20, m.Hello)
				exporters[m.Name] = e
			}
			for _, r := range m.reports {
				e.Add(telemetry.Report{Kind: r.Kind, Node: r.Node, Body: r.Body})
			}
			for first && e.Counts().Waiting > 0 { // both ends are known before either goes on
				time.Sleep(time.Millisecond)
			}
		}
	}
	acknowledged := func() (n uint64) {
		for _, e := range exporters {
			n += e.Counts().Acknowledged
		}
		return n
	}
	put(v[:len(v)/2])
	for len(named(t, a.store)) == 0 { // some are found while all servers are there
		time.Sleep(time.Millisecond)
	}
	put(v[len(v)/2 : 3*len(v)/4]) // these are under way when the leader goes
	info, err := a.store.reports.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	leader := c.nodes[info.Cluster.Leader]
	if leader == nil {
		t.Fatalf("the stream is led by %q", info.Cluster.Leader)
	}
	if err := leader.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	before := acknowledged()
	put(v[3*len(v)/4:])
	for acknowledged() == before {
		time.Sleep(time.Millisecond)
	}
	a.kill()
	made := 0
	for name, e := range exporters {
		h := telemetry.Hello{}
		for _, s := range v {
			if m, _ := decode(s.data); m != nil && m.Name == name {
				h = m.Hello
			}
		}
		e.Change(b.address, 64<<20, h)
		made += int(e.Counts().Made)
	}
	for name, e := range exporters {
		e.Close(5 * time.Minute)
		if x := e.Counts(); x.Lost != 0 || x.Acknowledged != x.Made {
			t.Errorf("%s: %+v", name, x)
		}
	}
	var stock map[string]int
	var gap time.Duration
	var whole bool
	retried(t, func(ctx context.Context) (err error) {
		stock, gap, whole, err = b.store.stock(ctx)
		return err
	})
	for name, n := range stock {
		if n != 1 {
			t.Errorf("report %s is there %d times", name, n)
		}
	}
	if whole && len(stock) != made {
		t.Errorf("%d reports are there, of %d", len(stock), made)
	}
	// All is said when the lane's time has gone on for long enough after the last report.
	for over := false; !over; time.Sleep(50 * time.Millisecond) {
		retried(t, func(ctx context.Context) error {
			p, _, err := b.store.position(ctx, 2)
			last := time.Time{}
			for name, seen := range p.Seen {
				if !strings.HasPrefix(name, tick) && seen.At.After(last) {
					last = seen.At
				}
			}
			over = !last.IsZero() && p.At.Sub(last) > onward
			return err
		})
	}
	events := named(t, b.store)
	late := !whole || gap > reportTimeout/2
	if n := lossesOf(events); int(n) > lost || n == 0 || int(n) < lost && !late {
		t.Errorf("%d losses are named, of %d; no message of an exporter came for %v", n, lost, gap)
	}
}
