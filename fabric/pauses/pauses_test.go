package pauses

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gswitch/frame"
)

// end names port p of a node; the tests number ports by the neighbour's letter.
func end(node, to string) End { return End{node, int(to[len(to)-1]), to} }

// pause says that by paused of, for the egress ports that follow.
func pause(by, of string, from, to float64, causes ...string) Pause {
	p := Pause{By: end(by, of), Of: end(of, by), Class: 3, From: from, To: to}
	for i, c := range causes {
		p.Causes = append(p.Causes, Cause{Port: end(by, c), Bytes: uint64(1000 / (i + 1))})
		p.Held += uint64(1000 / (i + 1))
	}
	return p
}

// tree writes the branches in one line.
func tree(v []*Branch) string {
	var b strings.Builder
	for _, r := range v {
		switch {
		case r.By == "":
			fmt.Fprintf(&b, "%s %s", r.Why, r.place())
		default:
			fmt.Fprintf(&b, "%s-%s", node(r.By), r.At.Node)
		}
		fmt.Fprintf(&b, " %d", r.Count)
		if r.Again {
			b.WriteString(" again")
		}
		if len(r.Branches) > 0 {
			b.WriteString("[" + tree(r.Branches) + "]")
		}
		b.WriteByte(';')
	}
	return b.String()
}

func TestTree(t *testing.T) {
	for _, v := range []struct {
		name string
		list []Pause
		want string
	}{
		{"a chain", []Pause{pause("s2", "s1", 1, 5, "h9"), pause("s1", "h1", 2, 4, "s2"), pause("s1", "h2", 3, 6, "s2")},
			"congestion s2>h9 1[s2-s1 1[s1-h2 1;s1-h1 1;];];"},
		{"over before", []Pause{pause("s2", "s1", 1, 2, "h9"), pause("s1", "h1", 3, 4, "s2")},
			"congestion s2>h9 1[s2-s1 1;];congestion s1>s2 1[s1-h1 1;];"},
		{"later than what it might have led to", []Pause{pause("s1", "h1", 1, 9, "s2"), pause("s2", "s1", 2, 3, "h9")},
			"congestion s1>s2 1[s1-h1 1;];congestion s2>h9 1[s2-s1 1;];"},
		{"two causes, the second one paused", []Pause{pause("s2", "s1", 1, 5, "h9"), pause("s1", "h1", 2, 4, "h2", "s2")},
			"congestion s2>h9 1[s2-s1 1[s1-h1 1;];];"},
		{"a host that asks", []Pause{pause("h9", "s2", 1, 5), pause("s2", "h1", 2, 4, "h9")},
			"asked h9 1[h9-s2 1[s2-h1 1;];];"},
		{"again and again", []Pause{pause("s2", "s1", 1, 2, "h9"), pause("s2", "s1", 3, 4, "h9"), pause("s2", "s1", 5, 6, "h9")},
			"congestion s2>h9 3[s2-s1 3;];"},
		{"a circle", []Pause{pause("b", "a", 1, 9, "h"), pause("a", "c", 2, 9, "b"), pause("c", "b", 3, 9, "a"), pause("b", "a", 4, 9, "c")},
			"congestion b>h 2[b-a 2 again[a-c 1[c-b 1;];];];"},
	} {
		tr := New(v.list, 0, 10, 0, 0)
		if got := tree(tr.Roots); got != v.want {
			t.Errorf("%s: %s\nwant %s", v.name, got, v.want)
		}
	}
}

// Behind a frame that is stuck others wait without fault: the pause followed
// from that of the port that it is stuck at, and of no other.
func TestStuck(t *testing.T) {
	list := func() []Pause {
		p := pause("s1", "h1", 2, 4)
		p.Held, p.Causes = 9000, []Cause{{end("s1", "s2"), 1500, true}, {end("s1", "s3"), 7500, false}}
		return []Pause{pause("s3", "s1", 0.5, 5, "h8"), pause("s2", "s1", 1, 5, "h9"), p}
	}
	tr := New(list(), 0, 10, 0, 0)
	if got := tree(tr.Roots); got != "congestion s2>h9 1[s2-s1 1[s1-h1 1;];];congestion s3>h8 1[s3-s1 1;];" {
		t.Error(got)
	}
	var b bytes.Buffer
	if err := tr.Text(&b, 0); err != nil || !strings.Contains(b.String(), "for s1>s2 (1); behind it s1>s3 (7.50 kB)\n") {
		t.Errorf("%v\n%s", err, b.String())
	}
	v := list()
	v[1].To = 1.5 // over by then: it is s2 that more comes for than it takes
	if got := tree(New(v, 0, 10, 0, 0).Roots); got != "congestion s3>h8 1[s3-s1 1;];congestion s1>s2 1[s1-h1 1;];congestion s2>h9 1[s2-s1 1;];" {
		t.Error(got)
	}
}

