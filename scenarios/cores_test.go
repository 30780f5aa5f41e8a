package scenarios_test

import (
	"flag"
	"strings"
	"testing"

	"gswitch/fabric/results"
	"gswitch/fabric/run"
	"gswitch/fabric/scenario"
	"gswitch/frame"
)

var allCores = flag.Bool("cores", false, "TestCores: every run of every scenario, on 2, 3 and 4 cores, and not the first of some on one of these")

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
				if !*allCores {
					divided(t, s, i, 2+int(seed%3), seed, &want.Runs[i])
					continue
				}
				for cores := 2; cores <= 4; cores++ {
					divided(t, s, i, cores, seed+uint64(cores)<<10, &want.Runs[i])
				}
			}
		})
	}
}

// divided compares run i of a scenario, its nodes divided at random among cores, with
// what it is on one.
func divided(t *testing.T, s *scenario.Scenario, i, cores int, seed uint64, want *results.Run) {
	t.Helper()
	one := *s
	one.Runs = s.Runs[i : i+1]
	got, err := run.Scenario(t.Context(), &one, run.Options{Version: "test", Jobs: 1, Cores: cores, Part: func(node int) int {
		rng := frame.NewRand(seed<<20 + uint64(node))
		return int(rng.Uint32n(uint32(cores)))
	}})
	if err != nil {
		t.Fatal(err)
	}
	if a := &got.Runs[0]; a.Digest != want.Digest || a.FrameHops != want.FrameHops || a.Events != want.Events {
		t.Errorf("%s, seed %d, on %d cores: digest %s, %d hops, %d events; on one %s, %d, %d", want.Name, want.Seed, cores, a.Digest, a.FrameHops, a.Events, want.Digest, want.FrameHops, want.Events)
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
