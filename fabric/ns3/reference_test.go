package ns3

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"gswitch/frame"
)

// workloads are inputs with recorded results of HPCC's simulator in testdata/reference.json: 4
// to 64 senders of 500 kB to one at 100 Gb/s, and 20 or 10 ms of flows at 30 and 70 % load on
// four leaves of four hosts at 25 Gb/s under two spines.
var workloads = []string{
	"incast4_500K", "incast8_500K", "incast16_500K", "incast32_500K", "incast48_500K", "incast64_500K",
	"ls16_WebSearch_30", "ls16_FbHdp_30", "ls16_WebSearch_70", "ls16_FbHdp_70",
}

func load(t testing.TB, workload string) (*Topology, []Flow) {
	t.Helper()
	file := "ls16_FbHdp_30.topo"
	if senders(workload) != 0 {
		file = "incast16_500K.topo"
	}
	topo, err := ParseTopology(file, read(t, file))
	if err != nil {
		t.Fatal(err)
	}
	flows, err := ParseFlows(workload+".flow", read(t, workload+".flow"), topo)
	if err != nil {
		t.Fatal(err)
	}
	return topo, flows
}

// compared is what is compared of a run, and how far the mean of ours may be from that of the
// simulator's. Runs in which feedback enlarges whatever is first different (the order of events at
// one nanosecond, which frames DCQCN's marking by chance hits) do not repeat themselves when
// a start moves by a nanosecond, neither here nor there: of those there are several draws.
var compared = []struct {
	what  string
	band  float64
	value func(*Report) float64
}{
	{"mean slowdown", 0.03, func(r *Report) float64 { return r.SlowMean }},
	{"median slowdown", 0.03, func(r *Report) float64 { return r.SlowP50 }},
	{"95th percentile", 0.08, func(r *Report) float64 { return r.SlowP95 }},
	{"99th percentile", 0.08, func(r *Report) float64 { return r.SlowP99 }},
	{"last finish", 0.05, func(r *Report) float64 { return r.LastFinishUS }},
}

// standardErrors of the difference are what chance explains, where they are more than the band.
// They follow from the scatter of the simulator's draws alone: ours excuses nothing.
const standardErrors = 2.5

// exactly are incasts of up to so many senders, in which neither chance nor the order of
// simultaneous events decides: nothing differs from what the simulator wrote.
var exactly = map[string]int{"timely": 48, "timely_win": 16, "dctcp": 32, "dcqcn_win": 8}

// senders is how many an incast has, 0 of other workloads.
func senders(workload string) (n int) {
	fmt.Sscanf(workload, "incast%d_", &n)
	return n
}

func TestAgreesWithReference(t *testing.T) {
	// What the simulator's runs came to: by workload and algorithm, one of each draw (moved).
	var refs map[string]map[string][]Report
	if err := json.Unmarshal(read(t, "reference.json"), &refs); err != nil {
		t.Fatal(err)
	}
	for _, w := range workloads {
		topo, flows := load(t, w)
		for _, algorithm := range Algorithms {
			t.Run(w+"/"+algorithm, func(t *testing.T) {
				t.Parallel()
				theirs := refs[w][algorithm]
				if len(theirs) == 0 {
					t.Fatal("no reference")
				}
				if testing.Short() && strings.HasPrefix(w, "ls16_WebSearch") {
					t.Skip("millions of frame-hops a run")
				}
				ours := make([]Report, len(theirs))
				for draw := range ours {
					seed := uint64(draw) + 1
					r, err := Run(context.Background(), topo, moved(flows, uint64(draw)), Options{Algorithm: algorithm, Seed: seed})
					if err != nil {
						t.Fatal(err)
					}
					x, y := r.Report(algorithm, seed), &theirs[draw]
					if ours[draw] = x; x.Flows != y.Flows || x.Unfinished != 0 || x.Unsteered != 0 || x.Drops != y.Drops ||
						math.Abs(float64(x.PFCEvents)-float64(y.PFCEvents)) > 0.02*float64(y.PFCEvents) {
						t.Errorf("draw %d: %+v", draw, x)
					}
				}
				for _, c := range compared {
					got, _ := sample(ours, c.value)
					want, deviation := sample(theirs, c.value)
					off, chance := got/want-1, deviation/want*math.Sqrt(2/float64(len(theirs)))
					limit := max(c.band, standardErrors*chance)
					if n := senders(w); n != 0 && n <= exactly[algorithm] {
						limit = 1e-6
					}
					t.Logf("%s %.3f, the simulator's is %.3f: %+.2f %%, standard error %.2f %% (draws: %d)", c.what, got, want, 100*off, 100*chance, len(theirs))
					if math.Abs(off) > limit {
						t.Errorf("%s is beyond %.4g %%", c.what, 100*limit)
					}
				}
			})
		}
	}
}

