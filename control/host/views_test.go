package host

import (
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"gswitch/config"
	"gswitch/control/api"
	"gswitch/control/controltest"
	"gswitch/frame"
)

// notOfTheHost are the fields of answers that a replay has not, by the names of the calls: they
// are of what lies below the port, and of the process.
var notOfTheHost = map[string][]string{
	"ListHosts": ofTheProcess,
	"GetHost":   ofTheProcess,
	"GetConfig": {"yaml", "generation", "source"}, // the document has the other host, too
}

var ofTheProcess = []string{"version", "pid", "socket", "uptime_seconds", "generation", "state", "xdp_mode", "worker", "queues", "timing"}

func answers(t *testing.T, handler http.Handler, each func(name string, ask func() proto.Message)) {
	t.Helper()
	s := httptest.NewServer(handler)
	defer s.Close()
	controltest.Answers(t, api.NewHostClient(s.Client(), s.URL), notOfTheHost, func(_ string, in any) {
		switch r := in.(type) {
		case *api.GetHostRequest:
			r.Host = "a"
		case *api.ListHostsRequest:
			r.Host = "a"
		case *api.ListQueuePairsRequest:
			r.Host = "a"
		case *api.ListFlowsRequest:
			r.Host = "a"
		}
	}, each)
}

// What a host answers at an instant, the replay of its record answers at that instant: each view
// that its API and ghost show have, before anything was sent, while queue pairs are open, in the
// middle of messages and behind them. An answer is compared if the host did nothing from the
// instant before it was asked for to that behind it; what changes with time alone lies between
// what the replay shows at the two.
func TestReplayAnswersAsTheHostDid(t *testing.T) {
	text := strings.ReplaceAll(pairOfHosts, "NS", cable(t))
	text = strings.ReplaceAll(text, "congestion: dctcp, telemetry: {format: none}", "congestion: hpcc")
	doc, err := config.ParseHosts("hosts.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	d, err := New(t.Context(), doc, Options{Record: t.TempDir(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	stopped := false
	defer func() {
		if !stopped {
			_ = d.Stop()
		}
	}()
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
	a := d.units[0]
	instant := func() (at frame.Time) {
		if err := a.worker.Do(func(now frame.Time) { at = now }); err != nil {
			t.Fatal(err)
		}
		return at
	}

	type answer struct {
		phase, name string
		m           proto.Message
		first, last frame.Time
	}
	var seen []answer
	look := func(phase string) {
		for range 20 { // now and then it does something, such as reporting to a client that waits for a transfer
			answers(t, d.Handler(), func(name string, ask func() proto.Message) {
				first := instant()
				m := ask()
				seen = append(seen, answer{phase, name, m, first, instant()})
			})
		}
	}
	s := httptest.NewServer(d.Handler())
	defer s.Close()
	client := api.NewHostClient(s.Client(), s.URL)
	begin := func(r *api.TransferRequest) (done func(), sample func()) {
		r.Class = -1
		reports, err := client.Transfer(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		next := func(enough func(m *api.TransferReport) bool) {
			for reports.Receive() {
				if m := reports.Msg(); m.Done && m.Error != "" {
					t.Fatalf("%s of host %s: %s", r.Operation, r.Host, m.Error)
				} else if enough(m) {
					return
				}
			}
			t.Fatalf("%s of host %s ended early: %v", r.Operation, r.Host, reports.Err())
		}
		return func() {
				next(func(m *api.TransferReport) bool { return m.Done })
				_ = reports.Close()
			}, func() {
				next(func(m *api.TransferReport) bool { return len(m.Samples) > 0 })
			}
	}

	// Until both hosts have their interfaces each warns of the offloads of the other's, of
	// which a record has nothing.
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		m, err := client.GetHost(t.Context(), &api.GetHostRequest{Host: "a"})
		if err == nil && len(m.Warnings) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("host a still has warnings: %v, %v", m.GetWarnings(), err)
		}
	}
	look("before")
	// Queue pairs that have carried a message and wait for the next one.
	for _, r := range []*api.TransferRequest{
		{Host: "a", To: "10.0.0.2", Operation: "send", Size: 20e3, Count: 2, Interval: uint64(time.Hour)},
		{Host: "a", To: "10.0.0.2", Operation: "read", Size: 7e3, Count: 2, Interval: uint64(time.Hour)},
		{Host: "b", To: "10.0.0.1", Operation: "write", Size: 9e3, Count: 2, Interval: uint64(time.Hour)},
	} {
		_, sample := begin(r)
		sample()
	}
	look("waiting")
	done, _ := begin(&api.TransferRequest{Host: "a", To: "10.0.0.2", Operation: "send", Size: 500, Count: 30, Interval: uint64(20 * time.Millisecond)})
	look("sending")
	done()
	look("behind")
	name := d.Recordings()[0].File
	stopped = true
	if err := d.Stop(); err != nil {
		t.Fatal(err)
	}

	p := controltest.Player(t, name, Rebuild)
	show := func(name string, at frame.Time) (m proto.Message) {
		handler, err := p.Node.(*Replayed).Handler(p.Header, at)
		if err != nil {
			t.Fatal(err)
		}
		answers(t, handler, func(is string, ask func() proto.Message) {
			if is == name {
				m = ask()
			}
		})
		return m
	}
	compared, full := map[string]int{}, map[string]bool{}
	for _, x := range seen {
		next := frame.Never
		for {
			if next, err = p.Peek(); errors.Is(err, io.EOF) {
				next = frame.Never
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if next > x.first {
				break
			}
			if _, err := p.Step(); err != nil {
				t.Fatal(err)
			}
		}
		if p.Now() >= x.first || next <= x.last {
			continue // it did something meanwhile
		}
		from, to := show(x.name, x.first), show(x.name, x.last)
		if bad := controltest.Amid(x.name, x.m, from, to); bad != "" {
			t.Errorf("%s, from %v to %v: %s; the host said\n%s\nits replay\n%s", x.phase, x.first.Duration(), x.last.Duration(), bad, protojson.Format(x.m), protojson.Format(from))
		}
		compared[x.phase+" "+x.name]++
		full[x.phase+" "+x.name] = full[x.phase+" "+x.name] || proto.Size(x.m) > 0
	}
	for err == nil {
		_, err = p.Step()
	}
	if !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	for _, view := range []string{"before GetHost", "before ListLimits", "waiting GetHost", "waiting ListFlows", "waiting ListQueuePairs", "behind GetHost", "behind ListFlows"} {
		if !full[view] {
			t.Errorf("%s was not compared, or was empty", view)
		}
	}
	if !slices.ContainsFunc(slices.Collect(maps.Keys(full)), func(view string) bool { return strings.HasPrefix(view, "sending") }) {
		t.Error("nothing was compared while it was sending")
	}
	t.Logf("of %d answers these were each at one step: %v", len(seen), compared)
}
