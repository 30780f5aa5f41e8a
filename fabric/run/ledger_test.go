package run

import (
	"bytes"
	"context"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gswitch/fabric/live"
	"gswitch/fabric/measure"
	"gswitch/fabric/pauses"
	"gswitch/fabric/results"
	"gswitch/fabric/scenario"
	"gswitch/fabric/vnet"
	"gswitch/frame"
)

// tee passes to a recorder at once, and to a ledger for later.
type tee struct {
	*measure.Recorder
	l       *ledger
	numbers map[int]int // of the ledger, by the recorder's
}

func (t *tee) Start(now frame.Time, group int, event uint32, src, dst string, bytes uint64, ideal frame.Time) int {
	number := t.Recorder.Start(now, group, event, src, dst, bytes, ideal)
	t.numbers[number] = t.l.Start(now, group, event, src, dst, bytes, ideal)
	return number
}

func (t *tee) Done(now frame.Time, number, group int, event uint32, fct, rtt frame.Time) {
	t.Recorder.Done(now, number, group, event, fct, rtt)
	t.l.Done(now, t.numbers[number], group, event, fct, rtt)
}

func (t *tee) Retrieved(now frame.Time, number, group int, event uint32, fct frame.Time) {
	t.Recorder.Retrieved(now, number, group, event, fct)
	t.l.Retrieved(now, t.numbers[number], group, event, fct)
}

func (t *tee) Repaired(now frame.Time, number, group int, retransmissions, timeouts uint32) {
	t.Recorder.Repaired(now, number, group, retransmissions, timeouts)
	t.l.Repaired(now, t.numbers[number], group, retransmissions, timeouts)
}

func (t *tee) Open(now frame.Time, id uint64, group int, name string) {
	t.Recorder.Open(now, id, group, name)
	t.l.Open(now, id, group, name)
}

func (t *tee) Ended(id, bytes uint64) {
	t.Recorder.Ended(id, bytes)
	t.l.Ended(id, bytes)
}

