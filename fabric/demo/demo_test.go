package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gswitch/control"
	"gswitch/control/api"
	"gswitch/fabric/load"
	"gswitch/units"
)

func TestReadSystemPing(t *testing.T) {
	for _, c := range []struct {
		tool, out string
		lost      int
		min, max  float64
	}{
		{"iputils", "PING 10.0.1.2 (10.0.1.2) 56(84) bytes of data.\n\n--- 10.0.1.2 ping statistics ---\n3 packets transmitted, 3 received, 0% packet loss, time 41ms\nrtt min/avg/max/mdev = 0.045/0.060/0.081/0.015 ms\n", 0, 0.045, 0.081},
		{"iputils, one lost", "3 packets transmitted, 2 received, 33.3333% packet loss, time 41ms\nrtt min/avg/max/mdev = 1.5/1.6/1.7/0.1 ms\n", 1, 1.5, 1.7},
		{"busybox", "3 packets transmitted, 3 packets received, 0% packet loss\nround-trip min/avg/max = 0.050/0.061/0.083 ms\n", 0, 0.050, 0.083},
		{"none answered", "3 packets transmitted, 0 received, 100% packet loss, time 2040ms\n", 3, 0, 0},
		{"nothing", "", 3, 0, 0},
	} {
		p := Ping{Sent: 3}
		p.readSystem(c.out)
		if p.Lost != c.lost || p.Min != c.min || p.Max != c.max {
			t.Errorf("%s: %+v", c.tool, p)
		}
	}
	p := Ping{Sent: 3}
	p.readOwn([]byte(`{"address":"10.0.1.2","count":2,"lost":1,"min_us":45,"max_us":81}`))
	if p.Lost != 1 || p.Min != 0.045 || p.Max != 0.081 {
		t.Errorf("own: %+v", p)
	}
}

func TestReadIperf(t *testing.T) {
	var f Flow
	err := f.readIperf([]byte(`{"start":{},"end":{"sum_sent":{"bytes":1,"bits_per_second":9.6e7,"retransmits":12},"sum_received":{"bits_per_second":9.5e7}}}`))
	if err != nil || f.BitsPerSecond != 9.5e7 || f.Retransmits != 12 {
		t.Errorf("%+v, %v", f, err)
	}
	if err := f.readIperf([]byte(`{"start":{},"error":"unable to connect to server"}`)); err == nil || !strings.Contains(err.Error(), "unable to connect") {
		t.Errorf("error %v", err)
	}
	if err := f.readIperf(nil); err == nil {
		t.Error("no report is no error")
	}
}

func FuzzReports(f *testing.F) {
	f.Add("3 packets transmitted, 2 received, 33.3333% packet loss, time 41ms\nrtt min/avg/max/mdev = 1.5/1.6/1.7/0.1 ms\n")
	f.Add(`{"end":{"sum_sent":{"retransmits":12},"sum_received":{"bits_per_second":9.5e7}}}`)
	f.Add("99999999999999999999 packets transmitted, -1 received = 1..2/./.")
	f.Fuzz(func(t *testing.T, out string) {
		p := Ping{Sent: 3}
		p.readSystem(out)
		p.readOwn([]byte(out))
		new(Flow).readIperf([]byte(out))
	})
}

