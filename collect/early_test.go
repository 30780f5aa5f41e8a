package collect

import (
	"testing"
	"time"

	"gswitch/frame"
	"gswitch/telemetry/lossradar"
	"gswitch/wire"
)

// A link that loses packets is named when both of its ends have reported the batch: 5 ms
// after that was over, and nowhere else. So is one that
// loses all packets from some instant on, of which its far end reports nothing. The cause
// follows when ten batches are over.
func TestLossyAtOnce(t *testing.T) {
	const passes, over = 300, 400 // ms
	for _, dead := range []bool{false, true} {
		a := NewAnalysis(line(t))
		x, y := newExporter("s1", 1, start), newExporter("s2", 1, start)
		sent, lost, reported, named := 0, 0, uint64(0), uint64(0)
		var slowest, latest time.Duration // of a link after the batch; of a cause after the packet
		for ms := range over {
			now, at := frame.Time(ms)*frame.Millisecond, start.Add(time.Duration(ms)*time.Millisecond)
			for _, o := range []*exporterOf{x, y} {
				o.up.Advance(now)
				o.down.Advance(now)
				o.take()
				b := o.message(t)
				if b == nil {
					continue
				}
				m, err := decode(b)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range a.Add(at, m) {
					if e.Where != "s1>s2" || !e.Known.Equal(at) {
						t.Errorf("at %v: %v", at, e)
					}
					switch e.Kind {
					case Lossy:
						reported += e.Packets
						slowest = max(slowest, e.Known.Sub(e.Until))
					case Loss:
						named += e.Packets
						latest = max(latest, e.Known.Sub(e.At))
					}
				}
			}
			if ms >= passes {
				continue
			}
			for range 3 {
				sent++
				s := lossradar.Fields{Src: 0x0a000001, Dst: 0x0a000002, SrcPort: 1, DstPort: uint16(sent % 5), ID: uint16(sent), Proto: wire.ProtoUDP}.Pack()
				tag := x.up.Tag(now)
				s = s.At(tag.Stamp)
				x.up.Insert(s)
				switch {
				case dead && ms >= 100 && ms < 200, !dead && ms >= 50 && sent%100 == 7:
					lost++
				default:
					y.down.Insert(now, tag.Batch, s)
				}
			}
		}
		// The timeout is 2 ms. The far end of a dead link might still report a batch for a batch
		// and its timeout, which the collector takes for two more.
		want := 5 * time.Millisecond
		if dead {
			want = 4 * time.Duration(period)
		}
		if slowest > want || slowest == 0 {
			t.Errorf("dead %v: a link is named %v after a batch, want %v", dead, slowest, want)
		}
		if latest < 100*time.Millisecond || lost == 0 || int(reported) != lost || int(named) > lost {
			t.Errorf("of %d packets %d are reported at once, %d later, by %v", lost, reported, named, latest)
		}
	}
}
