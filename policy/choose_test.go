package policy

import (
	"strings"
	"testing"
)

// A host goes by what a policy serves by, from the fields of packets that it has.
func TestChooser(t *testing.T) {
	// Of the same kind: the first has more left, is older, shorter and of a lower code point.
	old, late := Packet{Arrival: 10, Processing: 9, Size: 100, DSCP: 8, Class: 1, Flow: 1}, Packet{Arrival: 20, Processing: 3, Size: 1000, DSCP: 40, Class: 5, Flow: 2}
	for text, first := range map[string]*Packet{
		"q = Queue(1 pkts);":                                                                        &old,
		"q = Queue(1 pkts); q.procPrio = rfifo;":                                                    &late,
		"q = Queue(1 pkts); q.procPrio = srpt;":                                                     &late,
		"q = Queue(1 pkts); q.procPrio = rsrpt;":                                                    &old,
		"q = Queue(1 pkts); q.procPrio = value;":                                                    &late,
		"q = Queue(1 pkts); q.procPrio = shortest;":                                                 &old,
		"classify processing = p.processing * p.size; q = Queue(1 pkts); q.procPrio = srpt;":        &old,
		"classify slack = p.size * 1us; q = Queue(1 pkts); q.procPrio = edf;":                       &old,
		"worth(a, b) = a.value * b.size > b.value * a.size; q = Queue(1 pkts); q.procPrio = worth;": &old,
	} {
		c, err := CompileChooser("p", text)
		if err != nil {
			t.Fatal(err)
		}
		a, b := old, late
		ab, ba := c.Before(&a, &b), c.Before(&b, &a)
		if ab != (first == &old) || ba == ab {
			t.Errorf("%s: the older before the later %v, the later before the older %v", text, ab, ba)
		}
		same := old
		if c.Before(&a, &same) {
			t.Errorf("%s: a packet comes before its like", text)
		}
		if n := testing.AllocsPerRun(100, func() { c.Before(&a, &b) }); n != 0 {
			t.Errorf("%s: %v allocations", text, n)
		}
	}
	for text, want := range map[string]string{
		"q[1..2] = Queue(1 pkts); out = Port(100%, q[1..2]);":               "has 2 queues",
		"q = Queue(1 pkts); out = Port(10Mbps, q);":                         "slows the port out down",
		"classify value = p.random; q = Queue(1 pkts); q.procPrio = value;": "reads random",
		"classify value = p.saddr; q = Queue(1 pkts); q.procPrio = value;":  "reads random, or what stands in frames",
		"q = Queue(1 pkts); b = Buffer(1 pkts, q);":                         "1 shared buffer",
	} {
		if _, err := CompileChooser("p", text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
