package deter

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gswitch/frame"
	"gswitch/tcp"
)

// replayed compares every packet of a replay with those that left: which, when and
// what they said.
func (w *wires) replayed(t testing.TB, logs []*Log) Result {
	t.Helper()
	var left [2][]departure
	for _, d := range w.left {
		left[d.end] = append(left[d.end], d)
	}
	r, err := Replay(logs, func(s *Step) {
		if s.Kind != Send {
			return
		}
		want := left[s.End][s.ID]
		want.seg.Data = nil
		if want.at != s.At || !reflect.DeepEqual(want.seg, *s.Seg) {
			t.Fatalf("packet %d of end %d: %v %+v, was %v %+v", s.ID, s.End, s.At, *s.Seg, want.at, want.seg)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range logs {
		if int(r.Sent[i]) != len(left[i]) {
			t.Fatalf("end %d sent %d packets, and %d in the replay", i, len(left[i]), r.Sent[i])
		}
	}
	return r
}

// Every packet of a connection that was recorded comes again, at its instant and to
// the bit, with nothing of the network there.
func TestReplay(t *testing.T) {
	for _, control := range []string{"reno", "cubic", "dctcp"} {
		for _, sack := range []bool{true, false} {
			t.Run(fmt.Sprint(control, sack), func(t *testing.T) {
				cfg := config()
				cfg.Control, cfg.SACK, cfg.ECN = control, sack, control == "dctcp"
				cfg.DelayedACK = 2 * ms
				w := newWires(t, cfg, false)
				w.fate = impaired(1, 0.001, 0.01, 0.02)
				for range 5 {
					w.post(2_000_000)
					w.run(w.now + 200*ms)
				}
				w.run(100 * frame.Second)
				w.close()
				w.run(200 * frame.Second)
				if w.done[0] != 5 || w.done[1] != 5 {
					t.Fatalf("%v messages are done", w.done)
				}
				logs := w.logs()
				for range 3 {
					if r := w.replayed(t, logs); r.Checks < 8 {
						t.Errorf("%d hashes were compared", r.Checks)
					}
				}
			})
		}
	}
}

// Losses of acknowledgements and losses of data are two records, each replayed
// exactly, although TCP's own numbers do not distinguish them.
func TestWhichWasLost(t *testing.T) {
	var timeouts [2]uint64
	for from := range 2 {
		w := newWires(t, config(), false)
		w.fate = func(f, k int) fate { return fate{lose: f == from && k >= 3 && k < 6} }
		w.post(20_000)
		w.run(10 * frame.Second)
		w.replayed(t, w.logs())
		timeouts[from] = w.stacks[0].Conn(w.ends[0]).Stats.Retransmitted
	}
	if timeouts[0] == 0 || timeouts[1] != 0 {
		t.Errorf("segments sent again: %v with data lost, and with acknowledgements lost", timeouts)
	}
}

// An end whose peer is not recorded is replayed from its own record.
func TestAlone(t *testing.T) {
	for end := range 2 {
		w := newWires(t, config(), true)
		w.fate = impaired(2, 0.002, 0.01, 0)
		w.post(3_000_000)
		w.run(100 * frame.Second)
		logs := w.logs()
		if _, err := Replay(logs[end:end+1], nil); err != nil {
			t.Errorf("end %d: %v", end, err)
		}
	}
}

// A drop that is put into a record, or taken out, shows within 1,024 packets.
func TestFlippedDropIsFound(t *testing.T) {
	w := newWires(t, config(), false)
	w.fate = impaired(3, 0.002, 0, 0)
	w.post(20_000_000)
	w.run(100 * frame.Second)
	logs := w.logs()
	r := rand.New(rand.NewPCG(9, 9))
	found := 0
	for range 20 {
		l := *logs[1]
		at := flip(t, &l, r.IntN(5000))
		if at < 0 {
			continue
		}
		_, err := Replay([]*Log{logs[0], &l}, nil)
		var d *Diverged
		if !errors.As(err, &d) {
			t.Fatalf("a drop more at event %d: %v", at, err)
		}
		if d.End == 1 && d.Event-at > 6*every || d.Event == 0 {
			t.Errorf("flipped at event %d, found at event %d of end %d", at, d.Event, d.End)
		}
		found++
	}
	if found < 10 {
		t.Errorf("%d records were changed", found)
	}
}

// flip makes the first arrival from an event on that of the packet behind it.
func flip(t *testing.T, l *Log, from int) int {
	t.Helper()
	b, err := l.unpack()
	if err != nil {
		t.Fatal(err)
	}
	var in, out guess
	var raw []byte
	at := -1
	for n := 0; len(b) > 0; n++ {
		var e entry
		if e, b, err = in.read(b); err != nil {
			t.Fatal(err)
		}
		if at < 0 && n >= from && e.kind == Receive && e.arg>>1 == 0 {
			e.arg |= zigzag(1) << 1
			at = n
		}
		raw = out.append(raw, e)
	}
	l.Events = new(Zipper).pack(nil, raw)
	return at
}

// What a record costs.
func TestSize(t *testing.T) {
	w := newWires(t, config(), false)
	w.fate = impaired(4, 0.0005, 0, 0)
	w.post(50_000_000)
	w.run(100 * frame.Second)
	bulk := w.logs()
	w = newWires(t, config(), false)
	const messages = 3000
	r := rand.New(rand.NewPCG(1, 2))
	for range messages {
		w.post(4096)
		w.run(w.now + frame.Time(r.IntN(int(400*us))))
	}
	w.run(100 * frame.Second)
	rpc := w.logs()
	size := func(l []*Log) float64 { return float64(len(l[0].Events) + len(l[1].Events)) }
	perPacket := size(bulk) / float64(bulk[0].Packets+bulk[1].Packets) * 2 // each packet is in both ends' counts
	calls := size(rpc)
	for _, l := range rpc {
		calls -= float64(withoutCalls(t, l))
	}
	t.Logf("bulk %.3f bytes a packet, messages of 4 KB %.1f bytes each, of which their calls are %.1f", perPacket, size(rpc)/messages, calls/messages)
	if calls/messages > 3 {
		t.Errorf("the calls of a message take %.1f bytes", calls/messages)
	}
	if perPacket > 0.5 {
		t.Errorf("bulk traffic takes %.2f bytes a packet", perPacket)
	}
	if each := size(rpc) / messages; each > 15 {
		t.Errorf("a message of 4 KB takes %.1f bytes", each)
	}
}

// withoutCalls is the size of a record without what the application did.
func withoutCalls(t *testing.T, l *Log) int {
	t.Helper()
	b, err := l.unpack()
	if err != nil {
		t.Fatal(err)
	}
	var in, out guess
	var raw, packed []byte
	z, dt := new(Zipper), frame.Time(0)
	for len(b) > 0 {
		var e entry
		if e, b, err = in.read(b); err != nil {
			t.Fatal(err)
		}
		if e.dt += dt; e.kind == Write || e.kind == Read {
			dt = e.dt
			continue
		}
		dt = 0
		if raw = out.append(raw, e); len(raw) >= chunk {
			packed, raw = z.pack(packed, raw), raw[:0]
		}
	}
	return len(z.pack(packed, raw))
}

// Identifications wrap, and what is out of order is distinguished from what is lost.
func TestArrivals(t *testing.T) {
	ids := []uint32{65533, 65534, 65535, 65536, 65537, 65540, 65538, 65541, 65541, 65543}
	r := NewRecorder(Header{Alone: true}, 1<<20, new(Zipper))
	cfg := config()
	r.Dial(0, &cfg, 1)
	r.next = 65533
	for _, id := range ids {
		r.Receive(0, &tcp.Segment{Flags: tcp.ACK}, uint16(id))
	}
	var g guess
	b := r.raw
	p := &player{next: 65533}
	var got, strange []uint32
	for len(b) > 0 {
		e, rest, err := g.read(b)
		if err != nil {
			t.Fatal(err)
		}
		if b = rest; e.kind != Receive {
			continue
		}
		id := p.wants(&e)
		if id != p.next {
			strange = append(strange, id)
		}
		got, p.next = append(got, id), id+1
		if _, b, err = readSegment(b, &p.last); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(ids, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]uint32{65540, 65538, 65541, 65541, 65543}, strange); diff != "" {
		t.Error("entries that are not the next:", diff)
	}
}

// Whatever happens to an end, it is read as it was written.
func TestEntries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOf(rapid.Custom(func(t *rapid.T) entry {
			return entry{Kind(rapid.IntRange(0, int(kinds)-1).Draw(t, "kind")), frame.Time(rapid.Int64Range(0, 1<<rapid.IntRange(1, 49).Draw(t, "bits")).Draw(t, "dt")), rapid.Uint64().Draw(t, "arg") >> rapid.IntRange(0, 63).Draw(t, "shift")}
		})).Draw(t, "entries")
		var w, r guess
		var b []byte
		for _, e := range list {
			b = w.append(b, e)
		}
		for i, e := range list {
			got, rest, err := r.read(b)
			if err != nil || got != e {
				t.Fatalf("entry %d is %+v, was %+v: %v", i, got, e, err)
			}
			b = rest
		}
	})
}