func TestShortOfMemory(t *testing.T) {
	a, b := pause("s1", "h1", 1, 2, "h9"), pause("s1", "h2", 1, 2, "h9")
	a.Short, b.Short = true, true
	if got := tree(New([]Pause{a, b}, 0, 3, 0, 0).Roots); got != "memory s1 2[s1-h1 1;s1-h2 1;];" {
		t.Error(got)
	}
}

// Clocks that differ by less than the slack do not tear a tree apart.
func TestSlack(t *testing.T) {
	list := func() []Pause {
		return []Pause{pause("s2", "s1", 1, 2, "h9"), pause("s1", "h1", 2.0005, 4, "s2")}
	}
	if got := tree(New(list(), 0, 10, 0, 0).Roots); got != "congestion s1>s2 1[s1-h1 1;];congestion s2>h9 1[s2-s1 1;];" {
		t.Error(got)
	}
	if got := tree(New(list(), 0, 10, 0.001, 0).Roots); got != "congestion s2>h9 1[s2-s1 1[s1-h1 1;];];" {
		t.Error(got)
	}
}

// Every pause hangs somewhere once, in the tree as in the table.
func TestNothingIsLost(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(0, 60).Draw(r, "pauses")
		var v []Pause
		for range n {
			name := rapid.SampledFrom(names)
			from := float64(rapid.IntRange(0, 50).Draw(r, "from"))
			p := pause(name.Draw(r, "by"), name.Draw(r, "of"), from, from+float64(rapid.IntRange(0, 20).Draw(r, "length")))
			if rapid.Bool().Draw(r, "reports") {
				p.Causes = []Cause{{Port: end(p.By.Node, name.Draw(r, "cause")), Bytes: 100}}
			}
			v = append(v, p)
		}
		tr := New(v, 0, 100, 0, 0)
		count, sum, edges := 0, 0.0, 0
		var below func(v []*Branch)
		below = func(v []*Branch) {
			for _, b := range v {
				if b.up != nil {
					count += b.Count
					sum += b.Seconds
				}
				below(b.Branches)
			}
		}
		below(tr.Roots)
		want := 0.0
		for i := range tr.Pauses {
			want += tr.Pauses[i].seconds()
		}
		for i := range tr.Edges {
			edges += tr.Edges[i].Count
		}
		if count != n || edges != n || sum < want-1e-9 || sum > want+1e-9 {
			r.Fatalf("%d pauses of %v s: %d of %v s in the tree, %d in the table", n, want, count, sum, edges)
		}
	})
}

