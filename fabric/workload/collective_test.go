package workload

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gswitch/frame"
)

// A ring's messages, carried out on sets of contributions in any order in which
// connections may deliver, leave at every rank the sum of all.
func TestRingReduces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 9).Draw(t, "ranks")
		pieces := rapid.IntRange(1, 4).Draw(t, "pieces")
		c, err := NewCollective(CollectiveConfig{Ranks: hosts(0, int32(n)), Bytes: uint64(n*pieces + rapid.IntRange(0, 1000).Draw(t, "more")), Pieces: pieces, Count: 1, Stop: 1})
		if err != nil {
			t.Fatal(err)
		}
		v := make([][]map[int]bool, n) // by rank: of each part's each piece, which ranks are in it
		for i := range v {
			for range n * pieces {
				v[i] = append(v[i], map[int]bool{i: true})
			}
		}
		type message struct {
			f     Flow
			slot  int
			value map[int]bool
		}
		way, sent := make([][]message, n), make([]int, n)
		arrived := make([]int, n)
		for {
			for c.Peek() != frame.Never {
				f := c.Pop()
				k := sent[f.Src]
				sent[f.Src]++
				slot := ((int(f.Src)-k/pieces)%n+n)%n*pieces + k%pieces
				value := map[int]bool{}
				for who := range v[f.Src][slot] {
					value[who] = true
				}
				way[f.Dst] = append(way[f.Dst], message{f, slot, value})
			}
			var ready []int
			for i := range way {
				if len(way[i]) > 0 {
					ready = append(ready, i)
				}
			}
			if len(ready) == 0 {
				break
			}
			i := rapid.SampledFrom(ready).Draw(t, "arrives at")
			m := way[i][0]
			way[i] = way[i][1:]
			if arrived[i] < (n-1)*pieces { // reduced
				for who := range m.value {
					if v[i][m.slot][who] {
						t.Fatalf("rank %d is added twice to piece %d at rank %d", who, m.slot, i)
					}
					v[i][m.slot][who] = true
				}
			} else {
				v[i][m.slot] = m.value
			}
			arrived[i]++
			c.Done(0, &m.f)
		}
		for i := range v {
			for slot, who := range v[i] {
				if len(who) != n {
					t.Fatalf("piece %d of rank %d has the sum of %v", slot, i, who)
				}
			}
		}
	})
}

// Both trees add up what all ranks have, each once, and bring it to all.
func TestTreesReduce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 17).Draw(t, "ranks")
		pieces := rapid.IntRange(1, 5).Draw(t, "pieces")
		c, err := NewCollective(CollectiveConfig{Ranks: hosts(0, int32(n)), Trees: true, Bytes: uint64(2*pieces + rapid.IntRange(0, 99).Draw(t, "more")), Pieces: pieces, Count: 1, Stop: 1})
		if err != nil {
			t.Fatal(err)
		}
		type key struct {
			src, dst, conn int32
		}
		type message struct {
			f     Flow
			count int // ranks whose data is in it
		}
		way, order := map[key][]message{}, []key{}
		sums := [2][][]int{}
		for k := range sums {
			sums[k] = make([][]int, n)
			for i := range sums[k] {
				sums[k][i] = make([]int, pieces)
				for p := range pieces {
					sums[k][i][p] = 1
				}
			}
		}
		sent, got := map[key]int{}, map[key]int{}
		total := uint64(0)
		for {
			for c.Peek() != frame.Never {
				f := c.Pop()
				total += f.Bytes
				k := key{f.Src, f.Dst, f.Conn}
				if sent[k] == 0 {
					order = append(order, k)
				}
				way[k] = append(way[k], message{f, sums[f.Conn][f.Src][sent[k]]})
				sent[k]++
			}
			var ready []key
			for _, k := range order {
				if len(way[k]) > 0 {
					ready = append(ready, k)
				}
			}
			if len(ready) == 0 {
				break
			}
			k := rapid.SampledFrom(ready).Draw(t, "arrives")
			m := way[k][0]
			way[k] = way[k][1:]
			sum := &sums[k.conn][k.dst][got[k]]
			got[k]++
			up := c.steps.(*trees).place(int(k.conn), int(k.dst)) < c.steps.(*trees).place(int(k.conn), int(k.src))
			if up {
				*sum += m.count
			} else {
				*sum = m.count
			}
			c.Done(0, &m.f)
		}
		for k := range sums {
			for i := range sums[k] {
				for p, sum := range sums[k][i] {
					if sum != n {
						t.Fatalf("tree %d, rank %d, piece %d: the sum of %d ranks", k, i, p, sum)
					}
				}
			}
		}
		if want := 2 * uint64(n-1) * c.cfg.Bytes; total != want {
			t.Fatalf("%d bytes were sent, %d go up and down", total, want)
		}
	})
}

