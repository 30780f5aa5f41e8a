package queues_test

import (
	"context"
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"gswitch/fabric/run"
	"gswitch/fabric/scenario"
)

// series are the rows of a queue in a series that a run left.
func series(t *testing.T, dir, queue string, from, to float64) (v [][]float64) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "queues", "*-series.csv"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	f, err := os.Open(files[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		var x []float64
		for _, field := range row[1:] {
			n, err := strconv.ParseFloat(field, 64)
			if err != nil {
				t.Fatal(err)
			}
			x = append(x, n)
		}
		if row[0] == queue && x[0] >= from && x[0] < to {
			v = append(v, x)
		}
	}
	return v
}

// A burst to one port makes the queue of another drop while it gets shorter, since both
// share the buffer (dissertation, figure 6.9): the replay of the queues shows it.
func TestSharedBuffer(t *testing.T) {
	s, err := scenario.Load("../../../scenarios/deter/x8-sharing.yaml", scenario.Options{Short: true})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := run.Scenario(context.Background(), s, run.Options{Jobs: 1, Out: dir}); err != nil {
		t.Fatal(err)
	}
	const lengthNow, dropsNow = 2, 4 // of the replay
	falls, grows := series(t, dir, "s1:h1", 8.9e-3, 9.15e-3), series(t, dir, "s1:h2", 8.9e-3, 9.15e-3)
	if len(falls) < 4 || len(falls) != len(grows) {
		t.Fatalf("%d and %d bins", len(falls), len(grows))
	}
	drops, first, last := 0.0, falls[0], falls[len(falls)-1]
	meanA, meanB, together := 0.0, 0.0, 0.0
	for i := range falls {
		drops += falls[i][dropsNow]
		meanA, meanB = meanA+falls[i][lengthNow]/float64(len(falls)), meanB+grows[i][lengthNow]/float64(len(falls))
	}
	for i := range falls {
		together += (falls[i][lengthNow] - meanA) * (grows[i][lengthNow] - meanB)
	}
	// Within the millisecond around the burst one is short where the other is long.
	wide, other := series(t, dir, "s1:h1", 8.5e-3, 9.5e-3), series(t, dir, "s1:h2", 8.5e-3, 9.5e-3)
	if c := correlation(wide, other, lengthNow); len(wide) != 20 || len(other) != 20 || c >= -0.5 {
		t.Errorf("%d and %d bins, correlation %v", len(wide), len(other), c)
	}
	before := 0.0
	for _, x := range series(t, dir, "s1:h1", 8.4e-3, 8.9e-3) {
		before += x[dropsNow]
	}
	if drops < 20 || before*4 > drops || last[lengthNow] > 0.7*first[lengthNow] || together >= 0 {
		t.Errorf("%v drops, %v in twice the time before; the queue falls from %v to %v, covariance with the other %v", drops, before, first[lengthNow], last[lengthNow], together)
	}
}

// correlation is that of a column of two tables.
func correlation(a, b [][]float64, column int) float64 {
	var ma, mb, ab, aa, bb float64
	for i := range a {
		ma, mb = ma+a[i][column]/float64(len(a)), mb+b[i][column]/float64(len(a))
	}
	for i := range a {
		x, y := a[i][column]-ma, b[i][column]-mb
		ab, aa, bb = ab+x*y, aa+x*x, bb+y*y
	}
	return ab / math.Sqrt(aa*bb)
}

// What cannot be replayed is refused, and a host that does not record is missing.
func TestRefused(t *testing.T) {
	const text = `version: 1
topology: {generate: star(3), classes: {host: {rate: 10Gbps, delay: 2us}}}
hosts: {tcp: {enabled: true}}
workload: [{group: both, kind: flows, flows: [{from: h1, to: h3, size: 300KB}, {from: h2, to: h3, size: 300KB}]}]
duration: 20ms
until: done
queue_replay: {enabled: true}
`
	try := func(more string) (map[string]float64, error) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "s.yaml")
		if err := os.WriteFile(file, []byte(strings.Replace(text, "queue_replay: {enabled: true}\n", more, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := scenario.Load(file, scenario.Options{})
		if err != nil {
			return nil, err
		}
		f, err := run.Scenario(context.Background(), s, run.Options{Jobs: 1})
		if err != nil {
			return nil, err
		}
		return f.Runs[0].Values, nil
	}
	for more, want := range map[string]string{
		"pfc: {enabled: true}\nqueue_replay: {enabled: true}\n":                                "pfc.enabled",
		"faults: [{kind: loss, link: \"h1:s1\", share: 0.1}]\nqueue_replay: {enabled: true}\n": "remove faults",
		"queue_replay: {enabled: true, hosts: [h9]}\n":                                         "h9",
	} {
		if _, err := try(more); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", more, err)
		}
	}
	all, err := try("queue_replay: {enabled: true}\n")
	if err != nil {
		t.Fatal(err)
	}
	some, err := try("queue_replay: {enabled: true, hosts: [h1, h3]}\n")
	if err != nil {
		t.Fatal(err)
	}
	const diff = "queue_replay_difference_mean_bytes"
	if all[diff] != 0 || some[diff] < 1000 || some["queue_replay_packets_total"] >= all["queue_replay_packets_total"] {
		t.Errorf("all hosts: %v of %v packets, some: %v of %v", all[diff], all["queue_replay_packets_total"], some[diff], some["queue_replay_packets_total"])
	}
}
