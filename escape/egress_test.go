package escape

import (
	"testing"

	"pgregory.net/rapid"

	"gswitch/frame"
	"gswitch/wire"
)

var flowA = wire.FlowID{Addrs: 0x0a0000010a000002, Ports: 0xc00012b7, Proto: 17}

func config(slots, perFlow int) Config {
	return Config{Slots: slots, Flows: 8, PerFlow: perFlow, Reclaim: 10 * frame.Microsecond}
}

// chain is n1, the switch that makes tokens, with n2 and n3 above it: the
// egress port of each by which flow A leaves, which it entered by port 1.
func chain(slots int) (n1, n2, n3 *Egress) {
	v := [3]*Egress{}
	for i := range v {
		v[i] = NewEgress(config(slots, slots))
		v[i].Note(7, flowA, 1, 3)
	}
	return v[0], v[1], v[2]
}

func yes(uint16, uint8) bool { return true }
func no(uint16, uint8) bool  { return false }

func (e *Egress) want(t *testing.T, who string, free int) {
	t.Helper()
	if e.Free() != free {
		t.Fatalf("%s has %d places, want %d (%d kept, %d taken)", who, e.Free(), free, e.kept, e.taken)
	}
}

// A token passes n2 and finds a frame at n3, which passes n2 and n1.
func TestAccountsOfThreeSwitches(t *testing.T) {
	n1, n2, n3 := chain(2)
	tok, ok := n1.Offer(0, yes)
	if !ok || tok != (Token{flowA, 1, 1}) {
		t.Fatal(tok, ok)
	}
	n1.want(t, "n1", 1)
	tok, ok = n2.Pass(0, 7, tok.Flow, tok.Hops, yes)
	if !ok || tok.Hops != 2 {
		t.Fatal(tok, ok)
	}
	n2.want(t, "n2", 1)
	n3.Hit()
	n3.want(t, "n3", 2)
	for _, n := range []*Egress{n2, n1} {
		if !n.Arrive(0, 7, flowA) {
			t.Fatal("no place")
		}
		n.want(t, "on the way", 1)
		n.Leave(false)
	}
	n1.want(t, "n1", 2)
	n2.want(t, "n2", 2)
	n3.want(t, "n3", 2)
}

// The algorithm as it is printed has the switch that extracts a frame also
// gain a place, and the count of hops fall one switch early, so that the
// origin's place is lost. Where a switch that kept none is asked for one, it
// has none to give.
func TestExtractionTakesNoPlace(t *testing.T) {
	n1, n2, n3 := chain(2)
	tok, _ := n1.Offer(0, yes)
	n2.Pass(0, 7, tok.Flow, tok.Hops, yes)
	if n3.Arrive(0, 7, flowA) {
		t.Fatal("the switch that extracts keeps no place for the frame")
	}
	if n3.Free() != 2 || n3.Counts().Strays != 1 {
		t.Fatalf("%d places, %+v", n3.Free(), n3.Counts())
	}
}

// A token finds a frame at the next switch.
func TestAccountsOfTwoSwitches(t *testing.T) {
	n1, n2, _ := chain(2)
	n1.Offer(0, yes)
	n2.Hit()
	n1.want(t, "n1", 1)
	n2.want(t, "n2", 2)
	n1.Arrive(0, 7, flowA)
	n1.Leave(false)
	n1.want(t, "n1", 2)
}

// Without a place at n2 the token ends there; n1 gets its place back by time,
// and only once.
func TestReclaim(t *testing.T) {
	n1, n2, _ := chain(2)
	for range 2 {
		n2.Offer(0, yes)
	}
	n1.Offer(5, yes)
	if _, ok := n2.Pass(5, 7, flowA, 1, yes); ok {
		t.Fatal("passed on without a place")
	}
	if c := n2.Counts(); c.Dropped != 1 || c.Forwarded != 0 {
		t.Fatalf("%+v", c)
	}
	period := n1.cfg.Reclaim
	if n1.Due() != 5+period {
		t.Fatal(n1.Due())
	}
	n1.Reclaim(4 + period)
	n1.want(t, "n1", 1)
	n1.Reclaim(5 + period)
	n1.want(t, "n1", 2)
	n1.Reclaim(5 + 2*period)
	n1.want(t, "n1", 2)
	if n1.Due() != frame.Never || n1.Counts().Reclaimed != 1 {
		t.Fatalf("%v %+v", n1.Due(), n1.Counts())
	}
	// The frame comes after all.
	if n1.Arrive(5+3*period, 7, flowA) {
		t.Fatal("a place that was given back is there")
	}
	n1.want(t, "n1", 2)
}