// In all-to-all every rank gets its part of every other, and none has two
// messages under way at once.
func TestAllToAllInSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 130).Draw(t, "ranks")
		c, err := NewCollective(CollectiveConfig{Ranks: hosts(0, int32(n)), Op: AllToAll, Bytes: uint64(n) * 10, Pieces: 1, Count: 2, Think: 5, Stop: 100})
		if err != nil {
			t.Fatal(err)
		}
		pairs := map[[3]int32]int{}
		var way []Flow
		busy := make([]bool, n)
		for now := frame.Time(0); ; now++ {
			for c.Peek() != frame.Never {
				f := c.Pop()
				if busy[f.Src] || f.Src == f.Dst || f.Bytes != 10 {
					t.Fatalf("%+v while another is under way: %v", f, busy[f.Src])
				}
				busy[f.Src] = true
				pairs[[3]int32{f.Src, f.Dst, int32(f.Event)}]++
				way = append(way, f)
			}
			if len(way) == 0 {
				break
			}
			i := rapid.IntRange(0, len(way)-1).Draw(t, "arrives")
			f := way[i]
			way = append(way[:i], way[i+1:]...)
			busy[f.Src] = false
			c.Done(0, &f)
		}
		if len(pairs) != 2*n*(n-1) {
			t.Fatalf("%d messages, want %d", len(pairs), 2*n*(n-1))
		}
	})
}

// How many messages of how many bytes there are is what the literature says:
// each rank of a ring sends 2(n-1)/n of the vector for all-reduce and half of
// that for its halves.
func TestBytesOfCollectives(t *testing.T) {
	for _, c := range []struct {
		op         Operation
		each       uint64 // bytes that a rank sends
		operations int
	}{
		{AllReduce, 2 * 7 * 1000, 3},
		{ReduceScatter, 7 * 1000, 3},
		{AllGather, 7 * 1000, 3},
		{AllToAll, 7 * 1000, 3},
	} {
		s, err := NewCollective(CollectiveConfig{Ranks: hosts(0, 8), Op: c.op, Bytes: 8000, Pieces: 1, Count: c.operations, Think: 100, Stop: 1 << 40})
		if err != nil {
			t.Fatal(err)
		}
		all := drain(t, s, 1<<20, 50)
		sent := map[int32]uint64{}
		at := map[uint32]frame.Time{}
		for _, f := range all {
			sent[f.Src] += f.Bytes
			if _, ok := at[f.Event]; !ok {
				at[f.Event] = f.At
			}
		}
		for h, n := range sent {
			if n != c.each*uint64(c.operations) {
				t.Errorf("operation %d: rank %d sent %d bytes, want %d", c.op, h, n, c.each*uint64(c.operations))
			}
		}
		steps := frame.Time(c.each / 1000)
		for e, want := range []frame.Time{0, steps*50 + 100, 2 * (steps*50 + 100)} {
			if at[uint32(e)] != want {
				t.Errorf("operation %d: the %dth begins at %d, want %d", c.op, e, at[uint32(e)], want)
			}
		}
	}
}

