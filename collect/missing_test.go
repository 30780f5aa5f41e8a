package collect

import (
	"bytes"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gswitch/frame"
	"gswitch/telemetry"
	"gswitch/telemetry/lossradar"
	"gswitch/wire"
)

// A digest of the far end of a link that its exporter lost, or that went with it, is no batch
// of which nothing arrived: what became of the batch is unknown. If no report names it as
// missing, all packets of the batch are lost.
func TestMissingDigestIsNoLoss(t *testing.T) {
	const dropped = 12 // batch
	says := func(h *telemetry.Hello, sequence uint64) { h.Missed = sequence }
	for _, c := range []struct {
		name    string
		say     func(h *telemetry.Hello, sequence uint64)
		lost    bool
		batches int // dropped
		every   int // ms, a message
	}{
		{"nobody says so", func(*telemetry.Hello, uint64) {}, true, 1, 1},
		{"missed", says, false, 1, 1},
		{"begun anew", func(h *telemetry.Hello, _ uint64) { h.Boot += 1000 }, false, 1, 1}, // 1 µs later
		// An exporter without memory drops the newest, so that what waited is from before it.
		{"missed in the middle of a message", says, false, 8, 250},
	} {
		a := NewAnalysis(line(t))
		x, y := newExporter("s1", 1, start), newExporter("s2", 1, start)
		known := map[string]int{}
		for ms := range 1100 {
			now, at := frame.Time(ms)*frame.Millisecond, start.Add(time.Duration(ms)*time.Millisecond)
			for _, o := range []*exporterOf{x, y} {
				o.up.Advance(now)
				o.down.Advance(now)
				for r := o.out.Take(); r != nil; r = o.out.Take() {
					o.next++
					if r.Meter.Down && int(r.Batch) >= dropped && int(r.Batch) < dropped+c.batches {
						c.say(&o.hello, o.next)
					} else {
						rep := telemetry.Report{Kind: lossKind, Node: 1, Boot: o.hello.Boot, Sequence: o.next, Body: r.Append(nil)}
						o.kept = rep.Append(o.kept)
					}
					r.Reset()
					o.out.Return(r)
				}
				if ms%c.every != 0 {
					continue
				}
				b := o.message(t)
				if b == nil {
					continue
				}
				m, err := decode(b)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range a.Add(at, m) {
					known[e.Kind] += int(e.Packets)
				}
			}
			if ms < 400 {
				s := lossradar.Fields{Src: 0x0a000001, Dst: 0x0a000002, SrcPort: 1, DstPort: 2, ID: uint16(ms), Proto: wire.ProtoUDP}.Pack()
				tag := x.up.Tag(now)
				s = s.At(tag.Stamp)
				x.up.Insert(s)
				y.down.Insert(now, tag.Batch, s)
			}
		}
		s := a.Stats()
		switch lost, unknown := s[Stat{linkLost, "s1>s2"}], s[Stat{linkUnknown, "s1>s2"}]; {
		case c.lost && (lost != 10 || known[Lossy] != 10 || unknown != 0),
			!c.lost && (lost != 0 || len(known) != 0 || unknown != uint64(c.batches)):
			t.Errorf("%s: %d packets are lost, %d batches unknown, events are %v", c.name, lost, unknown, known)
		}
		if sent := s[Stat{linkSent, "s1>s2"}]; sent < uint64(400-10*c.batches) {
			t.Errorf("%s: of 400 packets %d were judged", c.name, sent)
		}
	}
}

// Every lane is notified of a gap in the numbers of an exporter's reports: with its next message,
// over the connection of then or a later one.
func TestGapsAreKept(t *testing.T) {
	h := openHub(t, t.TempDir(), 1<<24)
	hello := telemetry.Hello{Version: telemetry.HelloVersion, Name: "s1", Boot: 7, Missed: 99}
	m, at, _ := h.receive(t, "127.0.0.1:0")
	send := func(numbers ...uint64) {
		var b bytes.Buffer
		if err := hello.Write(&b); err != nil {
			t.Fatal(err)
		}
		c := dial(t, at, b.Bytes())
		defer c.Close()
		for _, n := range numbers {
			// One at a time: each has its own message.
			r := telemetry.Report{Kind: []string{"a", "b", "d"}[n%3], Boot: 7, Sequence: n}
			if _, err := c.Write(r.Append(nil)); err != nil {
				t.Fatal(err)
			}
			var ack [8]byte
			if _, err := c.Read(ack[:]); err != nil {
				t.Fatal(err)
			}
		}
	}
	send(1, 2, 4, 5)
	send(6, 7)
	send(10)
	send(10, 11)
	want := map[uint64]uint64{1: 0, 2: 0, 4: 3, 5: 3, 6: 3, 7: 3, 10: 9, 11: 9}
	seen := 0
	h.eachMessage(t, func(_ time.Time, got *message) {
		for _, r := range got.reports {
			if missed, ok := want[r.Sequence]; !ok || got.Missed != missed {
				t.Errorf("report %d: missed are those up to %d, want %d", r.Sequence, got.Missed, missed)
			}
			seen++
		}
	})
	if seen != len(want) {
		t.Errorf("%d reports are in the stream, want %d", seen, len(want))
	}
	reg := prometheus.NewRegistry()
	reg.MustRegister(m.missing)
	if n := counter(t, reg, "gcollect_missing_reports_total", ""); n != 3 {
		t.Errorf("%v reports are counted as missing, want that between 2 and 4, and those between 7 and 10 of two connections", n)
	}
}
