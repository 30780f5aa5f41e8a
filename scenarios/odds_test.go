package scenarios_test

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gswitch/fabric/results"
	"gswitch/fabric/run"
	"gswitch/fabric/scenario"
)

var (
	odds      = flag.Int("odds", 0, "of TestOdds: run each short form with at least so many seeds, and print how often seeds drawn from these miss")
	oddsMatch = flag.String("odds-of", "", "of TestOdds: only scenarios whose file matches this regular expression")
	oddsSeeds = flag.String("odds-seeds", "", "of TestOdds: print it for so many seeds, too, such as 5,8,12")
)

// draws is how many sets of seeds are judged for each scenario: what misses one time in
// a hundred does so 20 times of these, with a deviation of 4.5.
const draws = 2000

// How often a scenario misses at seeds that nobody chose: its short form runs with many
// seeds, and is judged with as many as it has, drawn from those with replacement, again
// and again. Without -odds a single one is, by what is known of it.
func TestOdds(t *testing.T) {
	if *odds == 0 {
		s := sampled(t, "quickstart.yaml", 3)
		if p, _ := missing(t, "quickstart.yaml", 0, s); p != 0 {
			t.Errorf("quickstart misses with %.0f %% of seeds", 100*p)
		}
		for _, runs := range s.of { // with one seed nothing holds
			clear(runs[0].Values)
		}
		if p, _ := missing(t, "quickstart.yaml", 1, s); math.Abs(p-1/float64(s.runs)) > 0.05 {
			t.Errorf("with one of %d seeds that misses %.2f of single seeds miss", s.runs, p)
		}
		return
	}
	only, err := regexp.Compile(*oddsMatch)
	if err != nil {
		t.Fatal(err)
	}
	sum, count := 0.0, 0
	for _, file := range files(t) {
		if !only.MatchString(file) {
			continue
		}
		s := sampled(t, file, *odds)
		p, claims := missing(t, file, 0, s)
		sum, count = sum+p, count+1
		fmt.Printf("%.4f %s, %d seeds of %d%s\n", p, strings.TrimSuffix(file, ".yaml"), s.have, s.runs, more(t, file, s))
		for _, text := range slices.SortedFunc(maps.Keys(claims), func(a, b string) int { return cmp.Compare(claims[b], claims[a]) }) {
			fmt.Printf("\t%.4f %s\n", claims[text], text)
		}
	}
	fmt.Printf("%.2f of %d scenarios miss on average\n", sum, count)
}

// more returns how often the scenario would miss with other numbers of seeds.
func more(t *testing.T, file string, s *sample) (text string) {
	for k := range strings.SplitSeq(*oddsSeeds, ",") {
		if k == "" {
			continue
		}
		n, err := strconv.Atoi(k)
		if err != nil || n < 1 {
			t.Fatalf("-odds-seeds: %q is no number of seeds", k)
		}
		p, _ := missing(t, file, n, s)
		text += fmt.Sprintf("; with %d %.4f", n, p)
	}
	return text
}

// sample is what was measured of a short form, by variant and point, with each seed.
type sample struct {
	have int // seeds that the scenario has
	runs int // seeds it was run with
	of   map[string][]*results.Run
}

// group names what a run is, but for its seed.
func group(r *scenario.Run) string { return fmt.Sprint(r.Variant, r.Point) }

// sampled runs the short form of a scenario with at least n seeds, and twice as many
// as it has; or with three, where what is measured does not hang on the seed.
func sampled(t *testing.T, file string, n int) *sample {
	t.Helper()
	s := &sample{have: len(seeds(load(t, file, scenario.Options{Short: true}))), of: map[string][]*results.Run{}}
	s.add(t, file, min(n, 3))
	want := max(n, 2*s.have)
	for _, runs := range s.of {
		if want > s.runs && len(runs) > 1 && !maps.Equal(runs[0].Values, runs[1].Values) {
			s.add(t, file, want-s.runs)
			break
		}
	}
	return s
}

// add runs n seeds more.
func (s *sample) add(t *testing.T, file string, n int) {
	t.Helper()
	var list []uint64
	for i := range n {
		list = append(list, max(*firstSeed, 1)+uint64(s.runs+i))
	}
	sc := load(t, file, scenario.Options{Short: true, Seeds: list})
	f, err := run.Scenario(t.Context(), sc, run.Options{Version: "test", Jobs: run.DefaultJobs()})
	if err != nil {
		t.Fatal(err)
	}
	for i := range sc.Runs {
		g := group(&sc.Runs[i])
		s.of[g] = append(s.of[g], &f.Runs[i])
	}
	s.runs += n
}

// missing returns the share of draws of k seeds, or of as many as the scenario has if 0,
// with which something it expects does not hold, and that of each claim.
func missing(t *testing.T, file string, k int, s *sample) (p float64, claims map[string]float64) {
	t.Helper()
	o := scenario.Options{Short: true}
	for i := range k {
		o.Seeds = append(o.Seeds, uint64(i+1))
	}
	sc := load(t, file, o)
	numbers := seeds(sc)
	r := rand.New(rand.NewPCG(1, 2))
	claims = map[string]float64{}
	for range draws {
		chosen := map[uint64]int{}
		for _, seed := range numbers {
			chosen[seed] = r.IntN(s.runs)
		}
		measured := make([]*results.Run, len(sc.Runs))
		for i := range sc.Runs {
			copied := *s.of[group(&sc.Runs[i])][chosen[sc.Runs[i].Seed]]
			measured[i] = &copied
		}
		missed := map[string]bool{}
		for _, c := range unheld(sc.Evaluate(measured), measured) {
			missed[c.Text] = true
		}
		if len(missed) > 0 {
			p += 1. / draws
		}
		for text := range missed {
			claims[text] += 1. / draws
		}
	}
	return p, claims
}

// unheld returns the checks that failed, of those between runs and of single ones.
func unheld(checks []results.Check, runs []*results.Run) []results.Check {
	for _, r := range runs {
		checks = append(checks, r.Checks...)
	}
	return slices.DeleteFunc(checks, func(c results.Check) bool { return c.OK })
}

func load(t *testing.T, file string, o scenario.Options) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Load(file, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// seeds returns the seeds of a scenario.
func seeds(s *scenario.Scenario) (v []uint64) {
	for i := range s.Runs {
		if !slices.Contains(v, s.Runs[i].Seed) {
			v = append(v, s.Runs[i].Seed)
		}
	}
	return v
}
