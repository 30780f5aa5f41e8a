package deter

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"hash/fnv"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"gswitch/frame"
	"gswitch/tcp/stack"
)

// A record is replayed a hundred times, on however many processors and whatever else
// they do: the same packets, in the same order, at the same instants.
func TestReplayedAHundredTimes(t *testing.T) {
	w := newWires(t, config(), false)
	w.fate = impaired(7, 0.002, 0.02, 0.05)
	w.post(1_000_000)
	w.run(100 * frame.Second)
	w.close()
	w.run(200 * frame.Second)
	logs := w.logs()
	w.replayed(t, logs)

	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	var stop atomic.Bool
	defer stop.Store(true)
	go func() { // other work, that makes garbage
		for b := []byte(nil); !stop.Load(); b = append([]byte(nil), make([]byte, 1+len(b)%65536)...) {
			runtime.Gosched()
		}
	}()
	var first uint64
	for i := range 100 {
		runtime.GOMAXPROCS(1 + i%4)
		h := fnv.New64a()
		packets := 0
		if _, err := Replay(logs, func(s *Step) {
			if s.Kind != Send {
				return
			}
			packets++
			var b []byte
			for _, v := range []uint64{uint64(s.End), uint64(s.At), uint64(s.ID), uint64(s.Seg.Seq), uint64(s.Seg.Ack), uint64(s.Seg.Len), uint64(s.Seg.Window), uint64(s.Seg.Flags)} {
				b = binary.AppendUvarint(b, v)
			}
			h.Write(b)
		}); err != nil {
			t.Fatalf("replay %d: %v", i, err)
		}
		if i == 0 {
			first = h.Sum64()
		}
		if h.Sum64() != first || packets != len(w.left) {
			t.Fatalf("replay %d is another one: %d packets, %d were sent", i, packets, len(w.left))
		}
	}
}

// What replays connections has no network: neither switches nor links are part of a
// program that does nothing else.
func TestReplayNeedsNoNetwork(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	var own []string
	for p := range strings.FieldsSeq(string(out)) {
		if rest, ours := strings.CutPrefix(p, "gswitch/"); ours {
			own = append(own, rest)
		}
	}
	if got := strings.Join(own, " "); got != "frame wire tcp deter" {
		t.Errorf("the replay needs %s", got)
	}
}

// A record of bulk traffic takes at most 3.5 % of what the headers of its packets take with
// their times, compressed.
func TestSizeBesideATrace(t *testing.T) {
	w := newWires(t, config(), false)
	w.fate = impaired(4, 0.0005, 0, 0)
	w.post(20_000_000)
	w.run(100 * frame.Second)
	var z bytes.Buffer
	trace, _ := flate.NewWriter(&z, flate.DefaultCompression)
	var b []byte
	for i, d := range w.left { // 8 bytes of time and 40 of headers, with checksums
		b = binary.BigEndian.AppendUint64(b[:0], uint64(d.at))
		b = append(b, 0x45, 0, byte(d.seg.Len>>8), byte(d.seg.Len), byte(i>>8), byte(i), 0x40, 0, 64, 6, 0, 0, 10, 0, 0, byte(1+d.end), 10, 0, 0, byte(2-d.end))
		b = binary.BigEndian.AppendUint16(b, uint16(40000+d.end))
		b = binary.BigEndian.AppendUint16(b, uint16(40001-d.end))
		b = binary.BigEndian.AppendUint32(b, d.seg.Seq)
		b = binary.BigEndian.AppendUint32(b, d.seg.Ack)
		b = append(b, 0x50, byte(d.seg.Flags), byte(d.seg.Window>>8), byte(d.seg.Window))
		sum := uint32(d.seg.Seq>>16 + d.seg.Seq&0xffff + d.seg.Ack>>16 + d.seg.Ack&0xffff)
		b = binary.BigEndian.AppendUint16(b, ^uint16(sum+sum>>16))
		trace.Write(append(b, 0, 0)) //nolint:errcheck // a buffer takes all
	}
	trace.Close() //nolint:errcheck // and all that is left
	logs := w.logs()
	record := len(logs[0].Events) + len(logs[1].Events)
	each := float64(z.Len()) / float64(len(w.left))
	share := float64(record) / float64(z.Len())
	t.Logf("%d packets: a trace of headers takes %.1f bytes each, a record %.2f: %.2f %%", len(w.left), each, float64(record)/float64(len(w.left)), 100*share)
	if share > 0.035 {
		t.Errorf("a record takes %.1f %% of a trace", 100*share)
	}
}

// A connection without and with a recorder, per packet.
func BenchmarkConnection(b *testing.B) {
	for _, recorded := range []bool{false, true} {
		name := "off"
		if recorded {
			name = "on"
		}
		b.Run(name, func(b *testing.B) {
			packets := uint64(0)
			for packets < uint64(b.N) {
				w := connect(b, config(), false, 0, func(w *wires, end int) stack.Tap {
					if recorded {
						return w.recs[end]
					}
					return nil
				})
				w.post(20_000_000)
				w.run(100 * frame.Second)
				packets += uint64(w.count[0] + w.count[1])
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(packets), "ns/packet")
		})
	}
}