// A record that is full says from when on it is none, and replays until then.
func TestFullRecord(t *testing.T) {
	w := newWires(t, config(), false)
	w.fate = impaired(5, 0.01, 0.2, 0)
	w.recs[1].limit = 3000
	w.post(20_000_000)
	w.run(100 * frame.Second)
	logs := w.logs()
	if logs[1].Lost == 0 || logs[0].Lost != 0 {
		t.Fatalf("records are lost from %v and %v on", logs[0].Lost, logs[1].Lost)
	}
	r, err := Replay(logs, nil)
	if err != nil || !r.Partial || r.Events < 1000 {
		t.Errorf("%+v, %v", r, err)
	}
}

// Files that are cut or changed are refused.
func TestFiles(t *testing.T) {
	w := newWires(t, config(), false)
	w.post(100_000)
	w.run(10 * frame.Second)
	logs := w.logs()
	var b []byte
	for _, l := range logs {
		var err error
		if b, err = l.Append(b); err != nil {
			t.Fatal(err)
		}
	}
	var back []*Log
	for rest := b; len(rest) > 0; {
		l, r, err := ReadLog(rest)
		if err != nil {
			t.Fatal(err)
		}
		back, rest = append(back, l), r
	}
	if diff := cmp.Diff(logs, back); diff != "" {
		t.Error(diff)
	}
	w.replayed(t, back)
	for i := range b {
		bad := append([]byte(nil), b...)
		bad[i] ^= 1 << (i % 8)
		if _, rest, err := ReadLog(bad); err == nil {
			if _, _, err = ReadLog(rest); err == nil {
				t.Fatalf("byte %d was changed, and nobody noticed", i)
			}
		}
		if _, _, err := ReadLog(b[:min(i, len(b)/2-100)]); err == nil {
			t.Fatalf("%d bytes are a record", i)
		}
	}
}

func FuzzReplay(f *testing.F) {
	w := newWires(f, config(), true)
	w.fate = impaired(5, 0.05, 0.1, 0)
	w.post(30_000)
	w.run(10 * frame.Second)
	for _, l := range w.logs() {
		raw, err := l.unpack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw, true)
		f.Add(raw, false)
	}
	f.Fuzz(func(t *testing.T, raw []byte, alone bool) {
		h := Header{Alone: alone, Config: config()}
		pack := func() *Log {
			return &Log{Header: h, Events: new(Zipper).pack(nil, raw)}
		}
		logs := []*Log{pack()}
		if !alone {
			logs = append(logs, pack())
		}
		Replay(logs, nil)            //nolint:errcheck // it must not panic
		Diagnose(logs, DefaultRules) //nolint:errcheck // nor this
	})
}