// sample returns the mean of a value and its deviation, 0 of a single run.
func sample(runs []Report, value func(*Report) float64) (mean, deviation float64) {
	n := float64(len(runs))
	for i := range runs {
		mean += value(&runs[i]) / n
	}
	for i := range runs {
		d := value(&runs[i]) - mean
		deviation += d * d / max(n-1, 1)
	}
	return mean, math.Sqrt(deviation)
}

// Flow by flow and to the nanosecond, where neither chance nor the order of simultaneous events
// decides.
func TestExactlyTheReference(t *testing.T) {
	topo, flows := load(t, "incast16_500K")
	// The first to end, and the time that a frame takes on the last link.
	for algorithm, c := range map[string]struct{ first, step frame.Time }{"dctcp": {666846, 83}, "timely": {674832, 84}} {
		r, err := Run(context.Background(), topo, flows, Options{Algorithm: algorithm})
		if err != nil {
			t.Fatal(err)
		}
		for i, f := range r.Flows {
			if want := c.first + frame.Time(i)*c.step; f.Src != AddrOf(2+i) || f.Time != want {
				t.Errorf("%s, flow %d: node %d ended after %d ns, the simulator's node %d after %d", algorithm, i, NodeOf(f.Src), f.Time, 2+i, want)
			}
		}
	}
	// A flow of HPCC alone between two hosts of a rack, 63071 bytes: its rate
	// follows its own telemetry.
	topo, flows = load(t, "ls16_WebSearch_30")
	r, err := Run(context.Background(), topo, flows[1:2], Options{Algorithm: "hpcc"})
	if err != nil {
		t.Fatal(err)
	}
	if want := (FCT{0x0b000301, 0x0b000101, 10000, 100, 63071, 2000244765, 27725, 25805}); r.Flows[0] != want {
		t.Errorf("%+v, the simulator's %+v", r.Flows[0], want)
	}
}

// Where 64 are paused the two differ by which frame passes a threshold that all of them move
// within the same nanoseconds.
func TestIncastThatIsPaused(t *testing.T) {
	topo, flows := load(t, "incast64_500K")
	r, err := Run(context.Background(), topo, flows, Options{Algorithm: "timely"})
	if err != nil {
		t.Fatal(err)
	}
	x := r.Report("timely", 0)
	const mean, p99, last = 58.108537, 58.422135, 2692.092
	off := func(got, want float64) float64 { return math.Abs(got/want - 1) }
	if x.PFCEvents == 0 || off(x.SlowMean, mean) > 0.0005 || off(x.SlowP99, p99) > 1e-6 || off(x.LastFinishUS, last) > 1e-9 {
		t.Errorf("mean %.4f, p99 %.4f, last %.3f us, %d pauses; the simulator's %v, %v, %v", x.SlowMean, x.SlowP99, x.LastFinishUS, x.PFCEvents, mean, p99, last)
	}
}

