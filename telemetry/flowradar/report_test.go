package flowradar

import (
	"errors"
	"reflect"
	"runtime"
	"testing"

	"gswitch/frame"
)

// report is one with n flows of 1 to 20 packets in both kinds of table.
func report(n int, p Params, slot uint64, node uint16) *Report {
	r := &Report{Node: node, Slot: slot, From: frame.Time(slot) * frame.Millisecond, To: frame.Time(slot+1) * frame.Millisecond, Slots: 1, Encoded: New(p), Exact: NewExact(n)}
	rng := generator(slot + 1)
	for range n {
		k, t := random(rng), Traffic{Packets: 1 + rng.Uint32N(20), Bytes: rng.Uint64N(1 << 40), In: uint16(rng.UintN(8)), Out: uint16(rng.UintN(8))}
		r.Encoded.Update(k, t)
		r.Exact.Update(k, t)
		r.Packets += uint64(t.Packets)
		r.Bytes += t.Bytes
	}
	return r
}

// What is read decodes as what was written, and an empty report is small.
func TestReportsOnTheWire(t *testing.T) {
	p := Fixed(1000, Alone, 5)
	for _, n := range []int{0, 1, 300, 1000} {
		r := report(n, p, 9, 3)
		b := r.Append(nil)
		got, err := Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 && len(b) > 200 {
			t.Errorf("nothing takes %d bytes", len(b))
		}
		if !reflect.DeepEqual(whole(got.Image), r.Encoded) || got.Exact.Len() != n || got.Packets != r.Packets || got.Slot != 9 || got.Node != 3 || got.To != r.To {
			t.Fatalf("%d flows: %+v", n, got)
		}
		for i := range n {
			if got.Exact.At(i) != r.Exact.At(i) {
				t.Fatalf("flow %d is %+v", i, got.Exact.At(i))
			}
		}
		for _, cut := range []int{0, 10, len(b) / 2, len(b) - 1} {
			if _, err := Parse(b[:cut]); !errors.Is(err, ErrReport) {
				t.Errorf("%d of %d bytes: %v", cut, len(b), err)
			}
		}
	}
	r := report(0, p, 0, 0)
	r.Encoded.Params.Cells = 1 << 25 // more than a report may make a collector reserve
	if _, err := Parse(r.Append(nil)); !errors.Is(err, ErrReport) {
		t.Errorf("many cells: %v", err)
	}
}

// whole is the flowset that an image is of.
func whole(m *Image) *Flowset {
	f := New(m.Params)
	f.Packets, f.Flows = m.Packets, m.Flows
	for w := range f.filter {
		f.filter[w] = m.word(uint32(w))
	}
	for i, c := range m.cells.v {
		f.cells[m.cells.place(uint32(i))] = c
	}
	return f
}

