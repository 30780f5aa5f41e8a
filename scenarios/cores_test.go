package scenarios_test

import (
	"flag"
	"strings"
	"testing"

	"gswitch/fabric/run"
	"gswitch/fabric/scenario"
	"gswitch/frame"
)

var allCores = flag.Bool("cores", false, "TestCores: every scenario, not some")

// onCores are scenarios of each mechanism that a network may have.
var onCores = []string{"quickstart", "hpcc/fig2.9gh", "rocc/fig3.8", "escape/fig4.7-ring", "detail/fig12", "irn/tab4.3-rate", "rc3/harmless", "dcqcn", "hull", "ups", "sundial/fig3.20"}

// On 2, 3 or 4 cores, whichever of them steps a node, the frames of a run are the
// same to the bit as on one.
func TestCores(t *testing.T) {
	for _, file := range files(t) {
		if !*allCores && !chosen(file) {
			continue
		}
		t.Run(strings.TrimSuffix(file, ".yaml"), func(t *testing.T) {
			s, err := scenario.Load(file, scenario.Options{Short: true})
			if err != nil {
				t.Fatal(err)
			}
			if !*allCores {
				s.Runs = s.Runs[:1]
			}
			want, err := run.Scenario(t.Context(), s, run.Options{Version: "test", Jobs: run.DefaultJobs(), Cores: 1})
			if err != nil {
				t.Fatal(err)
			}
			for i := range s.Runs {
				seed := uint64(len(file) + i)
				one := *s
				one.Runs = s.Runs[i : i+1]
				o := run.Options{Version: "test", Jobs: 1, Cores: 2 + int(seed%3), Part: func(node int) int {
					rng := frame.NewRand(seed<<20 + uint64(node))
					return int(rng.Uint32n(4))
				}}
				got, err := run.Scenario(t.Context(), &one, o)
				if err != nil {
					t.Fatal(err)
				}
				if a, b := &got.Runs[0], &want.Runs[i]; a.Digest != b.Digest || a.FrameHops != b.FrameHops || a.Events != b.Events {
					t.Errorf("%s, seed %d, on %d cores: digest %s, %d hops, %d events; on one %s, %d, %d", b.Name, b.Seed, o.Cores, a.Digest, a.FrameHops, a.Events, b.Digest, b.FrameHops, b.Events)
				}
			}
		})
	}
}

func chosen(file string) bool {
	for _, c := range onCores {
		if strings.HasPrefix(file, c) {
			return true
		}
	}
	return false
}