func TestCollectiveRefusals(t *testing.T) {
	good := CollectiveConfig{Ranks: hosts(0, 4), Bytes: 4000, Pieces: 1, Count: 1, Stop: 1}
	for want, change := range map[string]func(c *CollectiveConfig){
		"1 hosts take part":           func(c *CollectiveConfig) { c.Ranks = hosts(0, 1) },
		"twice":                       func(c *CollectiveConfig) { c.Ranks = []int32{1, 2, 1} },
		"that is 1 at least":          func(c *CollectiveConfig) { c.Pieces = 0 },
		"only all-reduce goes by":     func(c *CollectiveConfig) { c.Op, c.Trees = AllGather, true },
		"have no pieces":              func(c *CollectiveConfig) { c.Op, c.Pieces = AllToAll, 2 },
		"3 bytes cannot be sent as 4": func(c *CollectiveConfig) { c.Bytes = 3 },
		"as 2 parts of 3 messages":    func(c *CollectiveConfig) { c.Trees, c.Pieces, c.Bytes = true, 3, 5 },
	} {
		c := good
		change(&c)
		if _, err := NewCollective(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestParseTrace(t *testing.T) {
	host := func(name string) (int32, error) {
		if len(name) == 2 && name[0] == 'h' {
			return int32(name[1] - '0'), nil
		}
		return 0, fmt.Errorf("there is no host %q", name)
	}
	v, err := ParseTrace("f.csv", []byte("run,src,dst,start_s,bytes\n# a remark\n0,h1,h2,1e-6,1500\n0,h2,h1,0,7\n"), "", host)
	if err != nil || len(v) != 2 || v[0] != (Flow{At: 1000, Src: 1, Dst: 2, Bytes: 1500, Conn: -1}) || v[1] != (Flow{Src: 2, Dst: 1, Bytes: 7, Conn: -1, Event: 1}) {
		t.Errorf("%+v, %v", v, err)
	}
	const head = "start_s,src,dst,bytes\n"
	for text, want := range map[string]string{
		"":                                     "f.csv:1: there is no column start_s",
		"start_s,src,dst\n":                    "f.csv:1: there is no column bytes",
		head:                                   "f.csv: has no flows",
		head + "0,h1,h2\n":                     "wrong number of fields",
		head + "\n-1,h1,h2,1\n":                `f.csv:3: start_s: "-1" is not a number of seconds`,
		head + "NaN,h1,h2,1\n":                 "f.csv:2: start_s",
		head + "0,h1,x,1\n":                    `f.csv:2: dst: there is no host "x"`,
		head + "0,h1,h1,1\n":                   "f.csv:2: dst: h1 sends to itself",
		head + "0,h1,h2,0\n":                   "f.csv:2: bytes",
		head + "0,h1,h2,1.5\n":                 "f.csv:2: bytes",
		head + "\"0,h1,h2,1.5\n":               "f.csv: ",
		head + "0,h1,h2,9999999999999999999\n": "f.csv:2: bytes",

		"start_s,src,dst,bytes,bytes\n0,h1,h2,1,2\n":                     "f.csv:1: the column bytes stands there twice",
		"run," + head + "0,0,h1,h2,1\n1,0,h1,h2,1\n":                     "f.csv: has the flows of 2 runs, 0, 1; write which are sent, such as run: 0",
		head + "0,h1,h2,1\n|0":                                           "f.csv: has no column run, so that run: 0 means nothing",
		"run," + head + "0,0,h1,h2,1\n|1":                                "f.csv: there is no run 1; there are 0",
		"run,name,seed," + head + "0,a,1,0,h1,h2,1\n1,a,2,0,h1,h2,1\n|a": "f.csv: run: a is the name of 2 runs, 0 (a, seed 1), 1 (a, seed 2); write the place of one, such as run: 0",
	} {
		run := ""
		if _, after, ok := strings.Cut(text, "|"); ok {
			run = after
			text = strings.TrimSuffix(text, "|"+run)
		}
		if _, err := ParseTrace("f.csv", []byte(text), run, host); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func FuzzParseTrace(f *testing.F) {
	f.Add([]byte("start_s,src,dst,bytes\n0,1,2,3\n"))
	f.Add([]byte("bytes,\"src\",dst,start_s,group\n9,1,0,0.5,x\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := ParseTrace("f", b, "", func(name string) (int32, error) { return int32(len(name)), nil })
		if err != nil {
			return
		}
		if _, err := NewList(v); err != nil {
			t.Errorf("what was read makes no list: %v", err)
		}
	})
}