// No token for a flow that may not have one, more than PerFlow, or without a
// place; flows take turns.
func TestOffer(t *testing.T) {
	e := NewEgress(config(3, 2))
	if _, ok := e.Offer(0, yes); ok {
		t.Fatal("a token for no flow")
	}
	a, b := flowA, flowA
	b.Ports++
	e.Note(1, a, 1, 3)
	e.Note(2, b, 2, 3)
	if _, ok := e.Offer(0, no); ok {
		t.Fatal("a token that may not be")
	}
	first, _ := e.Offer(0, yes)
	second, _ := e.Offer(0, yes)
	third, _ := e.Offer(0, yes)
	if first.Flow == second.Flow || third.Flow != first.Flow {
		t.Fatal("no turns", first, second, third)
	}
	if _, ok := e.Offer(0, yes); ok || e.Free() != 0 {
		t.Fatal("a token without a place")
	}
	e = NewEgress(config(9, 2))
	e.Note(1, a, 1, 3)
	for range 2 {
		e.Offer(0, yes)
	}
	if _, ok := e.Offer(0, yes); ok {
		t.Fatal("more tokens of a flow than may be out")
	}
	if _, ok := e.Pass(0, 1, a, 1, yes); ok {
		t.Fatal("or passed on")
	}
}

// A flow that leaves by another port gets no token here, keeps the places of
// those that are out until they are reclaimed, and is one like any other when it
// comes back.
func TestRetire(t *testing.T) {
	e := NewEgress(config(4, 4))
	e.Note(7, flowA, 1, 3)
	e.Offer(0, yes)
	e.Retire(7, flowA)
	if _, ok := e.Offer(0, yes); ok {
		t.Fatal("a token for a flow that left")
	}
	if _, ok := e.Pass(0, 7, flowA, 1, yes); ok {
		t.Fatal("or passed on")
	}
	e.Each(func(uint32, wire.FlowID, uint16, uint8) { t.Fatal("a flow that left is listed") })
	e.want(t, "with a token out", 3)
	e.Reclaim(e.cfg.Reclaim)
	e.want(t, "reclaimed", 4)
	if _, ok := e.Offer(1<<40, yes); ok {
		t.Fatal("a token for a flow that left, after a while")
	}
	e.Note(7, flowA, 1, 3)
	if _, ok := e.Offer(1<<40, yes); !ok {
		t.Fatal("no token for a flow that came back")
	}
}

func TestPassRefuses(t *testing.T) {
	e := NewEgress(config(4, 4))
	e.Note(1, flowA, 1, 3)
	other := flowA
	other.Proto = 6
	for name, ok := range map[string]bool{
		"unknown flow":     second(e.Pass(0, 1, other, 1, yes)),
		"other hash":       second(e.Pass(0, 2, flowA, 1, yes)),
		"open upstream":    second(e.Pass(0, 1, flowA, 1, no)),
		"as far as can be": second(e.Pass(0, 1, flowA, MaxHops, yes)),
	} {
		if ok {
			t.Error(name)
		}
	}
	if e.Counts().Dropped != 4 || e.Free() != 4 {
		t.Fatalf("%+v", e.Counts())
	}
}

func second(_ Token, ok bool) bool { return ok }

