package results

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// example is synthetic: its numbers mean nothing.
func example() *File {
	return &File{
		Format: Format, Scenario: "synthetic", Title: `A "quoted" <title> [1, {2`, Version: "test", Figure: "none",
		Params: []Param{{"hosts", "2"}},
		Runs: []Run{{
			Name: "hpcc, load 50%", Params: map[string]string{"cc": "hpcc", "load": "0.5"}, Engine: "sim", Seed: 7, Digest: "ab12",
			VirtualTime: 0.25, WallTime: 1.5, Events: 10, FrameHops: 20,
			Values:  map[string]float64{"slowdown_p99": 1.0 / 3, "drops_total": 0},
			Buckets: []Bucket{{Label: "<= 1K", MaxBytes: 1000, N: 1, Mean: 2, Quantiles: map[string]float64{"p50": 2}}},
			CDFs:    []CDF{{Name: "slowdown", X: []float64{1, 2}, F: []float64{0.5, 1}}},
			Series: []Series{
				{Name: "queue", Object: "leaf1:2", Unit: "bytes", T: []float64{0, 1e-6}, V: []float64{0, 3000}},
				{Name: "queue", Object: "a,\"b\"", Unit: "bytes", T: []float64{0}, V: []float64{5}},
				{Name: "../goodput", Object: "flow 1", Unit: "bps", Shape: ShapeMean, T: []float64{1e-3}, V: []float64{1e9}},
			},
			Checks: []Check{{Text: "slowdown_p99 < 3", OK: true, Got: 1.0 / 3}, {Text: "nothing > 1", Got: math.NaN(), Why: "not measured"}},
			Flows:  []Flow{{ID: 1, Src: "h1", Dst: "h,2", Group: "web", Bytes: 1000, Start: 1e-6, FCT: 2e-6, Ideal: 1e-6, Slowdown: 2, Retrans: 3}, {ID: 2, Src: "h1", Dst: "h2", Bytes: 5, Ideal: 1e-6}},
		}, {
			Name: "hpcc load 50%", Engine: "netns", Values: map[string]float64{},
			Series: []Series{{Name: "queue", Object: "x", T: []float64{0}, V: []float64{1}}},
		}},
		Checks: []Check{{Text: "a < b", Got: 0.5, Why: "it is not"}, {Text: "c > 2", Run: "hpcc", Deviates: "it is slow", OK: true, Got: 1,
			Values: []Estimate{NewEstimate("c", []float64{0, 1, 2}), NewEstimate("d", []float64{1, 2}), NewEstimate("e", []float64{1})}}},
	}
}

func TestSaveLoad(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "results")
	want := example()
	for range 2 { // the second time over the first
		if err := Save(dir, want); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{dir, filepath.Join(dir, "results.json")} {
		got, err := Load(path)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got, cmpopts.EquateNaNs(), cmpopts.EquateEmpty()); d != "" {
			t.Error(d)
		}
	}
	for name, want := range map[string]string{
		"flows.csv": "run,name,id,src,dst,group,bytes,start_s,fct_s,ideal_s,slowdown,retransmitted,variant,engine,seed,cc,load\n" +
			"0,\"hpcc, load 50%\",1,h1,\"h,2\",web,1000,1e-06,2e-06,1e-06,2,3,\"hpcc, load 50%\",sim,7,hpcc,0.5\n" +
			"0,\"hpcc, load 50%\",2,h1,h2,,5,0,,1e-06,,0,\"hpcc, load 50%\",sim,7,hpcc,0.5\n",
		"series/hpcc-load-50-queue.csv":   "t,object,value\n0,leaf1:2,0\n1e-06,leaf1:2,3000\n0,\"a,\"\"b\"\"\",5\n",
		"series/hpcc-load-50-goodput.csv": "t,object,value\n0.001,flow 1,1e+09\n",
		"series/hpcc-load-50-2-queue.csv": "t,object,value\n0,x,1\n",
		"cdf/hpcc-load-50-slowdown.csv":   "x,f\n1,0.5\n2,1\n",
	} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || string(got) != want {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, got, want)
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, ".saving-*"))
	if len(left) > 0 || err != nil {
		t.Error("left behind:", left, err)
	}
}

// Nothing of an earlier save remains beside the new results.
func TestSaveReplaces(t *testing.T) {
	dir := t.TempDir()
	if err := Save(dir, example()); err != nil {
		t.Fatal(err)
	}
	if err := Save(dir, &File{Scenario: "other"}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "series")); err != nil {
		return
	}
	t.Error("series of the earlier results are still there")
}

