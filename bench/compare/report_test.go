package compare

import (
	"bytes"
	"strings"
	"testing"
)

func runs() []Result {
	return []Result{
		{DUT: "gswitch-l2", Size: 64, Round: 1, Kpps: 110},
		{DUT: "testpmd", Size: 64, Round: 1, Kpps: 100},
		{DUT: "gswitch-l2", Size: 64, Round: 2, Kpps: 90},
		{DUT: "testpmd", Size: 64, Round: 2, Kpps: 100},
		{DUT: "gswitch-l2", Size: 64, Round: 3, Kpps: 120},
		{DUT: "testpmd", Size: 64, Round: 3, Kpps: 1, Invalid: "generator stalled"},
	}
}

func TestRatioLeavesInvalidRunsOut(t *testing.T) {
	r := ratio(runs(), "gswitch-l2", "testpmd", 64, kpps)
	if r.Medians != 1.1 {
		t.Errorf("ratio of medians %v, want 1.1", r.Medians)
	}
	if len(r.Rounds) != 2 || r.Rounds[0] != 0.9 || r.Rounds[1] != 1.1 {
		t.Errorf("ratios of the rounds %v, want 0.9 and 1.1", r.Rounds)
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		of   []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{3, 1}, 2}, {[]float64{9, 1, 2}, 2}} {
		if got := Median(c.of); got != c.want {
			t.Errorf("median of %v is %v, want %v", c.of, got, c.want)
		}
	}
}

func TestBarsSayWhatIsMissed(t *testing.T) {
	o := Options{Mode: Throughput, Sizes: []int{64}}
	var out bytes.Buffer
	if !Bars(&out, o, runs()) {
		t.Errorf("1.1 times testpmd misses a bar:\n%s", &out)
	}
	slow := runs()
	for i := range slow {
		if slow[i].DUT == "gswitch-l2" {
			slow[i].Kpps /= 2
		}
	}
	out.Reset()
	if Bars(&out, o, slow) || !strings.Contains(out.String(), "MISSED") {
		t.Errorf("half of testpmd misses no bar:\n%s", &out)
	}
}

func TestTableShowsForwardersWithoutAValidRun(t *testing.T) {
	var out bytes.Buffer
	Table(&out, Options{Mode: Throughput, Sizes: []int{64}}, []string{"gswitch-l2", "ovs"}, runs())
	if !strings.Contains(out.String(), "ovs") || !strings.Contains(out.String(), "1.10 (0.90..1.10)") {
		t.Errorf("the table is\n%s", &out)
	}
}
