package view

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"gswitch/config"
	"gswitch/fabric"
	"gswitch/fabric/vnet"
	"gswitch/frame"
	"gswitch/units"
)

const us = frame.Microsecond

// incast builds a leaf-spine network in which six hosts send to one.
func incast(t testing.TB) *vnet.Network {
	t.Helper()
	spec := fabric.Spec{Name: "small", Generate: "leaf-spine(2, 2, 4)", Classes: map[string]fabric.Class{
		fabric.ClassHost:   {Rate: units.Rate(10e9), Delay: units.Duration(time.Microsecond)},
		fabric.ClassFabric: {Rate: units.Rate(10e9), Delay: units.Duration(time.Microsecond)},
	}}
	top, err := spec.Build()
	if err != nil {
		t.Fatal(err)
	}
	n, err := vnet.Build(&vnet.Config{Topology: top, Seed: 1, Overhead: 24, Buffer: config.NetworkBuffer{Size: 400_000}, PFC: vnet.PFC{On: true},
		ECN: vnet.ECN{On: true, ECN: config.ECN{KMin: 20_000, KMax: 60_000, PMax: 0.5}}})
	if err != nil {
		t.Fatal(err)
	}
	for h := 1; h < 7; h++ {
		if err := n.StartFlow(0, &vnet.Flow{ID: uint64(100 + h), Group: h % 2, Src: h, Dst: 0, Bytes: 2_000_000}); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// next runs the network until a sample has been taken, and returns it.
func next(t *testing.T, n *vnet.Network, s *NetworkSource, step frame.Time) *Sample {
	t.Helper()
	type result struct {
		s   *Sample
		err error
	}
	got := make(chan result)
	go func() {
		v, err := s.Sample(context.Background())
		got <- result{v, err}
	}()
	for !s.cast.wanted.Load() {
		time.Sleep(100 * time.Microsecond)
	}
	if err := n.Engine.Run(n.Engine.Now() + step); err != nil {
		t.Fatal(err)
	}
	r := <-got
	if r.err != nil {
		t.Fatal(r.err)
	}
	return r.s
}

// What a sample says is what the network says at that instant.
func TestSamplesAgreeWithTheNetwork(t *testing.T) {
	const every = 20 * us
	n := incast(t)
	s := Network(n, NetworkOptions{Title: "test", Groups: []string{"even", "odd"}, Every: every, End: 1000 * us})
	defer s.Close()
	var queue, sent, before map[End]uint64
	n.Engine.Every(every, every, func(frame.Time) {
		before, queue, sent = sent, map[End]uint64{}, map[End]uint64{}
		for sw := range n.Switches {
			for p := range n.Ports(sw) {
				at := End{n.SwitchNode(sw), p}
				queue[at], sent[at] = n.Queue(vnet.Port{Switch: sw, Port: p}), n.Sent(vnet.Port{Switch: sw, Port: p})
			}
		}
	})
	deepest, moved, paused := uint64(0), 0, false
	for k := 1; k <= 20; k++ {
		v := next(t, n, s, every)
		if want := (frame.Time(k) * every).Seconds(); v.Time != want {
			t.Fatalf("sample %d is of %v, want %v", k, v.Time, want)
		}
		if len(v.Ports) != 8+2*(4+2)+2*2 {
			t.Fatalf("%d ports", len(v.Ports))
		}
		for _, p := range v.Ports {
			if !p.Up {
				t.Errorf("port %v is down", p.End)
			}
			q, is := queue[p.End]
			if !is { // a host's
				paused = paused || p.Halted > 0
				continue
			}
			if p.Queue != q || p.Peak < q {
				t.Errorf("at %v port %v: queue %d, peak %d, the network says %d", v.Time, p.End, p.Queue, p.Peak, q)
			}
			if want := float64(sent[p.End]-before[p.End]) * 8 / every.Seconds(); p.Sent < want-1 || p.Sent > want+1 {
				t.Errorf("at %v port %v: sends %v, the network says %v", v.Time, p.End, p.Sent, want)
			}
			deepest = max(deepest, p.Peak)
		}
		if v.Open != 6 || len(v.Flows) != 6 || v.Ended != 0 || v.Drops != n.Lost() {
			t.Fatalf("at %v: %d flows, %d listed, %d ended, %d drops", v.Time, v.Open, len(v.Flows), v.Ended, v.Drops)
		}
		for i, f := range v.Flows {
			if f.Goodput > 0 {
				moved++
			}
			if i > 0 && f.Goodput > v.Flows[i-1].Goodput {
				t.Errorf("flow %d moves more than the one before", f.ID)
			}
			src, _ := n.HostByName(n.Topology.Nodes[f.Src].Name)
			if f.ID != uint64(100+src) || f.Group != []string{"even", "odd"}[src%2] || f.Bytes != 2_000_000 || f.Rate <= 0 {
				t.Errorf("flow %+v", f)
			}
			if last := f.Path[len(f.Path)-1]; n.Topology.Peer(last.Node, last.Port).Node != f.Dst {
				t.Errorf("the path %v of flow %d does not end at %d", f.Path, f.ID, f.Dst)
			}
		}
	}
	if deepest < 10_000 || moved < 60 || !paused {
		t.Errorf("no incast was seen: deepest queue %d, %d flows moved, paused %v", deepest, moved, paused)
	}
}

// The same network gives the same samples.
func TestSamplesRepeat(t *testing.T) {
	take := func() *Sample {
		n := incast(t)
		s := Network(n, NetworkOptions{Every: 50 * us})
		defer s.Close()
		next(t, n, s, 50*us)
		return next(t, n, s, 50*us)
	}
	if a, b := encode(t, take()), encode(t, take()); a != b {
		t.Errorf("samples differ:\n%s\n%s", a, b)
	}
}

// Without a viewer nothing is sampled; the last sample is taken in any case,
// and is given to all who ask from then on.
func TestNobodyLooks(t *testing.T) {
	n := incast(t)
	s := Network(n, NetworkOptions{Every: 10 * us})
	if err := n.Engine.Run(500 * us); err != nil {
		t.Fatal(err)
	}
	if s.parts[0].ready.Load() != nil || s.cast.last != nil {
		t.Error("samples were taken that nobody asked for")
	}
	s.Close()
	s.Close()
	for range 2 {
		v, err := s.Sample(context.Background())
		if !errors.Is(err, io.EOF) || v == nil || !v.Done || v.Time != (500*us).Seconds() {
			t.Fatalf("%+v, %v", v, err)
		}
	}
}

func TestWaitingEndsWithItsContext(t *testing.T) {
	s := Network(incast(t), NetworkOptions{Every: us})
	defer s.Close()
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if v, err := s.Sample(ctx); v != nil || !errors.Is(err, context.Canceled) {
		t.Fatalf("%v, %v", v, err)
	}
}

// Pace keeps virtual time from running away.
func TestPace(t *testing.T) {
	n := incast(t)
	s := Network(n, NetworkOptions{Pace: 0.01})
	defer s.Close()
	began := time.Now()
	if err := n.Engine.Run(2000 * us); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 140*time.Millisecond {
		t.Errorf("2 ms at 10 ms a second took %v", took)
	}
}

// A sample of flows that were seen before allocates nothing in the engine.
func TestGatherAllocatesNothing(t *testing.T) {
	n := incast(t)
	s := Network(n, NetworkOptions{Every: frame.Second})
	defer s.Close()
	if err := n.Engine.Run(100 * us); err != nil {
		t.Fatal(err)
	}
	p := &s.parts[0]
	s.gather(n.Engine.Now(), p, p.own)
	if k := testing.AllocsPerRun(50, func() { s.gather(n.Engine.Now(), p, p.own) }); k != 0 {
		t.Errorf("%v allocations", k)
	}
}

func BenchmarkGather(b *testing.B) {
	n := incast(b)
	s := Network(n, NetworkOptions{Every: frame.Second})
	defer s.Close()
	if err := n.Engine.Run(100 * us); err != nil {
		b.Fatal(err)
	}
	p := &s.parts[0]
	for b.Loop() {
		s.gather(n.Engine.Now(), p, p.own)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(p.own.ports)), "ns/port")
}