// The same input and seed repeat to the bit, another seed marks other frames.
func TestDigest(t *testing.T) {
	topo, flows := load(t, "incast16_500K")
	digest := func(seed uint64) string {
		r, err := Run(context.Background(), topo, flows, Options{Algorithm: "dcqcn", Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		return r.Digest
	}
	if a, b, c := digest(1), digest(1), digest(2); a != b || a == c {
		t.Errorf("digests %s, %s of one seed and %s of another", a, b, c)
	}
}

// A run that is interrupted, or whose time is up, says what had ended.
func TestPartialRuns(t *testing.T) {
	topo, flows := load(t, "incast16_500K")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r, err := Run(ctx, topo, flows, Options{Algorithm: "hpcc"})
	if !errors.Is(err, context.Canceled) || r == nil || r.Unfinished != 16 {
		t.Errorf("%v, %+v", err, r)
	}
	r, err = Run(context.Background(), topo, flows, Options{Algorithm: "dctcp", Until: 2*frame.Second + 667*frame.Microsecond})
	if err != nil || len(r.Flows) != 2 || r.Unfinished != 14 || r.FrameHops == 0 {
		t.Errorf("%v, %d ended", err, len(r.Flows))
	}
	x := r.Report("dctcp", 0)
	if x.Flows != 2 || x.Offered != 16 || x.Unfinished != 14 || len(x.Bands) != 1 {
		t.Errorf("%+v", x)
	}
}

func TestRunErrors(t *testing.T) {
	topo, flows := load(t, "incast16_500K")
	if _, err := Run(context.Background(), topo, flows, Options{Algorithm: "cubic"}); err == nil {
		t.Error("cubic was run")
	}
	lossy := mustTopology(t, pair)
	if _, err := Run(context.Background(), lossy, nil, Options{Algorithm: "hpcc"}); err == nil {
		t.Error("a lossy link was accepted")
	}
	apart := mustTopology(t, "4 1 2\n2\n0 2 25Gbps 1000ns 0\n1 2 25Gbps 1000ns 0\n")
	if _, err := Run(context.Background(), apart, []Flow{{Src: 0, Dst: 3, Bytes: 1}}, Options{Algorithm: "hpcc"}); err == nil {
		t.Error("a flow to a host without a link was accepted")
	}
}

// Published vectors of MurmurHash3 for x86, 32 bits: "test" and "aaaa"; and
// three words, "Hello, World".
func TestMurmur3(t *testing.T) {
	for _, c := range []struct {
		seed  uint32
		words []uint32
		want  uint32
	}{
		{0, []uint32{0x74736574}, 0xba6bd213},
		{0x9747b28c, []uint32{0x61616161}, 0x5a97808a},
		{0, []uint32{0x6c6c6548, 0x57202c6f, 0x646c726f}, 0x6b322510},
		{0, nil, 0},
	} {
		if got := murmur3(c.seed, c.words...); got != c.want {
			t.Errorf("murmur3 of %x is %08x, want %08x", c.words, got, c.want)
		}
	}
}

// Every flow of a fat tree is steered, and the paths are those of the search.
func TestSteering(t *testing.T) {
	text := "24 8 24\n16 17 18 19 20 21 22 23\n"
	for h := range 16 {
		text += fmt.Sprintf("%d %d 25Gbps 1000ns 0\n", h, 16+h/4)
	}
	for leaf := 16; leaf < 20; leaf++ {
		for spine := 20; spine < 22; spine++ {
			text += fmt.Sprintf("%d %d 100Gbps 1000ns 0\n", leaf, spine)
		}
	}
	// Nodes 22 and 23 have no links: they are left out.
	topo := mustTopology(t, text)
	var flows []Flow
	for i := range 200 {
		flows = append(flows, Flow{Src: i % 16, Dst: (i*7 + 5) % 16, Class: 3, DstPort: 100, Bytes: 5000, Start: frame.Time(i) * 10_000})
		if flows[i].Src == flows[i].Dst {
			flows[i].Dst = (flows[i].Dst + 1) % 16
		}
	}
	r, err := Run(context.Background(), topo, flows, Options{Algorithm: "timely"})
	if err != nil || r.Unsteered != 0 || r.Unfinished != 0 {
		t.Fatalf("%v, %+v", err, r)
	}
	routes := newRoutes(topo)
	used := map[int]int{}
	for k := range 100 {
		p := routes.path(0, 15, uint16(10_000+k), 100)
		if len(p) != 4 || p[0] != 16 || p[2] != 19 || p[3] != 15 {
			t.Fatalf("path %v", p)
		}
		used[p[1]]++
	}
	if used[20] < 30 || used[21] < 30 {
		t.Errorf("spines are used %v", used)
	}
}

func BenchmarkRun(b *testing.B) {
	topo, flows := load(b, "ls16_FbHdp_30")
	for _, algorithm := range []string{"hpcc", "dcqcn"} {
		b.Run(algorithm, func(b *testing.B) {
			var hops uint64
			for b.Loop() {
				r, err := Run(context.Background(), topo, flows, Options{Algorithm: algorithm})
				if err != nil {
					b.Fatal(err)
				}
				hops += r.FrameHops
			}
			b.ReportMetric(float64(hops)/b.Elapsed().Seconds()/1e6, "Mhops/s")
		})
	}
}
