package scenario

import (
	"path/filepath"
	"reflect"
	"testing"
)

// The document of a run alone says all that the run does: every run of every
// scenario here comes out of its own as it was.
func TestAlone(t *testing.T) {
	files, err := filepath.Glob("../../scenarios/*/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		s, err := Load(file, Options{Short: true})
		if err != nil {
			t.Error(err)
			continue
		}
		for i := range s.Runs {
			r := &s.Runs[i]
			text, err := r.Alone()
			if err != nil {
				t.Fatal(err)
			}
			got, err := Parse(file, text, Options{Seeds: []uint64{r.Seed}})
			if err != nil {
				t.Errorf("%s, %s: %v", file, r.Name, err)
				continue
			}
			if len(got.Runs) != 1 || got.Runs[0].Seed != r.Seed {
				t.Fatalf("%s, %s: %d runs", file, r.Name, len(got.Runs))
			}
			g := &got.Runs[0]
			same := reflect.DeepEqual(g.Doc.Hosts, r.Doc.Hosts) && reflect.DeepEqual(g.Doc.Switch, r.Doc.Switch) && reflect.DeepEqual(g.Doc.Workload, r.Doc.Workload) &&
				reflect.DeepEqual(g.Doc.Faults, r.Doc.Faults) && reflect.DeepEqual(g.Doc.Measure, r.Doc.Measure) && g.Doc.Duration == r.Doc.Duration && reflect.DeepEqual(g.Topology.Links, r.Topology.Links)
			if !same {
				t.Errorf("%s: %s is not what it was", file, r.Name)
			}
		}
	}
}