// narrow checks that a terminal of 80 columns does not wrap text.
func narrow(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if n := len(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

func TestWritePings(t *testing.T) {
	var b strings.Builder
	writePings(&b, []Ping{
		{From: "h1", To: "h2", Sent: 3, Min: 0.051}, {From: "h1", To: "s1", Sent: 3, Min: 0.02},
		{From: "h2", To: "h1", Sent: 3, Lost: 1, Min: 0.05}, {From: "h2", To: "s1", Sent: 3, Err: errors.New("x")},
	})
	want := `
== ping: 4 pairs, 12 echo requests, 1 lost (best round trip in ms)
           h1     h2
    h1      .   0.05
    h2   -1/3      .
           s1
    h1   0.02
    h2   FAIL
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Error(d)
	}
	// The demo's own matrix, and one of more columns than a terminal has.
	for _, hosts := range []int{8, 23} {
		var pings []Ping
		for i := range hosts {
			for k := range hosts {
				pings = append(pings, Ping{From: fmt.Sprint("h", i), To: fmt.Sprint("h", k), Sent: 3, Min: 100})
			}
			pings = append(pings, Ping{From: "h0", To: fmt.Sprint("s", i), Sent: 3, Min: 100})
		}
		b.Reset()
		writePings(&b, pings)
		if got := strings.Count(b.String(), "100.00"); got != len(pings) {
			t.Errorf("%d hosts: %d of %d pairs are shown", hosts, got, len(pings))
		}
		narrow(t, b.String())
	}
}

// A fabric in which everything works has no failure, and each thing that does
// not work is one.
func TestJudge(t *testing.T) {
	good := func() *Result {
		return &Result{
			Rate: 200e6, HostRate: 400e6, Hosts: []string{"h1", "h2"}, Tool: "iperf3",
			Pings:  []Ping{{From: "h1", To: "h2", Sent: 3}},
			Flows:  []Flow{{From: "h1", To: "h2", BitsPerSecond: 95e6, Retransmits: 4}, {From: "h2", To: "h1", BitsPerSecond: 90e6}},
			Probes: []Probe{{From: "h1", To: "h2", Latency: load.Latency{Count: 100, Min: 100, P50: 1500, P99: 3000, Max: 9000}}},
			Drops:  []Drop{{"queue-tail", 7, true}, {"local-consumed", 3, false}, {"no-route", 0, true}},
			Marked: 55,
		}
	}
	r := good()
	if r.judge(); len(r.Failures) != 0 {
		t.Errorf("failures %v", r.Failures)
	}
	var b strings.Builder
	r.write(&b)
	for _, want := range []string{"h1  95.0      90.0            4  h2 95.0", "queue-tail", "ECN marks: 55 frames", "all 2 streams arrived", "  1.50  3.00  9.00"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, b.String())
		}
	}
	narrow(t, b.String())
	if strings.Contains(b.String(), "too busy") {
		t.Errorf("a machine that kept up is called busy:\n%s", b.String())
	}
	if strings.Contains(b.String(), "no-route") {
		t.Error("a reason without frames is shown")
	}
	for name, spoil := range map[string]func(*Result){
		"lost":       func(r *Result) { r.Pings[0].Lost = 1 },
		"ping":       func(r *Result) { r.Pings[0].Err = errors.New("no") },
		"stream":     func(r *Result) { r.Flows[1].Err = errors.New("no") },
		"no bytes":   func(r *Result) { r.Flows[0].BitsPerSecond = 0 },
		"probe":      func(r *Result) { r.Probes[0].Err = errors.New("no") },
		"unanswered": func(r *Result) { r.Probes[0].Count = 0 },
	} {
		r := good()
		spoil(r)
		if r.judge(); len(r.Failures) != 1 {
			t.Errorf("%s: failures %v", name, r.Failures)
		}
		b.Reset()
		if r.write(&b); !strings.Contains(b.String(), "FAILED:\n  "+r.Failures[0]) {
			t.Errorf("%s: not in the report", name)
		}
	}
}

func TestView(t *testing.T) {
	ports := []*api.Port{
		{Switch: "leaf1", Name: "h1", RxBitsPerSecond: 100e6, TxBitsPerSecond: 50e6, RxFramesPerSecond: 8000},
		{Switch: "leaf1", Name: "spine1", Wire: "w", RxBitsPerSecond: 1e6, TxBitsPerSecond: 300e6, DropsPerSecond: 12},
		{Switch: "leaf2", Name: "h2"},
	}
	var b strings.Builder
	if n := writeView(&b, ports, 200e6, 400e6, 7*time.Second, false); n != strings.Count(b.String(), "\n") {
		t.Errorf("%d lines are reported:\n%s", n, b.String())
	}
	want := `SWITCH   PORT        IN Mb/s   OUT Mb/s   DROPS/s  OUT           7 s left
leaf1    h1            100.0       50.0         0  |###                 |
         spine1          1.0      300.0        12  |####################|
leaf2    h2              0.0        0.0         0  |                    |
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Error(d)
	}
	b.Reset()
	writeView(&b, ports, 200e6, 400e6, 0, true)
	if !strings.Contains(b.String(), "\x1b[33m       12\x1b[0m") || strings.Count(b.String(), "\x1b[K\n") != 4 {
		t.Errorf("escape sequences: %q", b.String())
	}
	for line := range strings.Lines(b.String()) {
		if n := len(strings.TrimSuffix(line, "\x1b[K\n")); n > viewWidth+len("\x1b[33m\x1b[0m") {
			t.Errorf("a line of %d columns", n)
		}
	}
	if got := summary(ports, 3*time.Second); got != "hosts send   100 Mb/s, receive    50 Mb/s; 8 kframes/s; 12 drops/s; 3 s left" {
		t.Errorf("summary %q", got)
	}
	narrow(t, summary([]*api.Port{{RxBitsPerSecond: 99999e6, TxBitsPerSecond: 99999e6, RxFramesPerSecond: 9999e3, DropsPerSecond: 99}}, 10*time.Second))
}

// counted is a gswitch that has counted a little.
type counted struct {
	api.UnimplementedControlHandler
}

func (counted) ListDrops(context.Context, *api.ListRequest) (*api.Drops, error) {
	return &api.Drops{Drops: []*api.Drop{
		{Switch: "s1", Port: "a", Reason: "no-route", Frames: 2, Loss: true},
		{Switch: "s1", Port: "b", Reason: "queue-tail", Frames: 5, Loss: true},
		{Switch: "s2", Port: "a", Reason: "queue-tail", Frames: 6, Loss: true},
		{Switch: "s2", Port: "a", Reason: "local-consumed", Frames: 3},
	}}, nil
}

func (counted) ListQueues(context.Context, *api.ListRequest) (*api.Queues, error) {
	return &api.Queues{Queues: []*api.Queue{{EcnMarkedFrames: 4}, {EcnMarkedFrames: 5}}}, nil
}

func (counted) ListPFC(context.Context, *api.ListRequest) (*api.PFC, error) {
	return &api.PFC{Classes: []*api.PFCClass{{RxXoff: 1, TxXoff: 2}, {RxXoff: 10}}}, nil
}

func (counted) ListWorkers(context.Context, *api.ListRequest) (*api.Workers, error) {
	return &api.Workers{Workers: []*api.Worker{{LatenessP99: 5e6, LatenessMax: 6e6, BusyRatio: 0.2}, {LatenessP99: 1e6, LatenessMax: 9e6, BusyRatio: 0.9}}}, nil
}

// The report says so where numbers are those of a machine that did not keep up.
func TestTooBusy(t *testing.T) {
	for _, c := range []struct {
		late Lateness
		busy bool
	}{
		{Lateness{}, false},
		{Lateness{SwitchP99: tooLateSwitch, SwitchMax: time.Second, Busy: 1, HostP90: tooLateHost, HostMax: time.Second}, false},
		{Lateness{SwitchP99: tooLateSwitch + 1}, true},
		{Lateness{HostP90: tooLateHost + 1}, true},
	} {
		var b strings.Builder
		r := Result{Late: c.late}
		r.write(&b)
		if got := strings.Contains(b.String(), "too busy"); got != c.busy || !strings.Contains(b.String(), "lateness in ms") {
			t.Errorf("%+v: busy %v, want %v:\n%s", c.late, got, c.busy, b.String())
		}
		narrow(t, b.String())
	}
	var l Lateness
	l.addNaps(nil)
	l.addNaps([]time.Duration{9, 1, 2, 3, 4, 5, 6, 7, 8, 10})
	if l.HostP90 != 10 || l.HostMax != 10 {
		t.Errorf("naps: %+v", l)
	}
}

func TestCounters(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	path, h := api.NewControlHandler(counted{})
	mux := http.NewServeMux()
	mux.Handle(path, h)
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	srv := &http.Server{Handler: mux, Protocols: protocols}
	go srv.Serve(l)
	defer srv.Close()
	d := &demo{client: control.Dial(socket)}
	var r Result
	if err := d.counters(t.Context(), &r); err != nil {
		t.Fatal(err)
	}
	if want := []Drop{{"queue-tail", 11, true}, {"local-consumed", 3, false}, {"no-route", 2, true}}; !slices.Equal(r.Drops, want) {
		t.Errorf("drops %v", r.Drops)
	}
	if want := (Lateness{SwitchP99: 5e6, SwitchMax: 9e6, Busy: 0.9}); r.Late != want {
		t.Errorf("lateness %+v", r.Late)
	}
	if r.Marked != 9 || r.PausesRx != 11 || r.PausesTx != 2 {
		t.Errorf("result %+v", r)
	}
}

// Each host has as many streams out as in, and all of them cross the spines.
func TestPattern(t *testing.T) {
	d := &demo{Options: Options{Name: "demo", Rate: DefaultRate}}
	if err := d.plan(); err != nil {
		t.Fatal(err)
	}
	hosts := d.hosts()
	in := map[string]int{}
	topo := d.layout.Plan.Topology
	for i := range hosts {
		for _, k := range distances {
			to := hosts[(i+k)%len(hosts)]
			in[to]++
			a, _ := topo.Lookup(hosts[i])
			b, _ := topo.Lookup(to)
			if topo.Peer(a, 0).Node == topo.Peer(b, 0).Node {
				t.Errorf("%s and %s share a leaf", hosts[i], to)
			}
		}
	}
	for _, h := range hosts {
		if in[h] != len(distances) {
			t.Errorf("%s receives %d streams", h, in[h])
		}
	}
	for _, rate := range []units.Rate{0, 1e6, 100e9} {
		d := &demo{Options: Options{Name: "demo", Rate: rate}}
		if err := d.plan(); err != nil {
			t.Errorf("rate %v: %v", rate, err)
		}
	}
}
