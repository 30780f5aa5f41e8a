package control

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"gswitch/capture/capturetest"
	"gswitch/config"
	"gswitch/control/api"
	"gswitch/control/controltest"
	"gswitch/frame"
)

// notOfTheSwitch are the fields of answers that a replay has not, by the names of the calls: they
// are of what lies below the ports, and of the process.
var notOfTheSwitch = map[string][]string{
	"ListPorts": {"kind", "interface", "netns", "wire", "mode", "mode_reason", "workers", "queues", "setup", "warnings", "reopened", "xsk",
		"tx_budget", "multi_buffer", "busy_poll", "faults"},
	"ListClocks":  {"ports"},             // whether their links are up, and what gives them stamps
	"ListWorkers": {"workers", "memory"}, // all of it
	"GetVersion":  {"go", "kernel", "pid", "socket", "uptime_seconds", "generation"},
	"GetConfig":   {"generation", "source"},
}

// burstSource is a file with bursts of frames, and time between them in which nothing comes.
func burstSource(t *testing.T, seed uint64) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "in.pcapng")
	f := capturetest.Create(t, file, "in")
	rng := rand.New(rand.NewPCG(seed, 0))
	for i := range bursts * burst {
		f.Add(int64(i/burst)*150_000_000+int64(i%burst)*100_000, viewsFrame(rng, i))
	}
	f.Close()
	return file
}

const (
	rounds = 6
	burst  = 150 // frames
	bursts = 100 // so many that each round sees more than the one before, also where the worker is late
)

// answers calls each with all views of a switch that an API has.
func answers(t *testing.T, handler http.Handler, each func(name string, ask func() proto.Message)) {
	t.Helper()
	s := httptest.NewServer(handler)
	defer s.Close()
	controltest.Answers(t, api.NewControlClient(s.Client(), s.URL), notOfTheSwitch, func(name string, in any) {
		if r, ok := in.(*api.ListRequest); ok && name != "ListWorkers" && name != "ListExports" {
			r.Switch = "s" // and not the limits of the process
		}
	}, func(name string, ask func() proto.Message) {
		each(name, func() proto.Message {
			m := ask()
			if l, ok := m.(*api.Limits); ok { // how much of the record is written is none of the switch either
				l.Limits = slices.DeleteFunc(l.Limits, func(l *api.Limit) bool { return l.Name == "record of the switch" })
			}
			return m
		})
	})
}

// What a daemon answers at an instant, the replay of its record answers at that instant: each view
// that its API and gswitch show have, while frames wait, ports are paused, and tables and
// configurations change. What is shown has one instant, and the program cannot know which: so each
// is asked for where the switch did nothing between the calls before and after it, and what
// changes with time alone lies between what the replay shows at the two.
func TestReplayAnswersAsTheDaemonDid(t *testing.T) {
	doc := "control: {socket: /run/gswitch-test/never.sock}\nmemory: {frames: 4096}\n" + viewsDocument(func(port string) string {
		return fmt.Sprintf("pcap: {read: %s, write: %s}", burstSource(t, uint64(port[0])), filepath.Join(t.TempDir(), port+".pcapng"))
	})
	// Pauses last until the next burst, and longer.
	doc = strings.Replace(doc, "detect: 20ms, restore: 10ms", "detect: 5s, restore: 1s", 1)
	doc = strings.Replace(doc, "    telemetry:", "    clock: {controlled: true}\n    telemetry:", 1)
	d, err := New(t.Context(), parse(t, doc), Options{Version: "v1", Source: "test.yaml", Record: t.TempDir(), Logger: slog.New(slog.DiscardHandler)})
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
	rec := d.units[0].recording.rec
	look := func() (steps uint64, at frame.Time) {
		if err := d.engine.Worker(0).Do(func(now frame.Time) { steps, at = rec.Steps(), now }); err != nil {
			t.Fatal(err)
		}
		return steps, at
	}
	type answer struct {
		name        string
		m           proto.Message
		steps       uint64 // of the switch before it, and none while it was asked
		first, last frame.Time
	}
	var seen []answer
	tries := 0
	rate := 0
	for round := range uint64(rounds + 2) {
		through(d, min(round+1, rounds)*3*burst/2)
		answers(t, d.Handler(), func(name string, ask func() proto.Message) {
			for {
				tries++
				a := answer{name: name}
				a.steps, a.first = look()
				a.m = ask()
				steps, _ := look()
				if a.last = d.engine.Now(); steps == a.steps {
					seen = append(seen, a)
					return
				}
			}
		})
		rate += 10
		_, err := d.Edit(func(c *config.Config) error {
			return c.Switches[0].Ports[0].Rate.UnmarshalText(fmt.Appendf(nil, "%dMbps", rate))
		}, false)
		if err != nil {
			t.Fatal(err)
		}
	}
	stopped = true
	if err := d.Stop(); err != nil {
		t.Fatal(err)
	}

	p := controltest.Player(t, d.Recordings()[0].File, Rebuild)
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
	first, changed, full := map[string]proto.Message{}, map[string]bool{}, map[string]bool{}
	for _, a := range seen {
		for p.Steps() < a.steps {
			if _, err := p.Step(); err != nil {
				t.Fatal(err)
			}
		}
		from, to := show(a.name, a.first), show(a.name, a.last)
		if bad := controltest.Amid(a.name, a.m, from, to); bad != "" {
			t.Errorf("behind step %d, from %v to %v: %s; the daemon said\n%s\nits replay\n%s", a.steps, a.first.Duration(), a.last.Duration(), bad, protojson.Format(a.m), protojson.Format(from))
		}
		if first[a.name] == nil {
			first[a.name] = a.m
		}
		full[a.name] = full[a.name] || proto.Size(a.m) > 0
		changed[a.name] = changed[a.name] || !proto.Equal(a.m, first[a.name])
	}
	for {
		if _, err = p.Step(); err != nil {
			break
		}
	}
	if !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	for name := range first {
		none := []string{"ListExports", "ListPaths", "ListWorkers"}
		if full[name] == slices.Contains(none, name) {
			t.Errorf("%s: something was shown: %v", name, full[name])
		}
	}
	t.Logf("%d answers of %d were each at one step; those of %d views changed: %v", len(seen), tries, len(changed), changed)
	for _, name := range []string{"ListPorts", "ListQueues", "ListFDB", "ListRoutes", "ListACLs", "ListBuffers", "ListPFC", "ListCounters", "ListPauses", "ListDrops", "ListLimits", "GetConfig"} {
		if !changed[name] {
			t.Errorf("%s did not change", name)
		}
	}
}