func TestSaveRefusesForeignFolder(t *testing.T) {
	dir := t.TempDir()
	mine := filepath.Join(dir, "series", "mine.csv")
	if err := os.MkdirAll(filepath.Dir(mine), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(mine, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := Save(dir, example()); err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "series")) {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(mine); err != nil {
		t.Error(err)
	}
}

func TestEncodeIsDeterministicAndReadable(t *testing.T) {
	var a, b bytes.Buffer
	for _, w := range []*bytes.Buffer{&a, &b} {
		if err := Encode(w, example()); err != nil {
			t.Fatal(err)
		}
	}
	if a.String() != b.String() {
		t.Error("two encodings differ")
	}
	for _, want := range []string{`          "v": [0,3000]` + "\n", `"title": "A \"quoted\" \u003ctitle\u003e [1, {2",`, `"got": null`} {
		if !strings.Contains(a.String(), want) {
			t.Errorf("no %s in\n%s", want, a.String())
		}
	}
}

func TestEncodeLeavesOutWhatIsNoNumber(t *testing.T) {
	f := example()
	r := &f.Runs[0]
	r.WallTime = math.Inf(1)
	r.Values["bad"] = math.NaN()
	r.Buckets[0].Mean = math.NaN()
	r.Buckets[0].Quantiles["p99"] = math.Inf(-1)
	r.CDFs[0].X[0] = math.NaN()
	r.Series[0].V[0] = math.Inf(1)
	var w bytes.Buffer
	if err := Encode(&w, f); err != nil {
		t.Fatal(err)
	}
	got, err := Decode(w.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	g := &got.Runs[0]
	if _, ok := g.Values["bad"]; ok || len(g.CDFs[0].X) != 1 || len(g.Series[0].V) != 1 || len(g.Buckets[0].Quantiles) != 1 {
		t.Errorf("%+v", g)
	}
	if !math.IsNaN(r.Values["bad"]) {
		t.Error("Encode changed what it was given")
	}
}

func TestLoadErrors(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "results.json")
	for _, c := range []struct{ json, flows, want string }{
		{"{\n\"format\": 1,\n oops", "", "results.json: line 3: "},
		{"{\n\"format\": 1,\n\"runs\": [\n{\"seed\": \"x\"}]}", "", "results.json: line 4: runs.seed: a string does not fit"},
		{`{"format": 9}`, "", "format 9: this program reads format 1"},
		{`{"format": 1, "runs": [{"name": "a", "series": [{"name": "q", "t": [1], "v": []}]}]}`, "", `run 0 (a): series "q"`},
		{`{"format": 1, "runs": [{"name": "a", "cdfs": [{"name": "q", "x": [2, 1], "f": [0.5, 1]}]}]}`, "", "must not fall"},
		{`{"format": 1}`, "a,b\n", "flows.csv: "},
		{`{"format": 1}`, strings.Join(FlowColumns, ",") + "\n0,a,1,h1,h2,,10,0,0,0,0,0\n", "flows.csv: line 2: run 0: there are 0"},
		{`{"format": 1, "runs": [{}]}`, strings.Join(FlowColumns, ",") + "\n0,a,1,h1,h2,,10,0,x,0,0,0\n", `flows.csv: line 2: fct_s: "x" is not`},
	} {
		for name, text := range map[string]string{path: c.json, filepath.Join(dir, "flows.csv"): c.flows} {
			os.Remove(name)
			if text == "" {
				continue
			}
			if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\nerror %v\nwant  %s", c.json, err, c.want)
		}
	}
	if _, err := Load(filepath.Join(dir, "none")); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("error %v", err)
	}
}

func TestFileName(t *testing.T) {
	for in, want := range map[string]string{"HPCC+win": "hpcc+win", "../../etc": "etc", "": "unnamed", "日本": "unnamed", "a  b//c": "a-b-c", "cc_U": "cc_u"} {
		if got := FileName(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if n := len(FileName(strings.Repeat("x", 1000))); n > 100 {
		t.Errorf("%d letters", n)
	}
}

// Whatever Decode accepts is written and read back alike.
func FuzzDecode(f *testing.F) {
	var w bytes.Buffer
	if err := Encode(&w, example()); err != nil {
		f.Fatal(err)
	}
	f.Add(w.Bytes())
	f.Add([]byte(`{"format":1,"runs":[{"checks":[{"got":null}],"values":{"a":1e308}}]}`))
	f.Add([]byte(`{"format":1,"runs":[null,{"series":[null]}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := Decode(b)
		if err != nil {
			return
		}
		var w bytes.Buffer
		if err := Encode(&w, a); err != nil {
			t.Fatal(err)
		}
		c, err := Decode(w.Bytes())
		if err != nil {
			t.Fatalf("%v\n%s", err, w.Bytes())
		}
		if d := cmp.Diff(a, c, cmpopts.EquateNaNs(), cmpopts.EquateEmpty()); d != "" {
			t.Error(d)
		}
	})
}

func FuzzDecodeFlows(f *testing.F) {
	var w bytes.Buffer
	if err := EncodeFlows(&w, example().Runs); err != nil {
		f.Fatal(err)
	}
	f.Add(w.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		runs := make([]Run, 2)
		if err := DecodeFlows(bytes.NewReader(b), runs); err != nil {
			return
		}
		var w bytes.Buffer
		if err := EncodeFlows(&w, runs); err != nil {
			t.Fatal(err)
		}
		if err := DecodeFlows(&w, make([]Run, 2)); err != nil {
			t.Fatal(err)
		}
	})
}