func TestText(t *testing.T) {
	tr := New([]Pause{pause("s2", "s1", 0.001, 0.0025, "h9"), pause("s1", "h1", 0.0012, 0.002, "s2"), {By: end("h9", "s2"), Of: end("s2", "h9"), Class: 3, From: 0.004, To: 0.005, Lasts: true}}, 0, 0.005, 0, 7)
	var b bytes.Buffer
	if err := tr.Text(&b, 0); err != nil {
		t.Fatal(err)
	}
	const want = `3 pauses between 3 pairs of ports, from 0 s to 5.00 ms
7 older pauses are not known any more: the first ones below may have followed from them

WHERE IT BEGAN, AND WHO WAS PAUSED FOR IT
                            PAUSES   IN ALL  LONGEST  FIRST AT     HELD
s2>h9 class 3: congested         1  1.50 ms  1.50 ms   1.00 ms  1.00 kB
  s2 paused s1                   1  1.50 ms  1.50 ms   1.00 ms  1.00 kB
    s1 paused h1                 1   800 us   800 us   1.20 ms  1.00 kB
h9 class 3: asks by itself       1  1.00 ms  1.00 ms   4.00 ms        -
  h9 paused s2                   1  1.00 ms  1.00 ms   4.00 ms        -  1 not over

WHO PAUSED WHOM
                      PAUSES   IN ALL  LONGEST  FIRST AT     HELD
s2 paused s1 class 3       1  1.50 ms  1.50 ms   1.00 ms  1.00 kB  for s2>h9 (1)
h9 paused s2 class 3       1  1.00 ms  1.00 ms   4.00 ms        -  asked by itself, 1 not over
s1 paused h1 class 3       1   800 us   800 us   1.20 ms  1.00 kB  for s1>s2 (1)
`
	if b.String() != want {
		t.Errorf("%s", b.String())
	}
	b.Reset()
	tr.Text(&b, 2)
	if !strings.Contains(b.String(), "and 4 more lines") {
		t.Errorf("%s", b.String())
	}
	b.Reset()
	New(nil, 0, 1, 0, 0).Text(&b, 0)
	if b.String() != "no port paused another\n" {
		t.Error(b.String())
	}
}

// JSON has the same fields whether or not there were pauses: lists are
// lists, and times are numbers whatever window was chosen.
func TestJSON(t *testing.T) {
	for name, tr := range map[string]*Trace{
		"none":    New(nil, 0, 1, 0, 0),
		"some":    New([]Pause{pause("s2", "s1", 1, 5, "h9")}, 0, 10, 0, 3),
		"window":  New([]Pause{pause("s2", "s1", 1, 5, "h9")}, 0, 10, 0, 3).Between(2, math.Inf(1)),
		"outside": New([]Pause{pause("s2", "s1", 1, 5, "h9")}, 0, 10, 0, 3).Between(20, math.Inf(1)),
	} {
		raw, err := json.Marshal(tr)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var v map[string]any
		if err := json.Unmarshal(raw, &v); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, list := range []string{"edges", "roots"} {
			if _, ok := v[list].([]any); !ok {
				t.Errorf("%s: %s is %v", name, list, v[list])
			}
		}
		for _, number := range []string{"from_seconds", "to_seconds", "forgotten"} {
			if _, ok := v[number].(float64); !ok {
				t.Errorf("%s: %s is %v", name, number, v[number])
			}
		}
	}
}

func TestSeconds(t *testing.T) {
	for s, want := range map[float64]string{0: "0 s", 1: "1.00 s", -3.12: "-3.12 s", 999.7e-6: "1.00 ms", 999.2e-6: "999 us", 12.34e-6: "12.3 us", 0.99996: "1.00 s", 5e-9: "5.00 ns", 1234: "1234 s"} {
		if got := Seconds(s); got != want {
			t.Errorf("%v: %s, want %s", s, got, want)
		}
	}
	if one, two := New([]Pause{pause("a", "b", 1, 2)}, 0, 3, 0, 0).Size(), New([]Pause{pause("a", "b", 1, 2), pause("b", "a", 1, 2)}, 0, 3, 0, 0).Size(); one != "1 pause between 1 pair of ports" || two != "2 pauses between 2 pairs of ports" {
		t.Error(one, two)
	}
}

func TestCircles(t *testing.T) {
	peer := func(e End) End { return end(e.To, e.Node) }
	wait := func(node, to string, since frame.Time, from ...string) Wait {
		w := Wait{At: end(node, to), Class: 3, Since: since}
		for _, f := range from {
			w.From = append(w.From, end(node, f).Port)
		}
		return w
	}
	ring := []Wait{wait("a", "b", 5, "c"), wait("b", "c", 9, "a"), wait("c", "a", 7, "b", "h")}
	got := Circles(append(ring, wait("d", "a", 1, "e")), peer)
	if len(got) != 1 || len(got[0].Ports) != 3 || got[0].Since != 9 || got[0].Class != 3 {
		t.Fatalf("%+v", got)
	}
	// One that waits for another class, or for frames that came by elsewhere,
	// closes nothing.
	other := append([]Wait(nil), ring...)
	other[1].Class = 4
	if got := Circles(other, peer); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	if got := Circles([]Wait{ring[0], wait("b", "c", 9, "h"), ring[2]}, peer); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}
