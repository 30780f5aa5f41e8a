package workload

import (
	"math"
	"testing"

	"gswitch/frame"
)

// Each retrieval is a chain of messages between one client and one server, and
// the steps of a workflow follow each other.
func TestRetrievals(t *testing.T) {
	for _, handshake := range []bool{false, true} {
		cfg := RetrievalsConfig{From: hosts(0, 4), To: hosts(0, 8), Rate: 1000, Request: 10, Responses: []uint64{2000, 8000, 32000}, Handshake: handshake,
			Steps: 3, Fanouts: []int{2, 5}, Count: 200, Stop: frame.Never, Seed: 3}
		p, err := NewRetrievals(cfg)
		if err != nil {
			t.Fatal(err)
		}
		all := drain(t, p, 1<<30, 1000)
		type chain struct{ flows []Flow }
		chains, byEvent := map[uint32]*chain{}, map[uint32]int{}
		for _, f := range all {
			c := chains[f.Retrieval]
			if c == nil {
				c = &chain{}
				chains[f.Retrieval] = c
				byEvent[f.Event]++
			}
			c.flows = append(c.flows, f)
		}
		want := []uint64{10, 0}
		if handshake {
			want = []uint64{1, 1, 10, 0}
		}
		sizes := map[uint64]int{}
		for n, c := range chains {
			if n == 0 || len(c.flows) != len(want) {
				t.Fatalf("retrieval %d has %d messages", n, len(c.flows))
			}
			for i, f := range c.flows {
				b := want[i]
				if b == 0 {
					b = f.Answer
				}
				if f.Bytes != b || f.Final != (i == len(want)-1) || f.Conn != -1 || f.Opens() != (handshake && i < 2) {
					t.Errorf("message %d of retrieval %d: %+v", i, n, f)
				}
				if i > 0 && (f.At != c.flows[i-1].At+1000 || f.Src != c.flows[i-1].Dst || f.Dst != c.flows[i-1].Src) {
					t.Errorf("%+v follows %+v", f, c.flows[i-1])
				}
			}
			if c.flows[0].Src >= 4 {
				t.Errorf("host %d is no client", c.flows[0].Src)
			}
			sizes[c.flows[0].Answer]++
		}
		if len(byEvent) != 200 || len(sizes) != 3 || len(p.open) != 0 {
			t.Errorf("%d workflows, sizes %v, %d open", len(byEvent), sizes, len(p.open))
		}
		wide := 0
		for e, n := range byEvent {
			if n != 6 && n != 15 {
				t.Errorf("workflow %d has %d retrievals", e, n)
			}
			if n == 15 {
				wide++
			}
		}
		if wide < 70 || wide > 130 {
			t.Errorf("%d of 200 workflows are wide", wide)
		}
	}
}

// A step asks different servers.
func TestRetrievalsAskDifferentServers(t *testing.T) {
	p, err := NewRetrievals(RetrievalsConfig{From: hosts(0, 2), To: hosts(0, 5), Rate: 10, Request: 1, Responses: []uint64{1}, Steps: 1, Fanouts: []int{4}, Count: 50, Stop: frame.Never, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	asked := map[[2]uint32]int{}
	for _, f := range drain(t, p, 1<<30, 5) {
		if !f.Final {
			asked[[2]uint32{f.Event, uint32(f.Dst)}]++
		}
	}
	if len(asked) != 200 {
		t.Errorf("%d pairs of workflow and server, want 200", len(asked))
	}
}

// Load of the links between aggregation and core in DeTail's network of 128
// servers: bytes of answers that leave their pod, over 32 links of 1 Gb/s. The
// vectors take three quarters of the destinations to be in other pods.
func TestRetrievalLoads(t *testing.T) {
	second := frame.Second
	for _, c := range []struct {
		name   string
		rate   float64
		burst  frame.Time // at 2500/s of each 100 ms, the rest at 100/s
		load   float64
		within float64
	}{
		{"steady 500", 500, 0, 0.168, 0.01}, {"steady 1000", 1000, 0, 0.336, 0.01}, {"steady 2000", 2000, 0, 0.672, 0.01},
		{"20 ms", 0, 20 * frame.Millisecond, 0.195, 0.01}, {"40 ms", 0, 40 * frame.Millisecond, 0.356, 0.01}, {"80 ms", 0, 80 * frame.Millisecond, 0.679, 0.01},
	} {
		cfg := RetrievalsConfig{From: hosts(0, 128), To: hosts(0, 128), Rate: c.rate, Request: 10, Responses: []uint64{2000, 8000, 32000}, Steps: 1, Stop: second, Seed: 9}
		if c.burst > 0 {
			cfg.Phases = []Phase{{2500, c.burst}, {100, 100*frame.Millisecond - c.burst}}
		}
		load := cfg.MeanRate() * 14000 * 8 * 0.75 / 32e9
		if math.Abs(load-c.load) > 0.0006 {
			t.Errorf("%s: load %.4f, want %.3f", c.name, load, c.load)
		}
		p, err := NewRetrievals(cfg)
		if err != nil {
			t.Fatal(err)
		}
		bytes, inBurst := 0.0, 0.0
		for p.Peek() < second {
			f := p.Pop()
			bytes += float64(f.Answer)
			if f.At%(100*frame.Millisecond) < c.burst {
				inBurst += float64(f.Answer)
			}
		}
		drawn := bytes * 8 * 0.75 / 32e9
		if math.Abs(drawn/c.load-1) > c.within {
			t.Errorf("%s: load %.4f as drawn, want %.3f", c.name, drawn, c.load)
		}
		if c.burst == 0 {
			continue
		}
		on := c.burst.Seconds() * 10
		if during := inBurst * 8 * 0.75 / 32e9 / on; math.Abs(during/0.84-1) > 0.02 {
			t.Errorf("%s: load %.3f during bursts, want 0.84", c.name, during)
		}
	}
}

func TestRetrievalsAreChecked(t *testing.T) {
	good := RetrievalsConfig{From: hosts(0, 2), To: hosts(0, 5), Rate: 10, Request: 1, Responses: []uint64{1}, Steps: 1, Stop: frame.Never}
	if _, err := NewRetrievals(good); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(c *RetrievalsConfig){
		"no rate":       func(c *RetrievalsConfig) { c.Rate = 0 },
		"no request":    func(c *RetrievalsConfig) { c.Request = 0 },
		"no answer":     func(c *RetrievalsConfig) { c.Responses = nil },
		"empty answer":  func(c *RetrievalsConfig) { c.Responses = []uint64{5, 0} },
		"no step":       func(c *RetrievalsConfig) { c.Steps = 0 },
		"wide":          func(c *RetrievalsConfig) { c.Fanouts = []int{5} },
		"narrow":        func(c *RetrievalsConfig) { c.Fanouts = []int{0} },
		"endless phase": func(c *RetrievalsConfig) { c.Phases = []Phase{{1, 0}} },
		"idle phases":   func(c *RetrievalsConfig) { c.Phases = []Phase{{0, 5}, {0, 7}} },
		"fast":          func(c *RetrievalsConfig) { c.Rate = 1e9 },
		"itself":        func(c *RetrievalsConfig) { c.From, c.To = hosts(0, 1), hosts(0, 1) },
	} {
		c := good
		change(&c)
		if _, err := NewRetrievals(c); err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
}