// Places are conserved, whatever happens: free, kept and taken make up all,
// kept ones are the tokens that are out, and a switch gives no more than it
// has.
func TestPlacesProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := config(rapid.IntRange(1, 6).Draw(t, "slots"), rapid.IntRange(1, 4).Draw(t, "per flow"))
		cfg.Flows = rapid.IntRange(1, 6).Draw(t, "flows")
		e := NewEgress(cfg)
		key := func() (uint32, wire.FlowID) {
			i := rapid.Uint32Range(0, 9).Draw(t, "flow")
			return i % 4, wire.FlowID{Addrs: 1, Ports: i, Proto: 17} // colliding hashes
		}
		out, retired := map[wire.FlowID]int{}, map[wire.FlowID]bool{}
		taken, parked, now := 0, 0, frame.Time(0)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0:
				h, k := key()
				e.Note(h, k, uint16(k.Ports%3), 3)
				delete(retired, k)
			case 6:
				free := e.Free() - parked
				if got := e.Borrow(); got != (free > 0) {
					t.Fatalf("borrowed: %v with %d free places", got, free)
				} else if got {
					taken++
				}
			case 8:
				if taken > 0 && e.Park() {
					taken, parked = taken-1, parked+1
				} else if taken > 0 && parked < cfg.Slots {
					t.Fatalf("not parked, with %d that are", parked)
				}
			case 9:
				h, k := key()
				e.Request(h, k, uint16(k.Ports%3), 3)
				delete(retired, k)
			case 7:
				h, k := key()
				e.Retire(h, k)
				if e.table.find(h, k) != none {
					retired[k] = true
				}
			case 1:
				if tok, ok := e.Offer(now, func(in uint16, _ uint8) bool { return in != 2 }); ok {
					if retired[tok.Flow] {
						t.Fatal("a token for a flow that left")
					}
					if tok.In == 2 || uint32(tok.In) != tok.Flow.Ports%3 || tok.Hops != 1 {
						t.Fatalf("%+v", tok)
					}
					out[tok.Flow]++
				}
			case 2:
				h, k := key()
				if tok, ok := e.Pass(now, h, k, 3, yes); ok {
					if retired[k] {
						t.Fatal("a token passed on for a flow that left")
					}
					if tok.Flow != k || tok.Hops != 4 {
						t.Fatalf("%+v", tok)
					}
					out[k]++
				}
			case 3:
				h, k := key()
				if got := e.Arrive(now, h, k); got != (out[k] > 0) {
					t.Fatalf("a place for a frame: %v with %d tokens out", got, out[k])
				} else if got {
					out[k]--
					taken++
				}
			case 4:
				if taken > 0 {
					e.Leave(false)
					taken--
				} else if parked > 0 {
					e.Leave(true)
					parked--
				}
			case 5:
				now += frame.Time(rapid.IntRange(0, 20000).Draw(t, "wait"))
				before := e.Counts().Reclaimed
				e.Reclaim(now)
				sum := 0
				for i := range e.table.flows[:e.table.n] {
					sum += int(e.table.flows[i].out)
				}
				if before < e.Counts().Reclaimed {
					for i := range e.table.flows[:e.table.n] {
						out[e.table.flows[i].key] = int(e.table.flows[i].out)
					}
				}
				if sum != e.kept {
					t.Fatalf("%d tokens out, %d places kept", sum, e.kept)
				}
			}
			sum := 0
			for _, n := range out {
				sum += n
				if n > cfg.PerFlow {
					t.Fatalf("%d tokens of a flow", n)
				}
			}
			if sum != e.Kept() || taken != e.Taken() || parked != e.Parked() || parked > cfg.Slots || e.Free() < 0 || e.Free()+e.kept+e.taken != cfg.Slots {
				t.Fatalf("%d out, %d taken: free %d, kept %d, taken %d of %d", sum, taken, e.Free(), e.kept, e.taken, cfg.Slots)
			}
			e.checkLists(t)
		}
		e.Reclaim(now + cfg.Reclaim)
		if e.Free() != cfg.Slots-taken {
			t.Fatalf("%d places after all tokens were reclaimed", e.Free())
		}
	})
}

// checkLists walks the lists of the flow table.
func (e *Egress) checkLists(t *rapid.T) {
	tb := &e.table
	n, last := 0, none
	for i := tb.newest; i != none; i = tb.flows[i].next {
		if tb.flows[i].prev != last {
			t.Fatal("order by age")
		}
		if tb.find(tb.flows[i].hash, tb.flows[i].key) != i {
			t.Fatal("a flow cannot be found")
		}
		last, n = i, n+1
	}
	if n != tb.n || tb.oldest != last {
		t.Fatalf("%d flows of %d", n, tb.n)
	}
	waiting := 0
	for i := tb.first; i != none; i = tb.flows[i].wnext {
		if tb.flows[i].out == 0 || tb.flows[i].wnext != none && tb.flows[tb.flows[i].wnext].sent < tb.flows[i].sent {
			t.Fatal("order of those with tokens out")
		}
		waiting++
	}
	for i := range tb.flows[:tb.n] {
		if tb.flows[i].out > 0 {
			waiting--
		}
	}
	if waiting != 0 {
		t.Fatalf("%d flows too many with tokens out", waiting)
	}
}

func TestValidate(t *testing.T) {
	d := Default()
	if err := d.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, f := range []func(*Config){
		func(c *Config) { c.Slots = 0 }, func(c *Config) { c.Flows = 1 << 20 },
		func(c *Config) { c.PerFlow = -1 }, func(c *Config) { c.Reclaim = 1 }, func(c *Config) { c.Reclaim = MaxReclaim + 1 },
	} {
		c := Default()
		if f(&c); c.Validate() == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}

func TestNoAllocation(t *testing.T) {
	e := NewEgress(Default())
	i := uint32(0)
	if n := testing.AllocsPerRun(2000, func() {
		i++
		k := wire.FlowID{Ports: i % 400}
		e.Note(k.Ports, k, 1, 3)
		e.Offer(frame.Time(i)*100, yes)
		e.Arrive(frame.Time(i)*100, k.Ports, k)
		e.Reclaim(frame.Time(i) * 100)
		if e.Taken() > 0 {
			e.Leave(false)
		}
	}); n != 0 {
		t.Fatal(n)
	}
}

func BenchmarkNote(b *testing.B) {
	for name, flows := range map[string]uint32{"one": 1, "known": 200, "replaced": 1000} {
		b.Run(name, func(b *testing.B) {
			e := NewEgress(Default())
			for i := uint32(0); i < uint32(b.N); i++ {
				k := i % flows
				e.Note(k*2654435761, wire.FlowID{Ports: k}, 1, 3)
			}
		})
	}
}
