package run

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gswitch/fabric/results"
	"gswitch/fabric/scenario"
)

var attempts = flag.Int("attempts", 8, "how often TestButterfly runs its workload with jitter and without")

// The butterfly effect (Li, dissertation, section 6.2 and figure 6.3): the same
// workload again loses the same packets where hosts take exactly as long as before,
// and other ones where they take a nanosecond more or less. What connections did comes
// again from their records whatever hosts take.
func TestButterfly(t *testing.T) {
	seeds := make([]int, *attempts)
	for i := range seeds {
		seeds[i] = i + 1
	}
	lost := func(jitter string) map[string]int {
		outcomes := map[string]int{}
		f := butterfly(t, jitter, "2MB", "150KB", "sample: 1ms", seeds)
		if len(f.Runs) != *attempts {
			t.Fatalf("%d runs", len(f.Runs))
		}
		for i := range f.Runs {
			v := f.Runs[i].Values
			if v["connections_replayed_total"] != 5 || v["connections_diverged_total"] != 0 {
				t.Errorf("jitter %s: %v connections were replayed, %v differ", jitter, v["connections_replayed_total"], v["connections_diverged_total"])
			}
			if v["drops_total"] == 0 {
				t.Errorf("jitter %s: nothing was dropped", jitter)
			}
			outcomes[fmt.Sprint(v["drops_total"], v["long.retransmissions_total"], v["short.retransmissions_total"], v["short.fct_mean_seconds"] > 0.01)]++
		}
		return outcomes
	}
	same := lost("0ns")
	if len(same) != 1 {
		t.Errorf("without jitter there are %d outcomes: %v", len(same), same)
	}
	other := lost("1ns")
	again, most := 0, 0
	for outcome, n := range other {
		if most = max(most, n); same[outcome] > 0 {
			again += n
		}
	}
	t.Logf("without jitter %d of %d runs have one outcome; with a nanosecond of it %d have that one, and there are %d in all, of which the most frequent came %d times",
		*attempts, *attempts, again, len(other), most)
	if again > *attempts/5 || most > *attempts/2 {
		t.Errorf("with a nanosecond of jitter the outcome without it came %d times of %d: %v", again, *attempts, other)
	}
}

// butterfly runs the workload of section 6.2, with so much jitter at hosts, long flows of a size
// and a buffer of another one.
func butterfly(t *testing.T, jitter, size, buffer, measure string, seeds []int) *results.File {
	t.Helper()
	doc := fmt.Sprintf(`
version: 1
topology: {generate: star(3), classes: {host: {rate: 10Gbps, delay: 2us}}}
link: {overhead: ethernet}
switch: {buffer: {size: %[1]s, alpha: 8}}
hosts:
  payload: 1448B
  tcp: {enabled: true, min_rto: 16ms, rack: false, tail_probe: false, delay: 10us, jitter: %[2]s}
workload:
- {group: long, kind: flows, flows: [{from: h1, to: h3, size: %[3]s}, {from: h1, to: h3, size: %[3]s}, {from: h2, to: h3, size: %[3]s}, {from: h2, to: h3, size: %[3]s}]}
- {group: short, kind: flows, start: 2ms, flows: [{from: h1, to: h3, size: 30KB}]}
measure: {connections: true, bin: 1ms, %[4]s}
duration: 1s
until: done
seeds: [%[5]s]
`, buffer, jitter, size, measure, strings.Trim(strings.ReplaceAll(fmt.Sprint(seeds), " ", ", "), "[]"))
	s, err := scenario.Parse("butterfly.yaml", []byte(doc), scenario.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := Scenario(t.Context(), s, Options{Version: "test", Jobs: 1})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// With a nanosecond of jitter the queue of the switch is the one without it at first, then
// another one, and not the same again while the long flows last (figure 6.4).
func TestButterflyOfTheQueue(t *testing.T) {
	const every = 10e-6 // seconds
	length := func(jitter string) (bytes []float64, end int) {
		r := &butterfly(t, jitter, "8MB", "1MB", "sample: 5us, queues: [s1:h3]", []int{1}).Runs[0]
		for i := range r.Series {
			s := &r.Series[i]
			if s.Name != "queue" {
				continue
			}
			for k, at := range s.T { // what it is from there on
				for float64(len(bytes))*every <= at && k > 0 {
					bytes = append(bytes, s.V[k-1])
				}
			}
		}
		return bytes, int(r.Values["long.fct_max_seconds"] / every)
	}
	same, end := length("0ns")
	if again, _ := length("0ns"); !slices.Equal(same, again) {
		t.Error("without jitter the queue is another one")
	}
	other, otherEnd := length("1ns")
	n := min(end, otherEnd, len(same), len(other))
	first := 0
	for first < n && same[first] == other[first] {
		first++
	}
	differ, later := 0, 0
	for i := first; i < n; i++ {
		if same[i] > 0 || other[i] > 0 { // else no packet is there that meets them
			later++
			if same[i] != other[i] {
				differ++
			}
		}
	}
	t.Logf("of %d samples the first %d are equal, and of those behind them in which packets wait %d of %d differ", n, first, differ, later)
	if first == 0 || first == n || float64(differ) < 0.95*float64(later) {
		t.Errorf("of %d samples the first %d are equal, and of those behind them in which packets wait %d of %d differ", n, first, differ, later)
	}
}