// What is all late, by several processes and out of order, makes the same
// results as what a recorder gets when it happens.
func TestLedger(t *testing.T) {
	s := load(t, strings.Replace(incast, "cc: true", "rtt: true, links: [hosts, leaf2:h8], warmup: 20us", 1), scenario.Options{})
	r := &s.Runs[0]
	n, err := network(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	rec, ports := recorder(n, r)
	both := &tee{rec, &ledger{}, map[int]int{-1: -1}}
	traffic, err := newTraffic(context.Background(), n, here{n}, both, r, "")
	if err != nil {
		t.Fatal(err)
	}
	all := [2]*summary{{Timing: &live.ProcessTiming{}}, {Timing: &live.ProcessTiming{}}} // of two processes
	traffic.listen(rec)
	n.OnRTT(func(now frame.Time, c vnet.Conn, rtt frame.Time) {
		rec.RTT(now, uint64(c), rtt)
		all[c%2].RTTs = append(all[c%2].RTTs, sampledRTT{now, c, rtt})
	})
	traffic.begin()
	sample, bin, end := frame.Time(r.Doc.Measure.Sample), frame.Time(r.Doc.Measure.Bin), frame.Time(r.Doc.Duration)
	n.Engine.Every(sample, sample, func(now frame.Time) {
		rec.QueueSample(now, func(i int) uint64 {
			b := n.Queue(ports.queues[i])
			all[i%2].Queues = append(all[i%2].Queues, sampledQueue{int64(now / sample), i, b})
			return b
		})
	})
	n.Engine.Every(bin, bin, func(now frame.Time) {
		rec.LinkSample(now, func(i int) uint64 {
			b := ports.links[i]()
			// Each process has a part of what several links carry together.
			all[0].Sent = append(all[0].Sent, sampledLink{int64(now / bin), i, b / 3})
			all[1].Sent = append(all[1].Sent, sampledLink{int64(now / bin), i, b - b/3})
			return b
		})
		rec.GoodputSample(now, func(id uint64) uint64 {
			b := traffic.acknowledged(id)
			all[id%2].Acked = append(all[id%2].Acked, sampledConn{int64(now / bin), vnet.Conn(id), b})
			return b
		})
	})
	if err := n.Engine.Run(end); err != nil {
		t.Fatal(err)
	}
	rec.Close(end)
	// What happened at one instant is reported in its order, the rest in another.
	slices.SortStableFunc(both.l.entries, func(a, b entry) int { return int(a.at%7 - b.at%7) })
	for _, a := range all {
		if err := a.check(r.Topology, len(ports.queues), len(ports.links)); err != nil {
			t.Fatal(err)
		}
	}
	late, _ := recorder(n, r)
	both.l.replay(late, all[:], sample, bin, end, false)
	var want, got results.Run
	rec.Result(&want)
	late.Result(&got)
	if len(want.Flows) < 20 || want.Values["ack_rtt_p50_seconds"] == 0 || want.Values["queue_max_bytes"] == 0 || want.Values["link_bps"] == 0 {
		t.Fatalf("there is too little to compare: %d flows, %v", len(want.Flows), want.Values)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateNaNs()); diff != "" {
		t.Error(diff)
	}
}

// A run is over at the first sample after the last of its flows.
func TestLedgerEnds(t *testing.T) {
	s := load(t, pairs, scenario.Options{})
	n, err := network(&s.Runs[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	rec, _ := recorder(n, &s.Runs[0])
	var l ledger
	a := l.Start(0, 0, 0, "h1", "h3", 1000, 1)
	b := l.Start(0, 0, 0, "h2", "h3", 1000, 1)
	l.Done(12_300, b, 0, 0, 12_300, 12_300)
	l.Done(9_000, a, 0, 0, 9_000, 9_000) // its process was slower to report
	l.replay(rec, nil, frame.Microsecond, 10*frame.Microsecond, frame.Millisecond, true)
	if started, open := rec.Flows(); rec.Closed() != 13_000 || started != 2 || open != 0 {
		t.Errorf("over at %d with %d of %d flows open", rec.Closed(), open, started)
	}
}

// A summary that cannot be is refused.
func TestAccountCheck(t *testing.T) {
	topo := load(t, pairs, scenario.Options{}).Runs[0].Topology
	for _, a := range []summary{
		{Queues: []sampledQueue{{1, 2, 5}}}, {Queues: []sampledQueue{{1, -1, 5}}}, {Sent: []sampledLink{{1, 1, 5}}}, {Sent: []sampledLink{{1, -1, 5}}},
		{Sent: []sampledLink{{1, 0, 5}, {2, 0, 4}}},
		{Waits: []pauses.Wait{{At: pauses.End{Node: "h99"}}}}, {Waits: []pauses.Wait{{At: pauses.End{Node: "h1", Port: 1}}}}, {Waits: []pauses.Wait{{At: pauses.End{Node: "h1", Port: -1}}}},
	} {
		a.Timing = new(live.ProcessTiming)
		if a.check(topo, 2, 1) == nil {
			t.Errorf("%+v is taken", a)
		}
	}
	if err := new(summary).check(topo, 1, 1); err == nil {
		t.Error("a summary without times is taken")
	}
}

// So is a pause.
func TestPauseCheck(t *testing.T) {
	topo := load(t, pairs, scenario.Options{}).Runs[0].Topology
	h1 := pauses.End{Node: "h1"}
	good := pauses.Pause{By: h1, Of: h1, Class: 7, From: 1, To: 1, Causes: []pauses.Cause{{Port: h1}}}
	if err := checkPause(topo, &good); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(p *pauses.Pause){
		"by":     func(p *pauses.Pause) { p.By.Node = "nobody" },
		"of":     func(p *pauses.Pause) { p.Of.Port = 9 },
		"cause":  func(p *pauses.Pause) { p.Causes = []pauses.Cause{{Port: pauses.End{Node: "h1", Port: -1}}} },
		"class":  func(p *pauses.Pause) { p.Class = 8 },
		"before": func(p *pauses.Pause) { p.To = 0.5 },
		"NaN":    func(p *pauses.Pause) { p.From = math.NaN() },
		"never":  func(p *pauses.Pause) { p.To = math.Inf(1) },
	} {
		p := good
		spoil(&p)
		if checkPause(topo, &p) == nil {
			t.Errorf("%s: %+v is taken", name, p)
		}
	}
}

// Whatever comes over a socket, it is a value or an error.
func FuzzPipe(f *testing.F) {
	sc, err := scenario.Parse("t.yaml", []byte(pairs), scenario.Options{})
	if err != nil {
		f.Fatal(err)
	}
	topo := sc.Runs[0].Topology
	for _, v := range []any{
		&setup{Name: "h1", Own: []bool{true}, Ends: [][]wireEnd{{{"a", "b"}}}},
		&order{Open: &opening{Serial: 1, Dst: 1}}, &order{Post: &posting{Serial: 1, Bytes: 10}}, &order{Begin: 1}, &order{End: true},
		&report{Events: []event{{What: sent, Serial: 1}}}, &report{Last: &summary{Queues: []sampledQueue{{1, 0, 5}}}}, &report{Error: "x"},
		&report{Pauses: []pauses.Pause{{By: pauses.End{Node: "h1"}, Causes: []pauses.Cause{{Bytes: 1}}}}},
	} {
		var b bytes.Buffer
		if err := newPipe(&b).send(v); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, v := range []any{new(setup), new(order), new(report)} {
			p := newPipe(struct {
				io.Reader
				io.Writer
			}{bytes.NewReader(data), io.Discard})
			if err := p.read(v); err != nil {
				continue
			}
			if n, ok := v.(*report); ok {
				if n.Last != nil {
					_ = n.Last.check(topo, 1, 1)
				}
				for i := range n.Pauses {
					_ = checkPause(topo, &n.Pauses[i])
				}
			}
			var again bytes.Buffer
			if err := newPipe(&again).send(v); err != nil {
				t.Errorf("%+v was read and cannot be written: %v", v, err)
			}
		}
	})
}
