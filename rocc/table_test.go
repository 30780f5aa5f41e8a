package rocc

import (
	"testing"

	"pgregory.net/rapid"

	"gswitch/frame"
)

var sampled = []Kind{Aged, AFD, Trap, Bubble}

func keyOf(flow uint64) Key { return Key{Addresses: flow} }

// send shows a table one packet of a flow.
func send(t *Table, flow uint64) {
	if t.Skips() {
		return
	}
	if e := t.Note(uint32(flow*0x9e3779b9), keyOf(flow)); e != nil {
		e.MAC = flow
	}
}

// notified is one period: which flows are notified.
func notified(t *Table) map[uint64]bool {
	list := map[uint64]bool{}
	t.Tick()
	for range t.Len() {
		if e := t.Next(); e != nil {
			list[e.MAC] = true
		}
	}
	return list
}

// check holds the table against itself: entries in use, on a chain and counted
// are the same, and what is remembered of them adds up.
func (t *Table) check(fail func(string, ...any)) {
	used := 0
	for i := range t.entries {
		if t.used[i/64]>>(i%64)&1 == 0 {
			continue
		}
		used++
		if at, ok := t.find(t.entries[i].hash, t.entries[i].key); !ok || at != uint32(i) {
			fail("entry %d is not found", i)
		}
	}
	if used != t.n || used+len(t.free) != len(t.entries) {
		fail("%d in use, %d counted, %d of %d free", used, t.n, len(t.free), len(t.entries))
	}
	if t.kind == AFD {
		held := make([]uint32, len(t.entries))
		for _, s := range t.shadow {
			if t.entries[s.index].life == s.life {
				held[s.index]++
			}
		}
		for i := range held {
			if t.used[i/64]>>(i%64)&1 != 0 && held[i] != t.entries[i].count {
				fail("entry %d counts %d of %d remembered packets", i, t.entries[i].count, held[i])
			}
		}
	}
	if t.kind == Bubble {
		if len(t.order) != t.n {
			fail("%d in order of %d", len(t.order), t.n)
		}
		for r, i := range t.order {
			if t.entries[i].rank != uint32(r) {
				fail("entry %d of rank %d stands at %d", i, t.entries[i].rank, r)
			}
		}
	}
}

// Whatever comes, a table holds no more flows than it may, has each at most
// once, notifies each at most once in a period, and only flows that it saw.
func TestTablesHold(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := TableConfig{Kind: rapid.SampledFrom(sampled).Draw(rt, "kind"), Flows: rapid.IntRange(1, 9).Draw(rt, "flows"), Age: rapid.IntRange(1, 4).Draw(rt, "age"),
			Sample: rapid.IntRange(1, 3).Draw(rt, "sample"), Shadow: rapid.IntRange(1, 12).Draw(rt, "shadow")}
		p := For(40e9)
		tab := NewTable(cfg.With(&p), rapid.Uint64().Draw(rt, "seed"))
		seen := map[uint64]bool{}
		for _, op := range rapid.SliceOfN(rapid.IntRange(0, 24), 0, 400).Draw(rt, "ops") {
			if op < 20 {
				seen[uint64(op)] = true
				send(tab, uint64(op))
			} else {
				n, list := tab.Len(), notified(tab)
				if len(list) > n {
					rt.Fatalf("%d reported %d", len(list), n)
				}
				for f := range list {
					if !seen[f] {
						rt.Fatalf("flow %d is notified and was never seen", f)
					}
				}
			}
			if tab.Len() > cfg.Flows {
				rt.Fatalf("%d flows in a table of %d", tab.Len(), cfg.Flows)
			}
			tab.check(rt.Fatalf)
		}
	})
}

