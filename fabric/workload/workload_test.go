package workload

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gswitch/frame"
)

// hosts returns the indices from lo up to but not hi.
func hosts(lo, hi int32) []int32 {
	var v []int32
	for h := lo; h < hi; h++ {
		v = append(v, h)
	}
	return v
}

// drain pops flows until limit or until none is known. If open, each is
// reported as arrived after a fixed time.
func drain(t *testing.T, s Source, limit int, rtt frame.Time) []Flow {
	t.Helper()
	var all, open []Flow
	now := frame.Time(0)
	for len(all) < limit {
		at := s.Peek()
		if len(open) > 0 && open[0].At+rtt <= at {
			f := open[0]
			open = open[1:]
			now = f.At + rtt
			s.Done(now, &f)
			continue
		}
		if at == frame.Never {
			break
		}
		if at < now {
			t.Fatalf("Peek went back from %d to %d", now, at)
		}
		f := s.Pop()
		if f.At != at || f.Src == f.Dst || f.Bytes == 0 {
			t.Fatalf("Peek said %d, Pop gave %+v", at, f)
		}
		now = at
		all, open = append(all, f), append(open, f)
	}
	return all
}

// The means of the published tables (bytes), and that drawing agrees.
func TestNamedDistributions(t *testing.T) {
	for name, want := range map[string]float64{
		"WebSearch": 1_711_250, "FB_Hadoop": 120_421, "FbHdp": 120_421, "FB_Hadoop2015": 121_849,
		"AliStorage": 40_870, "GoogleRPC": 2_892, "Solar": 39_424,
	} {
		c := Named(name)
		if c == nil {
			t.Fatalf("%s is missing", name)
		}
		if got := c.Mean(); math.Abs(got-want) > 1 {
			t.Errorf("%s: mean %.1f, want %.0f", name, got, want)
		}
		r, sum := frame.NewRand(1), 0.0
		const n = 400_000
		for range n {
			sum += float64(c.Draw(&r))
		}
		if got := sum / n; math.Abs(got/want-1) > 0.05 {
			t.Errorf("%s: mean of %d drawn is %.0f, want %.0f", name, n, got, want)
		}
	}
	if Named("nothing") != nil {
		t.Error("a distribution that does not exist was found")
	}
	if len(Names()) != len(names) {
		t.Errorf("Names() = %v", Names())
	}
}

func TestCDFInterpolates(t *testing.T) {
	c, err := ParseCDF("t", []byte("0 0 # start\n\n1000 50\n1000 60\n3000 100\n"))
	if err != nil {
		t.Fatal(err)
	}
	for u, want := range map[float64]uint64{0: 1, 0.25: 500, 0.5: 1000, 0.55: 1000, 0.8: 2000, 0.999: 2995} {
		if got := c.At(u); got != want {
			t.Errorf("At(%v) = %d, want %d", u, got, want)
		}
	}
	if got := c.Mean(); math.Abs(got-(0.5*500+0.1*1000+0.4*2000)) > 1e-9 {
		t.Errorf("mean %v", got)
	}
}

func TestParseCDFRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                 "f.cdf: has no points",
		"10 50\n20 40\n":   "f.cdf:2: the percentage 40 is below",
		"10 50\n5 100\n":   "f.cdf:2: the size 5 is below",
		"10 50\n":          "ends at 50 %",
		"10\n":             "f.cdf:1: has 1 numbers",
		"x 100\n":          `"x" is not a size`,
		"10 101\n":         `"101" is not a percentage`,
		"10 NaN\n":         `"NaN" is not a percentage`,
		"0 100\n":          "all flows are empty",
		"1e300 100":        `"1e300" is not a size`,
		"#\n0 0\n-1 100\n": "f.cdf:3",
	} {
		_, err := ParseCDF("f.cdf", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func FuzzParseCDF(f *testing.F) {
	f.Add([]byte("0 0\n10 50\n20 100\n"))
	f.Add([]byte("# c\n1 1e2"))
	f.Add([]byte("5 100\n5 100"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ParseCDF("f", data)
		if err != nil {
			return
		}
		r := frame.NewRand(1)
		for range 100 {
			if v := c.Draw(&r); v < 1 || float64(v) > max(1, c.Bytes[len(c.Bytes)-1]) {
				t.Fatalf("drew %d from %v", v, c)
			}
		}
		if m := c.Mean(); !(m >= 0) {
			t.Fatalf("mean %v", m)
		}
	})
}

// IRN's heavy tail, uniform in its bins, has a mean of 276.5 KB in units of 1024.
func TestBins(t *testing.T) {
	b := Bins{{0.5, 32, 1024}, {0.35, 1024, 200 << 10}, {0.15, 200 << 10, 3 << 20}}
	if err := b.Check(); err != nil {
		t.Fatal(err)
	}
	r, sum, small := frame.NewRand(3), 0.0, 0
	const n = 500_000
	for range n {
		v := b.Draw(&r)
		if v < 32 || v > 3<<20 {
			t.Fatalf("drew %d", v)
		}
		if v <= 1024 {
			small++
		}
		sum += float64(v)
	}
	if got := sum / n; math.Abs(got/b.Mean()-1) > 0.01 {
		t.Errorf("mean of drawn %.0f, of the bins %.0f", got, b.Mean())
	}
	if share := float64(small) / n; math.Abs(share-0.5) > 0.01 {
		t.Errorf("share of the first bin %.3f", share)
	}
	for _, bad := range []Bins{{{0.5, 1, 2}}, {{1, 0, 2}}, {{1, 3, 2}}, {{1.5, 1, 2}, {-0.5, 1, 2}}} {
		if bad.Check() == nil {
			t.Errorf("%v was accepted", bad)
		}
	}
}

func TestPoissonLoadAndReceivers(t *testing.T) {
	sizes := Named("FB_Hadoop")
	const perHost, load, n = 25e9, 0.3, 16
	cfg := PoissonConfig{From: hosts(0, n), To: hosts(0, n), Sizes: sizes, Rate: n * load * perHost / 8 / sizes.Mean(), Stop: frame.Second, Seed: 7}
	p, err := NewPoisson(cfg)
	if err != nil {
		t.Fatal(err)
	}
	all := drain(t, p, 1<<30, frame.Never/2)
	var bytes float64
	var to [n]int
	for _, f := range all {
		bytes += float64(f.Bytes)
		to[f.Dst]++
	}
	if got := bytes * 8 / (n * perHost); math.Abs(got-load) > 0.005 {
		t.Errorf("offered load %.4f over a second, want %.2f", got, load)
	}
	for h, k := range to {
		if share := float64(k) / float64(len(all)); math.Abs(share*n-1) > 0.05 {
			t.Errorf("host %d receives a share of %.4f", h, share)
		}
	}
	again, _ := NewPoisson(cfg)
	if diff := cmp.Diff(all, drain(t, again, 1<<30, frame.Never/2)); diff != "" {
		t.Error("the same seed gave other flows")
	}
	cfg.Seed++
	other, _ := NewPoisson(cfg)
	if first := other.Pop(); first == all[0] {
		t.Error("another seed gave the same first flow")
	}
}

func TestPoissonPicking(t *testing.T) {
	rack := []int32{0, 0, 1, 1, 2, 2}
	cfg := PoissonConfig{From: hosts(0, 6), To: hosts(0, 6), Sizes: Fixed(1), Rate: 1e6, Stop: frame.Never, Rack: rack, Pick: OtherRack}
	p, err := NewPoisson(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range drain(t, p, 1000, frame.Never/2) {
		if rack[f.Src] == rack[f.Dst] {
			t.Fatalf("%+v stays in its rack", f)
		}
	}
	cfg.Pick = Paired
	if p, err = NewPoisson(cfg); err != nil {
		t.Fatal(err)
	}
	pair := map[int32]int32{}
	for _, f := range drain(t, p, 1000, frame.Never/2) {
		if d, ok := pair[f.Src]; ok && d != f.Dst {
			t.Fatalf("host %d sends to %d and %d", f.Src, d, f.Dst)
		}
		pair[f.Src] = f.Dst
	}
	cfg.Pick, cfg.To = OtherRack, hosts(0, 2)
	if _, err := NewPoisson(cfg); err == nil {
		t.Error("receivers of one rack alone were accepted for senders of the same")
	}
	cfg = PoissonConfig{From: hosts(0, 2), To: hosts(2, 3), Weight: []float64{1, 3}, Sizes: Fixed(1), Rate: 1e6, Stop: frame.Never, Limit: 40_000}
	if p, err = NewPoisson(cfg); err != nil {
		t.Fatal(err)
	}
	k := 0
	all := drain(t, p, 1<<30, frame.Never/2)
	for _, f := range all {
		if f.Src == 1 {
			k++
		}
	}
	if len(all) != cfg.Limit || math.Abs(float64(k)/float64(len(all))-0.75) > 0.02 {
		t.Errorf("%d of %d flows from the host with weight 3 of 4", k, len(all))
	}
}

// What arrives is answered, once, on the connection that it came by.
func TestPoissonAnswers(t *testing.T) {
	p, err := NewPoisson(PoissonConfig{From: []int32{0, 1, 2}, To: []int32{0, 1, 2}, Sizes: Fixed(64_000), Rate: 1000, Stop: frame.Second, Response: 500, Persistent: true, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	asked := p.Pop()
	p.Done(asked.At+10, &asked)
	back := p.Pop()
	want := Flow{At: asked.At + 10, Src: asked.Dst, Dst: asked.Src, Bytes: 500, Event: asked.Event, Step: 1}
	if back != want || asked.Conn != 0 {
		t.Errorf("%+v is answered by %+v, want %+v", asked, back, want)
	}
	if p.Done(back.At+10, &back); p.Pop().Step != 0 {
		t.Error("an answer was answered")
	}
	last := back.At
	for at := p.Peek(); at != frame.Never; at = p.Peek() {
		f := p.Pop()
		if f.At != at || at < last {
			t.Fatalf("%+v at %d after %d", f, at, last)
		}
		if last = at; f.Step == 0 {
			p.Done(at+2*frame.Millisecond, &f)
		}
	}
}

func TestIncast(t *testing.T) {
	p, err := NewIncast(IncastConfig{From: hosts(0, 20), To: hosts(0, 20), Fanin: 8, Total: 1003, Random: true, Rate: 1e5, Stop: 10 * frame.Millisecond, Jitter: 50 * frame.Microsecond, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	type event struct{ n, bytes uint64 }
	events := map[uint32]event{}
	receiver := map[uint32]int32{}
	for _, f := range drain(t, p, 1<<30, frame.Never/2) {
		e := events[f.Event]
		events[f.Event] = event{e.n + 1, e.bytes + f.Bytes}
		if d, ok := receiver[f.Event]; ok && d != f.Dst {
			t.Fatalf("event %d has two receivers", f.Event)
		}
		receiver[f.Event] = f.Dst
	}
	if len(events) < 900 || len(events) > 1100 {
		t.Errorf("%d events in 10 ms at 100,000 a second", len(events))
	}
	for n, e := range events {
		if e != (event{8, 1003}) {
			t.Errorf("event %d: %+v", n, e)
		}
	}
	// Without rate and interval the next event waits for the last.
	closed, err := NewIncast(IncastConfig{From: hosts(1, 4), To: hosts(0, 1), Fanin: 3, Bytes: 10, Count: 4, Start: 5, Stop: frame.Never})
	if err != nil {
		t.Fatal(err)
	}
	var at []frame.Time
	for _, f := range drain(t, closed, 1<<30, 100) {
		at = append(at, f.At)
	}
	if diff := cmp.Diff([]frame.Time{5, 5, 5, 105, 105, 105, 205, 205, 205, 305, 305, 305}, at); diff != "" {
		t.Error(diff)
	}
	if _, err := NewIncast(IncastConfig{From: hosts(0, 4), To: hosts(0, 4), Fanin: 4, Bytes: 1}); err == nil {
		t.Error("a fan-in that takes the receiver itself was accepted")
	}
}

func TestRounds(t *testing.T) {
	p, err := NewRounds(RoundsConfig{From: hosts(0, 8), To: hosts(0, 8), Bytes: 10, Count: 50, Every: 10, Stop: frame.Never, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[[2]int32]bool{}
	all := drain(t, p, 1<<30, frame.Never/2)
	for _, f := range all {
		for _, k := range [][2]int32{{int32(f.Event), f.Src}, {int32(f.Event), 1000 + f.Dst}} {
			if seen[k] {
				t.Fatalf("round %d is no permutation at %+v", f.Event, f)
			}
			seen[k] = true
		}
	}
	if len(all) != 400 {
		t.Errorf("%d flows in 50 rounds of 8", len(all))
	}
	a, err := NewRounds(RoundsConfig{From: hosts(0, 5), To: hosts(0, 5), AllToAll: true, Bytes: 10, Count: 2, Stop: frame.Never})
	if err != nil {
		t.Fatal(err)
	}
	pairs := map[[2]int32]int{}
	all = drain(t, a, 1<<30, 100)
	for _, f := range all {
		pairs[[2]int32{f.Src, f.Dst}]++
	}
	if len(pairs) != 20 || len(all) != 40 || all[20].At != 100 {
		t.Errorf("all-to-all of 5 hosts: %d pairs, %d flows in two rounds, the second at %d", len(pairs), len(all), all[20].At)
	}
}

// Whatever the hosts are, a derangement sends no host to itself.
func TestDerangement(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int32Range(2, 12).Draw(t, "n")
		r := frame.NewRand(rapid.Uint64().Draw(t, "seed"))
		dst, err := derangement(&r, hosts(0, n), hosts(0, n))
		if err != nil {
			t.Fatal(err)
		}
		seen := map[int32]bool{}
		for i, d := range dst {
			if d == int32(i) || seen[d] {
				t.Fatalf("%v", dst)
			}
			seen[d] = true
		}
	})
	r := frame.NewRand(1)
	if _, err := derangement(&r, []int32{3}, []int32{3}); err == nil {
		t.Error("a host alone was paired")
	}
}

func TestRequests(t *testing.T) {
	q, err := NewRequests(RequestsConfig{From: hosts(0, 2), To: hosts(2, 5), Outstanding: 3, Request: Fixed(100), Response: 5000, Think: 7, Count: 10, Persistent: true, Stop: frame.Never, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	all := drain(t, q, 1<<30, 100)
	if len(all) != 2*10*2 {
		t.Fatalf("%d flows, want 10 requests and answers of 2 clients", len(all))
	}
	asked := map[uint32]Flow{}
	for _, f := range all {
		if f.Step == 0 {
			asked[f.Event] = f
			continue
		}
		a := asked[f.Event]
		if f.Src != a.Dst || f.Dst != a.Src || f.At != a.At+100 || f.Bytes != 5000 || f.Conn != a.Conn || f.Conn < 0 {
			t.Errorf("%+v answers %+v", f, a)
		}
	}
	if all[0].At != 0 || all[5].At != 0 || all[12].At != 207 {
		t.Errorf("six requests start at once and the seventh at 207, not %d %d %d", all[0].At, all[5].At, all[12].At)
	}
}

// With Pairs each client has its requests open with every server, on connections
// of their own that stay.
func TestRequestsOfPairs(t *testing.T) {
	q, err := NewRequests(RequestsConfig{From: hosts(0, 3), To: hosts(2, 6), Outstanding: 2, Request: Fixed(100), Pairs: true, Persistent: true, Stop: 300, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	type pair struct{ src, dst, conn int32 }
	count := map[pair]int{}
	for _, f := range drain(t, q, 1<<30, 100) {
		count[pair{f.Src, f.Dst, f.Conn}]++
	}
	if want := (3*4 - 1) * 2; len(count) != want { // host 2 does not ask itself
		t.Errorf("%d connections of pairs, want %d", len(count), want)
	}
	for p, n := range count {
		if n != 3 || p.conn < 0 || p.conn > 1 {
			t.Errorf("%+v has %d requests, one after the other in 300 ns", p, n)
		}
	}
	if _, err := NewRequests(RequestsConfig{From: hosts(0, 1000), To: hosts(1000, 2000), Outstanding: 1000, Request: Fixed(1), Pairs: true, Stop: 1}); err == nil {
		t.Error("a thousand million requests are open at once")
	}
}

func TestPartitionAggregate(t *testing.T) {
	for _, rate := range []float64{0, 1e6} {
		p, err := NewPartitionAggregate(PartitionAggregateConfig{From: hosts(0, 2), To: hosts(0, 10), Fanin: 9, Query: 10, Response: 2000, Rate: rate, Count: 30, Stop: frame.Never, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		answers := map[uint32]map[int32]bool{}
		all := drain(t, p, 1<<30, 100)
		for _, f := range all {
			if f.Step == 1 {
				if answers[f.Event] == nil {
					answers[f.Event] = map[int32]bool{}
				}
				answers[f.Event][f.Src] = true
			}
		}
		if len(all) != 30*9*2 || len(answers) != 30 {
			t.Fatalf("rate %v: %d flows, %d queries answered", rate, len(all), len(answers))
		}
		for n, v := range answers {
			if len(v) != 9 {
				t.Errorf("query %d was answered by %d workers", n, len(v))
			}
		}
	}
}

func TestSaturateJoinsAndLeaves(t *testing.T) {
	s, err := NewSaturate(SaturateConfig{From: hosts(1, 5), To: hosts(0, 1), Conns: 2, Bytes: 10, Outstanding: 2, Start: 1000, Join: 1000, Stop: 5000, Leave: 1000})
	if err != nil {
		t.Fatal(err)
	}
	first, last := map[int32]frame.Time{}, map[int32]frame.Time{}
	conns := map[int32]bool{}
	for _, f := range drain(t, s, 1<<30, 10) {
		if _, ok := first[f.Src]; !ok {
			first[f.Src] = f.At
		}
		last[f.Src] = f.At
		conns[f.Conn] = true
	}
	if diff := cmp.Diff(map[int32]frame.Time{1: 1000, 2: 2000, 3: 3000, 4: 4000}, first); diff != "" {
		t.Error("joins:", diff)
	}
	if diff := cmp.Diff(map[int32]frame.Time{1: 4990, 2: 5990, 3: 6990, 4: 7990}, last); diff != "" {
		t.Error("leaves:", diff)
	}
	if len(conns) != 8 {
		t.Errorf("%d connections, want 8", len(conns))
	}
}

func TestPeriodicAndList(t *testing.T) {
	p, err := NewPeriodic(PeriodicConfig{From: hosts(0, 2), To: hosts(2, 3), Bytes: 1, Every: 10, Start: 5, Stop: 26})
	if err != nil {
		t.Fatal(err)
	}
	var at []frame.Time
	for _, f := range drain(t, p, 1<<30, frame.Never/2) {
		at = append(at, f.At)
	}
	if diff := cmp.Diff([]frame.Time{5, 5, 15, 15, 25, 25}, at); diff != "" {
		t.Error(diff)
	}
	l, err := NewList([]Flow{{At: 9, Dst: 1, Bytes: 1}, {At: 3, Dst: 1, Bytes: 2}, {At: 9, Dst: 1, Bytes: 3}})
	if err != nil {
		t.Fatal(err)
	}
	var bytes []uint64
	for _, f := range drain(t, l, 1<<30, frame.Never/2) {
		bytes = append(bytes, f.Bytes)
	}
	if diff := cmp.Diff([]uint64{2, 1, 3}, bytes); diff != "" {
		t.Error(diff)
	}
}
