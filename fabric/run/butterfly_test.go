package run

import (
	"flag"
	"fmt"
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
		doc := fmt.Sprintf(`
version: 1
topology: {generate: star(3), classes: {host: {rate: 10Gbps, delay: 2us}}}
link: {overhead: ethernet}
switch: {buffer: {size: 150KB, alpha: 8}}
hosts:
  payload: 1448B
  tcp: {enabled: true, min_rto: 16ms, rack: false, tail_probe: false, delay: 10us, jitter: %s}
workload:
- {group: long, kind: flows, flows: [{from: h1, to: h3, size: 2MB}, {from: h1, to: h3, size: 2MB}, {from: h2, to: h3, size: 2MB}, {from: h2, to: h3, size: 2MB}]}
- {group: short, kind: flows, start: 2ms, flows: [{from: h1, to: h3, size: 30KB}]}
measure: {connections: true, sample: 1ms, bin: 1ms}
duration: 1s
until: done
seeds: [%s]
`, jitter, strings.Trim(strings.ReplaceAll(fmt.Sprint(seeds), " ", ", "), "[]"))
		s, err := scenario.Parse("butterfly.yaml", []byte(doc), scenario.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var f *results.File
		if f, err = Scenario(t.Context(), s, Options{Version: "test", Jobs: 1}); err != nil {
			t.Fatal(err)
		}
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