// What a report takes goes by its bytes, whatever table it announces, and the same comes
// out of it as of the table itself, with flows of others that were never there, too.
func TestLittleOfALargeTable(t *testing.T) {
	for _, c := range []struct {
		p     Params
		flows int
		least int // of the bytes of the table, for each of the report
	}{
		{Params{FilterBits: 1 << 27, FilterHashes: 8, Cells: 1 << 21, CellHashes: 4, Blocked: true, Seed: 5}, 0, 500_000},
		{Params{FilterBits: 1 << 27, FilterHashes: 8, Cells: 1 << 21, CellHashes: 4, Blocked: true, Seed: 5}, 100, 2000},
		{Params{FilterBits: 1 << 27, FilterHashes: 8, Cells: 1 << 21, CellHashes: 4, Seed: 5}, 100, 2000},
		{Params{FilterBits: 1 << 16, FilterHashes: 8, Cells: 1200, CellHashes: 4, Blocked: true, Seed: 5}, 1000, 1},
	} {
		f, truth := filled(generator(11), c.p, c.flows)
		b := (&Report{Slots: 1, Encoded: f}).Append(nil)
		if n := (len(f.filter)*8 + len(f.cells)*cellMemory) / len(b); n < c.least {
			t.Fatalf("the table has %d bytes for each of the report, at least %d are wanted", n, c.least)
		}
		took := ^uint64(0)
		var table *Table
		for range 3 { // others may take memory meanwhile
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r, err := Parse(b)
			if err != nil {
				t.Fatal(err)
			}
			table = r.Image.Single()
			runtime.ReadMemStats(&after)
			took = min(took, after.TotalAlloc-before.TotalAlloc)
		}
		if most := uint64(4096 + 16*len(b)); took > most {
			t.Errorf("a report of %d bytes takes %d to decode, at most %d are wanted", len(b), took, most)
		}
		want := Single(f)
		same := func() {
			t.Helper()
			if !reflect.DeepEqual(table.Records, want.Records) || table.Done() != want.Done() || table.FlowsDone() != want.FlowsDone() {
				t.Errorf("%d flows: %d records, want %d; done %t, want %t", c.flows, len(table.Records), len(want.Records), table.Done(), want.Done())
			}
			for k := range truth {
				if !table.original.Has(k) {
					t.Fatalf("the filter does not know %v", k)
				}
			}
		}
		same()
		for _, x := range []*Table{table, want} {
			x.borrow(random(generator(12)), 7)
		}
		same()
		if s, w := Counters(table), Counters(want); s != w {
			t.Errorf("%d flows: counters %+v, want %+v", c.flows, s, w)
		}
	}
}

// Reports of anything are refused or decode, in the memory that their length allows.
func FuzzParse(f *testing.F) {
	small := Params{FilterBits: 512, FilterHashes: 4, Cells: 30, CellHashes: 3, Seed: 3, Blocked: true}
	for _, n := range []int{0, 1, 20, 60} {
		f.Add(report(n, small, 1, 1).Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Parse(b)
		if err != nil {
			return
		}
		if r.Image != nil && r.Image.Cells+r.Image.FilterBits > 1<<16 {
			return
		}
		sent := *r
		if r.Image != nil {
			sent.Encoded, sent.Image = whole(r.Image), nil
		}
		if again, err := Parse(sent.Append(nil)); err != nil || r.Image != nil && !reflect.DeepEqual(whole(again.Image), sent.Encoded) || !reflect.DeepEqual(again.Exact, r.Exact) {
			t.Fatalf("%+v is read again as %+v, %v", r, again, err)
		}
		c := NewCollector([]Node{{ID: r.Node, Shards: 1}}, 0)
		c.Add(r)
		for _, s := range c.Flush() {
			NewWatcher([][]End{nil}).Note(0, s)
		}
	})
}

// toEach are eight ports that lead to one switch.
func toEach(sw int) (v []End) {
	for p := range uint16(8) {
		v = append(v, End{sw, p})
	}
	return v
}

// pairOf is a collector of two neighbours.
func pairOf() *Collector {
	return NewCollector([]Node{{ID: 1, Shards: 1, Ports: toEach(1)}, {ID: 2, Shards: 1, Ports: toEach(0)}}, 5*frame.Millisecond)
}

// With more flows than a table can be decoded with, two switches that the same flows
// cross decode them together; nothing that was never there comes out, however many
// there are.
func TestCollectorHelps(t *testing.T) {
	for _, c := range []struct {
		flows              int
		alone, all, counts bool
	}{{950, true, true, true}, {1200, false, true, true}, {3000, false, false, false}} {
		col := pairOf()
		for node := range uint16(2) {
			col.Add(report(c.flows, Fixed(1000, Alone, uint64(node+1)<<8), 4, node+1))
		}
		v := col.Advance(0)
		if len(v) != 1 {
			t.Fatalf("%d slots", len(v))
		}
		for i := range v[0].Switches {
			w := &v[0].Switches[i]
			found, right, garbage := w.Compare()
			if (w.Alone == c.flows) != c.alone || w.Complete != c.all || w.Counters != c.counts || (found == c.flows) != c.all || c.counts && right != c.flows || garbage != 0 || !w.Known {
				t.Errorf("%d flows: %d alone, %d found, %d with counters, %d never there, complete %t, counters %t", c.flows, w.Alone, found, right, garbage, w.Complete, w.Counters)
			}
		}
	}
}