// A flow that fills the queue is found, whatever else comes by: half of the
// packets are of one flow, the others of flows of one packet each.
func TestTablesFindTheLargest(t *testing.T) {
	for _, kind := range sampled {
		p := For(40e9)
		tab := NewTable(TableConfig{Kind: kind, Flows: 64}.With(&p), 1)
		r := frame.NewRand(7)
		periods, found, notices := 0, 0, 0
		for mouse := uint64(1); periods < 500; periods++ {
			for range 200 { // a period of 40 us at 40 Gb/s
				if r.Uint64()&1 == 0 {
					send(tab, 0)
				} else {
					send(tab, mouse)
					mouse++
				}
			}
			list := notified(tab)
			notices += len(list)
			if list[0] {
				found++
			}
		}
		if found < periods*9/10 {
			t.Errorf("%s: the flow of half of the packets is notified in %d of %d periods", kind, found, periods)
		}
		t.Logf("%s: notified in %d of %d periods, %.1f notices in each, %d evicted, %d not taken", kind, found, periods, float64(notices)/float64(periods), tab.Evicted, tab.Full)
	}
}

// With fewer places than large flows each is notified now and then, so that none
// keeps its rate for ever.
func TestSmallTablesTakeTurns(t *testing.T) {
	for _, kind := range sampled {
		p := For(40e9)
		tab := NewTable(TableConfig{Kind: kind, Flows: 8}.With(&p), 1)
		r := frame.NewRand(7)
		turns := map[uint64]int{}
		for range 4000 {
			for range 200 {
				send(tab, r.Uint64()%20)
			}
			for f := range notified(tab) {
				turns[f]++
			}
		}
		for f := range uint64(20) {
			if turns[f] < 40 {
				t.Errorf("%s: flow %d is notified in %d of 4000 periods", kind, f, turns[f])
			}
		}
	}
}

// Tables for elephants notify few others.
func TestTrapsNotifyFewMice(t *testing.T) {
	for _, kind := range []Kind{Trap, Bubble} {
		p := For(40e9)
		tab := NewTable(TableConfig{Kind: kind, Flows: 64}.With(&p), 1)
		r := frame.NewRand(7)
		mice, elephants := 0, 0
		for mouse := uint64(100); mouse < 20_000; {
			for range 200 {
				if f := r.Uint64() % 20; f < 10 { // ten flows of a twentieth each
					send(tab, f)
				} else {
					send(tab, mouse)
					mouse++
				}
			}
			for f := range notified(tab) {
				if f < 10 {
					elephants++
				} else {
					mice++
				}
			}
		}
		t.Logf("%s: %d notices to large flows, %d to small ones", kind, elephants, mice)
		if mice > elephants/5 {
			t.Errorf("%s: %d notices to large flows, %d to small ones", kind, elephants, mice)
		}
	}
}

// A flow that sends no more is forgotten, by every table.
func TestTablesForget(t *testing.T) {
	for _, kind := range sampled {
		p := For(40e9)
		tab := NewTable(TableConfig{Kind: kind, Age: 5, Sample: 1}.With(&p), 1)
		for range 100 {
			for f := range uint64(20) {
				send(tab, f)
			}
		}
		if n := len(notified(tab)); n != 20 {
			t.Errorf("%s: %d of twenty flows are notified", kind, n)
		}
		for range 12 { // five periods, and for Bubble two rounds of five
			notified(tab)
		}
		if tab.Len() != 0 {
			t.Errorf("%s: %d flows are left after twelve periods without packets", kind, tab.Len())
		}
		tab.check(t.Fatalf)
	}
}

// A full aged table gives the place of the flow that sent nothing for longest to a
// new one, and none where all sent in this period.
func TestAgedEvictsTheOldest(t *testing.T) {
	p := For(40e9)
	tab := NewTable(TableConfig{Kind: Aged, Flows: 4}.With(&p), 1)
	for f := range uint64(4) {
		send(tab, f)
	}
	send(tab, 9)
	if tab.Full != 1 || tab.Len() != 4 {
		t.Fatalf("%d refused of a table of %d fresh flows", tab.Full, tab.Len())
	}
	notified(tab)
	for _, f := range []uint64{0, 1, 3} {
		send(tab, f)
	}
	notified(tab)
	send(tab, 9)
	if list := notified(tab); list[2] || !list[9] || !list[0] || !list[1] || !list[3] || tab.Evicted != 1 {
		t.Errorf("notified are %v, %d evicted", list, tab.Evicted)
	}
}

