package collect

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gswitch/frame"
	"gswitch/telemetry"
	"gswitch/telemetry/export"
	"gswitch/telemetry/lossradar"
	"gswitch/wire"
)

// hourOf gives two exporters what the ends of a link report in an hour, in batches of a
// second, and returns how many reports these are, and how many packets the link lost.
func hourOf(t *testing.T, ends [2]*export.Exporter) (reports [2]uint64, lost int) {
	t.Helper()
	timing := lossradar.Timing{Period: frame.Second, Timeout: 200 * frame.Millisecond}
	shape := lossradar.Shape{Cells: 64, Hashes: 3}
	var out [2]*telemetry.Outbox[lossradar.Report]
	for i := range out {
		var v []*lossradar.Report
		for range 8 {
			v = append(v, &lossradar.Report{Digest: lossradar.NewDigest(shape)})
		}
		out[i] = telemetry.NewOutbox(v...)
	}
	up := lossradar.NewUpstream(lossradar.Meter{Port: 1}, timing, out[0], 0)
	down := lossradar.NewDownstream(lossradar.Meter{Port: 1}, timing, out[1])
	n := 0
	for now := frame.Time(0); now < 3600*frame.Second; now += 100 * frame.Millisecond {
		up.Advance(now)
		down.Advance(now)
		for i, o := range out {
			for r := o.Take(); r != nil; r = o.Take() {
				ends[i].Add(telemetry.Report{Kind: lossKind, Node: uint16(i + 1), Body: r.Append(nil)})
				reports[i]++
				r.Reset()
				o.Return(r)
			}
		}
		if now >= 3560*frame.Second {
			continue // the last interval of ten batches is judged before the hour is over
		}
		for range 5 {
			n++
			tag := up.Tag(now)
			s := lossradar.Fields{Src: 0x0a000001, Dst: 0x0a000002, SrcPort: 1, DstPort: 2, ID: uint16(n), Proto: wire.ProtoUDP}.Pack().At(tag.Stamp)
			up.Insert(s)
			if n%97 == 5 {
				lost++
			} else {
				down.Insert(now, tag.Batch, s)
			}
		}
	}
	return reports, lost
}

// An hour of reports waits in two switches, since no collector is there. One that takes
// reports and analyses none gets all of them, and acknowledges them; what analyses them
// comes later still. Nothing is lost, nothing is analysed twice, and every packet that the
// link lost in this hour is named once.
func TestAnHourOfBacklog(t *testing.T) {
	h := openHub(t, t.TempDir(), 128<<20)
	network := line(t)
	began := time.Now().Add(-time.Hour)
	var ends [2]*export.Exporter
	for i, name := range []string{"s1", "s2"} {
		hello := telemetry.Hello{Version: 1, Name: name, Boot: uint64(began.UnixNano()), Nodes: []telemetry.Node{{ID: uint16(i + 1), Name: name, Workers: 1}}}
		ends[i] = export.New(discard, "127.0.0.1:1", 128<<20, hello) // without a listener
		defer ends[i].Close(0)
	}
	made, lost := hourOf(t, ends)
	for i, e := range ends {
		if c := e.Counts(); c.Waiting != made[i] || c.Lost != 0 || made[i] < 3500 {
			t.Fatalf("exporter %d: %+v of %d reports", i+1, c, made[i])
		}
	}
	_, at, _ := h.receiveFor(t, "127.0.0.1:0", network)
	for i, e := range ends {
		e.Change(at, 128<<20, telemetry.Hello{Version: 1, Name: []string{"s1", "s2"}[i], Boot: 1, Nodes: []telemetry.Node{{ID: uint16(i + 1), Name: []string{"s1", "s2"}[i], Workers: 1}}})
	}
	for ; ; time.Sleep(20 * time.Millisecond) {
		a, b := ends[0].Counts(), ends[1].Counts()
		if a.Acknowledged == made[0] && b.Acknowledged == made[1] && a.Lost+b.Lost == 0 {
			break
		}
		if a.Lost+b.Lost > 0 {
			t.Fatalf("%+v, %+v", a, b)
		}
	}
	nc, err := h.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	s, err := Find(t.Context(), nc)
	if err != nil {
		t.Fatal(err)
	}
	reg := prometheus.NewRegistry()
	w := &Workers{Store: s, Network: network, ID: "one", Metrics: NewMetrics(reg), Log: discard}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); w.Run(ctx) }()
	defer func() { stop(); <-done }()
	for ; ; time.Sleep(50 * time.Millisecond) {
		events := named(t, h.store) // which fails if one is there twice
		n := lossesOf(events)
		if int(n) == lost {
			break
		}
		if int(n) > lost {
			t.Fatalf("%d losses are named, of %d", n, lost)
		}
	}
	for ; ; time.Sleep(50 * time.Millisecond) { // which is reported once a second
		n := uint64(counter(t, reg, "gcollect_analysed_reports_total", "lossradar"))
		if n == made[0]+made[1] {
			break
		}
		if n > made[0]+made[1] {
			t.Fatalf("%v reports are analysed, of %d", n, made[0]+made[1])
		}
	}
	for _, problem := range []string{"again", "late", "bad", "different", "full", "foreign"} {
		if n := counter(t, reg, "gcollect_report_problems_total", problem); n != 0 {
			t.Errorf("%v reports are %s", n, problem)
		}
	}
}