// A slot of which a report is missing is reported when none can come any more, and says
// of whom nothing is known; one that comes too late changes nothing.
func TestCollectorWaits(t *testing.T) {
	c, p := pairOf(), Fixed(64, Alone, 1)
	c.Add(report(3, p, 1, 1))
	c.Add(report(3, p, 2, 1))
	c.Add(report(3, p, 2, 2))
	c.Add(report(3, p, 2, 9))
	if v := c.Advance(6 * frame.Millisecond); len(v) != 0 {
		t.Fatalf("slot %d before its time", v[0].Number)
	}
	v := c.Advance(7 * frame.Millisecond)
	if len(v) != 2 || v[0].Number != 1 || !v[0].Switches[0].Known || v[0].Switches[1].Known || !v[1].Switches[1].Known {
		t.Fatalf("%+v", v)
	}
	c.Add(report(3, p, 1, 2))
	merged := report(3, p, 3, 1)
	merged.Slots = 2
	c.Add(merged)
	c.Add(report(0, p, 3, 2))
	v = c.Flush()
	if c.Late != 1 || c.Unknown != 1 || len(v) != 1 || v[0].Switches[0].Known || !v[0].Switches[1].Known {
		t.Errorf("%d late, %d strange, %+v", c.Late, c.Unknown, v)
	}
}

// Workers of a switch report by themselves: a flow that comes to two of them, as one that loops
// does, counts in both tables, which XOR would have it cancel in one. Nothing is known of the
// switch before all of its workers have reported.
func TestWorkersReportByThemselves(t *testing.T) {
	for _, all := range []bool{true, false} {
		c := NewCollector([]Node{{ID: 1, Shards: 2}}, 5*frame.Millisecond)
		first := report(40, Fixed(64, Alone, 1), 1, 1)
		second := report(50, Fixed(64, Alone, 2), 1, 1)
		second.Shard = 1
		c.Add(first)
		if all {
			c.Add(second)
		}
		w := &c.Flush()[0].Switches[0]
		if w.Known != all {
			t.Errorf("known %t with all reports %t", w.Known, all)
		}
		if !all {
			continue
		}
		seen := map[Key]int{}
		for _, r := range w.Records {
			seen[r.Key]++
		}
		twice := 0
		for _, n := range seen {
			if n == 2 {
				twice++
			}
		}
		if found, right, garbage := w.Compare(); len(seen) != 50 || twice != 40 || found != 50 || right != 50 || garbage != 0 {
			t.Errorf("%d flows, %d at both; %d found, %d right, %d never there", len(seen), twice, found, right, garbage)
		}
	}
}

// Packets that are put first and counted later are counted as those that are counted at once.
func TestPutIsUpdate(t *testing.T) {
	g := generator(11)
	put, update := NewExact(50), NewExact(50)
	keys := make([]Key, 60) // ten find no place
	for i := range keys {
		keys[i] = random(g)
	}
	for i := range 1000 {
		k, out, bytes := keys[g.IntN(len(keys))], uint16(g.IntN(3)), uint32(g.IntN(1500))
		put.Put(k, 1, out, bytes)
		update.Update(k, Traffic{Packets: 1, Bytes: uint64(bytes), In: 1, Out: out})
		if i%150 == 0 {
			put.Flush()
		}
	}
	put.Flush()
	if put.Len() != update.Len() || put.Overflow != update.Overflow || put.Overflow == 0 {
		t.Fatalf("%d flows, %d packets without place; want %d and %d", put.Len(), put.Overflow, update.Len(), update.Overflow)
	}
	for i := range put.Len() {
		if put.At(i) != update.At(i) {
			t.Errorf("flow %d: %+v, want %+v", i, put.At(i), update.At(i))
		}
	}
}