// The share of AFD's memory that a flow has is that of its packets.
func TestAFDCountsShares(t *testing.T) {
	p := For(40e9)
	tab := NewTable(TableConfig{Kind: AFD, Sample: 3, Shadow: 4000}.With(&p), 1)
	r := frame.NewRand(3)
	for range 200_000 {
		f := uint64(0)
		if v := r.Uint64() % 10; v < 3 {
			f = 1
		} else if v < 4 {
			f = 2
		}
		send(tab, f)
	}
	for f, want := range []float64{0.6, 0.3, 0.1} {
		i, ok := tab.find(uint32(uint64(f)*0x9e3779b9), keyOf(uint64(f)))
		if got := float64(tab.entries[i].count) / 4000; !ok || got < want-0.03 || got > want+0.03 {
			t.Errorf("flow %d has %.3f of the memory, want %.1f", f, got, want)
		}
	}
}

// BubbleCache looks at fewer packets where few are enough.
func TestBubbleAdaptsItsSampling(t *testing.T) {
	p := For(40e9)
	tab := NewTable(TableConfig{Kind: Bubble}.With(&p), 1)
	r := frame.NewRand(3)
	run := func(flows, packets, periods int) {
		for range periods {
			for range packets {
				send(tab, r.Uint64()%uint64(flows))
			}
			notified(tab)
		}
	}
	run(2, 400, 400)
	few := tab.gap
	run(100, 400, 400)
	if few < 64 || tab.gap > few/8 {
		t.Errorf("one in %d packets of two flows, one in %d of a hundred", few, tab.gap)
	}
}

func TestTableConfig(t *testing.T) {
	p := For(40e9)
	if c := (TableConfig{Kind: Aged}).With(&p); c.Flows != 400 || c.Age != 10 {
		t.Errorf("%+v", c)
	}
	if c := (TableConfig{Kind: Bubble, Flows: 7, Age: 3}).With(&p); c.Flows != 7 || c.Age != 3 || c.Sample != 8 {
		t.Errorf("%+v", c)
	}
	for _, c := range []TableConfig{{Kind: kinds}, {Flows: -1}, {Flows: MaxFlows + 1}, {Age: -1}, {Sample: maxSample + 1}, {Shadow: -1}} {
		if c.Validate() == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}

func TestTablesAllocateNothing(t *testing.T) {
	for _, kind := range sampled {
		p := For(40e9)
		tab := NewTable(TableConfig{Kind: kind, Flows: 32, Age: 2, Sample: 2, Shadow: 50}.With(&p), 1)
		flow := uint64(0)
		if n := testing.AllocsPerRun(200, func() {
			for range 100 {
				flow++
				send(tab, flow%77)
			}
			tab.Tick()
			for range tab.Len() {
				tab.Next()
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", kind, n)
		}
	}
}

// Each byte is a packet of a flow, or the end of a period.
func FuzzTable(f *testing.F) {
	f.Add(uint8(1), []byte{0, 1, 2, 250, 1, 251})
	f.Add(uint8(3), []byte{7, 7, 7, 200, 201, 202, 203, 204, 205, 255, 255, 255, 8})
	f.Fuzz(func(t *testing.T, how uint8, ops []byte) {
		p := For(40e9)
		tab := NewTable(TableConfig{Kind: sampled[how&3], Flows: 1 + int(how>>2&15), Age: 1 + int(how>>6), Sample: 1 + int(how>>7), Shadow: 5}.With(&p), uint64(how))
		for _, op := range ops {
			if op < 240 {
				send(tab, uint64(op))
			} else {
				notified(tab)
			}
			tab.check(t.Fatalf)
		}
	})
}

// What a packet costs with a hundred flows of which each has its part.
func BenchmarkTable(b *testing.B) {
	var keys [128]Key
	var hashes [128]uint32
	for i := range keys {
		keys[i], hashes[i] = keyOf(uint64(i)), uint32(i)*0x9e3779b9
	}
	for _, kind := range sampled {
		b.Run(kind.String(), func(b *testing.B) {
			p := For(40e9)
			tab := NewTable(TableConfig{Kind: kind}.With(&p), 1)
			i := 0
			for b.Loop() {
				i = (i*5 + 1) & 127
				if !tab.Skips() {
					tab.Note(hashes[i], keys[i])
				}
				if i == 0 {
					tab.Tick()
				}
			}
		})
	}
}
