package run

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"gswitch/dataplane"
	"gswitch/fabric"
	"gswitch/fabric/lab"
	"gswitch/fabric/scenario"
	"gswitch/fabric/view"
)

const pairs = `version: 1
name: a-run-pairs
topology:
  generate: star(3)
  classes: {host: {rate: 100Gbps, delay: 1us}}
pfc: {enabled: true}
workload:
  - {group: burst, kind: incast, from: [h1..h2], to: [h3], size: 50KB}
measure: {sample: 1us, bin: 10us, queues: [s1:h3]}
duration: 1ms
until: done
variants:
  - {name: hpcc, set: {hosts.cc: hpcc}}
  - {name: none, set: {hosts.cc: none}}
`

// both are the engines in real time. Only netns needs root.
func both(t *testing.T, f func(t *testing.T, o Options)) {
	t.Run(Wire, func(t *testing.T) { f(t, Options{On: Wire}) })
	t.Run(Netns, func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("needs root for network namespaces and AF_XDP")
		}
		f(t, Options{On: Netns, Live: Live{Wires: raiseWires}})
	})
}

func raiseWires(ctx context.Context, p *fabric.Plan) (Wires, error) {
	w, err := lab.RaiseWires(ctx, p, func(string, ...any) {})
	if err != nil {
		return nil, err
	}
	return w, nil
}

// counted are wires that say when they are closed.
type counted struct {
	Wires
	closed *int
}

func (c counted) Close() error { *c.closed++; return c.Wires.Close() }

// A scenario sends on real frames what it sends in virtual time, and ends when
// its flows do.
func TestRealTime(t *testing.T) {
	want := execute(t, pairs, Options{Jobs: 1})
	both(t, func(t *testing.T, o Options) {
		raised, closed := 0, 0
		if up := o.Live.Wires; up != nil {
			o.Live.Wires = func(ctx context.Context, p *fabric.Plan) (Wires, error) {
				raised++
				w, err := up(ctx, p)
				return counted{w, &closed}, err
			}
		}
		o.Live.Dilation, o.Live.Poll, o.Jobs = 2000, dataplane.Sleep, 4
		f := execute(t, pairs, o)
		if raised != closed || raised > 1 {
			t.Errorf("wires were raised %d times and removed %d times", raised, closed)
		}
		for i := range f.Runs {
			r, s := &f.Runs[i], &want.Runs[i]
			if r.Engine != o.On || r.Digest != "" || r.Timing == nil || r.Timing.Scale != 2000 || r.Name != s.Name {
				t.Errorf("%s: engine %q, digest %q, timing %+v", r.Name, r.Engine, r.Digest, r.Timing)
			}
			for _, name := range []string{"flows_total", "flows_unfinished_total", "data_frames_total", "retransmissions_total", "drops_total", "timeouts_total", "faults_total"} {
				if r.Values[name] != s.Values[name] {
					t.Errorf("%s: %s is %v, in virtual time %v", r.Name, name, r.Values[name], s.Values[name])
				}
			}
			for k, w := range r.Flows {
				if v := s.Flows[k]; w.Src != v.Src || w.Bytes != v.Bytes || w.Ideal != v.Ideal || w.FCT < w.Ideal {
					t.Errorf("%s: flow %+v, in virtual time %+v", r.Name, w, v)
				}
			}
			if r.VirtualTime >= 1e-3 {
				t.Errorf("%s: did not end with its flows, at %v s", r.Name, r.VirtualTime)
			}
		}
	})
}

// A run that is interrupted ends at once, without its time being over.
func TestInterruptRealTime(t *testing.T) {
	both(t, func(t *testing.T, o Options) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		long := strings.Replace(strings.Replace(pairs, "size: 50KB", "size: 50GB", 1), "duration: 1ms", "duration: 1h", 1)
		s := load(t, long, scenario.Options{Only: []string{"none"}})
		var closed int
		if up := o.Live.Wires; up != nil {
			o.Live.Wires = func(ctx context.Context, p *fabric.Plan) (Wires, error) {
				w, err := up(ctx, p)
				return counted{w, &closed}, err
			}
		}
		o.Live.Poll = dataplane.Sleep
		o.Watch = func(src view.Source) {
			go func() {
				src.Sample(ctx) // it is under way
				cancel()
			}()
		}
		if _, err := Scenario(ctx, s, o); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		if o.On == Netns && closed != 1 {
			t.Errorf("wires were removed %d times", closed)
		}
	})
}

// What does not exist on real frames is said before anything is raised.
func TestRealTimeRefuses(t *testing.T) {
	for _, k := range []struct {
		o          Options
		with, want string
	}{
		{Options{On: "ns-3"}, "", `no engine "ns-3"`},
		{Options{On: Netns}, "", "Live.Wires"},
		{Options{On: Wire, Live: Live{Workers: 2}}, "clock: {scheme: sync-messages}\n", "--workers 1"},
		{Options{On: Wire}, "faults: [{kind: storm, link: h1:s1, every: 1us}]\n", "faults[0]: a storm fault exists in virtual time only"},
		{Options{On: Wire}, "hosts: {sizes: {data: 48}}\n", "hosts.sizes"},
	} {
		_, err := Scenario(context.Background(), load(t, pairs+k.with, scenario.Options{}), k.o)
		if err == nil || !strings.Contains(err.Error(), k.want) {
			t.Errorf("%s %s: %v, want %q", k.o.On, k.with, err, k.want)
		}
	}
}
