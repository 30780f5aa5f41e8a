package deter

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
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

// A drop that is put into the record of an end, or taken out, shows before an end has sent 1,024
// packets more than it had then. (An acknowledgement more, just before one that says the same and more,
// changes no packet.)
func TestFlippedDropIsFound(t *testing.T) {
	w := newWires(t, config(), false)
	w.fate = impaired(3, 0.002, 0, 0)
	w.post(20_000_000)
	w.run(100 * frame.Second)
	logs := w.logs()
	if _, err := Replay(logs, nil); err != nil {
		t.Fatal(err)
	}
	was := [2][]entry{entries(t, logs[0]), entries(t, logs[1])}
	for _, c := range []struct {
		name string
		end  int
		flip func(events []entry, from int) ([]entry, int)
	}{{"an acknowledgement lost more", 0, dropMore}, {"a drop more", 1, dropMore}, {"a drop less", 1, dropLess}} {
		r := rand.New(rand.NewPCG(9, 9))
		found := 0
		for range 20 {
			events, at := c.flip(slices.Clone(was[c.end]), r.IntN(12_000))
			if at < 0 {
				continue
			}
			var when frame.Time
			for _, e := range events[:at] {
				when += e.dt
			}
			l := *logs[c.end]
			l.Events = packed(events)
			changed := slices.Clone(logs)
			changed[c.end] = &l
			_, err := Replay(changed, nil)
			var d *Diverged
			if !errors.As(err, &d) {
				t.Fatalf("%s at event %d: %v", c.name, at, err)
			}
			late := int(d.Sent) - sentBy(was[d.End], when)
			if late > every || d.End == c.end && (late < 0 || d.Event < at) {
				t.Errorf("%s at event %d of end %d is found at event %d of end %d, %d packets later", c.name, at, c.end, d.Event, d.End, late)
			}
			found++
		}
		if found < 15 {
			t.Errorf("%s: %d records were changed", c.name, found)
		}
	}
}

// entries are the events of a record.
func entries(t *testing.T, l *Log) (v []entry) {
	t.Helper()
	b, err := l.unpack()
	if err != nil {
		t.Fatal(err)
	}
	var g guess
	for len(b) > 0 {
		var e entry
		if e, b, err = g.read(b); err != nil {
			t.Fatal(err)
		}
		v = append(v, e)
	}
	return v
}

func packed(v []entry) []byte {
	var g guess
	var raw []byte
	for _, e := range v {
		raw = g.append(raw, e)
	}
	return new(Zipper).pack(nil, raw)
}

// sentBy is how many packets left up to an instant, in microseconds since the beginning.
func sentBy(v []entry, when frame.Time) (n int) {
	for _, e := range v {
		if when -= e.dt; when < 0 {
			break
		}
		if e.kind == Send {
			n++
		}
	}
	return n
}

// arrivalFrom is the first arrival from an event on that is so far from the next packet; -1: none.
func arrivalFrom(v []entry, from int, off int64) int {
	for i := from; i < len(v); i++ {
		if v[i].kind == Receive && unzigzag(v[i].arg>>1) == off {
			return i
		}
	}
	return -1
}

// dropMore takes the arrival of a packet out: the next one is further away by it.
func dropMore(v []entry, from int) ([]entry, int) {
	i := arrivalFrom(v, from, 0)
	if i < 0 {
		return nil, -1
	}
	k := arrivalFrom(v, i+1, 0)
	if k < 0 {
		return nil, -1
	}
	v[k].arg += zigzag(1) << 1
	v[i+1].dt += v[i].dt
	return slices.Delete(v, i, i+1), i
}

// dropLess lets a packet arrive that was lost, just before the one behind it.
func dropLess(v []entry, from int) ([]entry, int) {
	i := arrivalFrom(v, from, 1)
	if i < 0 {
		return nil, -1
	}
	v[i].arg -= zigzag(1) << 1
	lost := entry{Receive, v[i].dt, 0}
	v[i].dt = 0
	return slices.Insert(v, i, lost), i
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

// What was lost follows from what arrived and how many were sent: gaps, and at the tail all that is behind
// the last arrival. A packet is as far from the one before it as the coding says, and one further.
func TestArrivalsOfTheDissertation(t *testing.T) {
	far := func(ids []uint32) (deltas []int64, got []uint32) {
		r := NewRecorder(Header{}, 1<<20, new(Zipper))
		cfg := config()
		r.Dial(0, &cfg, 1)
		r.next = ids[0]
		for _, id := range ids {
			r.Receive(0, &tcp.Segment{Flags: tcp.ACK}, uint16(id))
		}
		p := &player{next: ids[0]}
		for _, e := range entries(t, r.Log()) {
			if e.kind != Receive {
				continue
			}
			id := p.wants(&e)
			if id != p.next {
				deltas = append(deltas, unzigzag(e.arg>>1)+1)
			}
			got, p.next = append(got, id), id+1
		}
		return deltas, got
	}
	ids := []uint32{1, 2, 3, 6, 4, 7, 7, 9}
	deltas, got := far(ids)
	if diff := cmp.Diff([]int64{3, -2, 3, 0, 2}, deltas) + cmp.Diff(ids, got); diff != "" {
		t.Error(diff)
	}
	for sent, want := range map[uint32][]uint32{9: {5, 8}, 11: {5, 8, 10, 11}} {
		var lost []uint32
		for id := uint32(1); id <= sent; id++ {
			if !slices.Contains(got, id) {
				lost = append(lost, id)
			}
		}
		if diff := cmp.Diff(want, lost); diff != "" {
			t.Errorf("of %d packets: %s", sent, diff)
		}
	}
	if deltas, _ := far([]uint32{65534, 65535, 65536, 65537}); len(deltas) != 0 {
		t.Errorf("identifications that wrap: %v", deltas)
	}
}

// A replay has each packet that was lost, in both directions, and those behind which nothing came.
func TestEveryLossIsKnown(t *testing.T) {
	w := newWires(t, config(), false)
	random, tail := impaired(11, 0.01, 0.02, 0), false
	var lost [2][]int
	w.fate = func(from, k int) fate {
		f := random(from, k)
		if f.lose = f.lose || tail && from == 0; f.lose {
			lost[from] = append(lost[from], k)
		}
		return f
	}
	w.post(3_000_000)
	w.run(100 * frame.Second)
	tail = true
	behind := w.count[0]
	w.post(5000)
	w.run(w.now + frame.Second)
	var sent, got [2]map[int]bool
	for i := range sent {
		sent[i], got[i] = map[int]bool{}, map[int]bool{}
	}
	if _, err := Replay(w.logs(), func(s *Step) {
		switch s.Kind {
		case Send:
			sent[s.End][int(s.ID)] = true
		case Receive, Accept:
			got[1-s.End][int(s.ID)] = true
		}
	}); err != nil {
		t.Fatal(err)
	}
	for from := range sent {
		var missing []int
		for id := range len(sent[from]) {
			if !got[from][id] {
				missing = append(missing, id)
			}
		}
		if diff := cmp.Diff(lost[from], missing); diff != "" || len(missing) < 5 {
			t.Errorf("lost from end %d: %s", from, diff)
		}
	}
	if last := lost[0][len(lost[0])-1]; last != w.count[0]-1 || w.count[0]-behind < 4 {
		t.Errorf("of %d packets the last that is lost is %d, and %d are at the tail", w.count[0], last, w.count[0]-behind)
	}
}

// Which came first, the application, a packet or the timer, and how often in a row, is read as it was.
func TestOrderOfSteps(t *testing.T) {
	r := NewRecorder(Header{}, 1<<20, new(Zipper))
	cfg := config()
	r.Dial(0, &cfg, 1)
	r.Write(1000, 10)
	for id := range uint16(3) {
		r.Receive(2000, &tcp.Segment{Flags: tcp.ACK}, id)
	}
	r.Advance(3000)
	r.Receive(3000, &tcp.Segment{Flags: tcp.ACK}, 3)
	type run struct {
		Kind Kind
		N    int
	}
	var runs []run
	for _, e := range entries(t, r.Log()) {
		if n := len(runs); n > 0 && runs[n-1].Kind == e.kind {
			runs[n-1].N++
		} else {
			runs = append(runs, run{e.kind, 1})
		}
	}
	if diff := cmp.Diff([]run{{Dial, 1}, {Write, 1}, {Receive, 3}, {Advance, 1}, {Receive, 1}, {check, 1}, {ended, 1}}, runs); diff != "" {
		t.Error(diff)
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
