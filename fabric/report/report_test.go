package report

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"gswitch/fabric/goldentest"
	"gswitch/fabric/results"
)

// small is synthetic, and small enough to read its page.
func small() *results.File {
	run := func(name string, v float64) results.Run {
		return results.Run{
			Name: name, Engine: "sim", Seed: 1, Digest: "00ff" + name, VirtualTime: 0.01, WallTime: 2, FrameHops: 4_000_000,
			Values:  map[string]float64{"slowdown_p99": v, "queue_max_bytes": 1048 * v, "pause_share": v / 1000},
			Buckets: []results.Bucket{{Label: "<= 1K", MaxBytes: 1000, N: 3, Mean: v, Quantiles: map[string]float64{"p50": v, "p99": 2 * v}}, {Label: "<= 1M", MaxBytes: 1000_000}},
			CDFs:    []results.CDF{results.NewCDF("slowdown", "", []float64{1, v, 2 * v})},
			Series:  []results.Series{{Name: "queue", Object: "sw:1", Unit: "bytes", T: []float64{0, 1e-3, 2e-3}, V: []float64{0, 1000 * v, 0}}},
			Checks:  []results.Check{{Text: "slowdown_p99 < 2", OK: v < 2, Got: v}},
		}
	}
	return &results.File{Format: 1, Scenario: "small", Title: "Synthetic and small", Version: "test", Runs: []results.Run{run("one", 1.5), run("two", 3)}}
}

func TestTextGolden(t *testing.T) {
	var w bytes.Buffer
	if err := Text(&w, small(), TextOptions{}); err != nil {
		t.Fatal(err)
	}
	goldentest.Compare(t, "small.txt", w.String())
}

func TestHTMLGolden(t *testing.T) {
	var w bytes.Buffer
	if err := HTML(&w, small()); err != nil {
		t.Fatal(err)
	}
	goldentest.Compare(t, "small.html", w.String())
}

func TestTextFits(t *testing.T) {
	f := synthetic([]string{"30%", "50%", "70%"}, "hpcc", "dcqcn", "an algorithm with a long name", "x")
	for _, width := range []int{60, 100, 200} {
		var w bytes.Buffer
		if err := Text(&w, f, TextOptions{Width: width}); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(w.String()) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > width {
				t.Errorf("%d columns in %d: %s", n, width, line)
			}
		}
		if strings.Contains(w.String(), "\x1b") {
			t.Error("colours without a terminal")
		}
	}
}

// Names are shown in full, also those that are wider than their column.
func TestTextNamesInFull(t *testing.T) {
	f := synthetic([]string{"1"}, "hpcc", "dcqcn")
	const name = "telemetry_edge_frames_skipped_total"
	f.Runs[0].Values[name], f.Runs[1].Values[name] = 7, 12345
	var w bytes.Buffer
	if err := Text(&w, f, TextOptions{Width: 80}); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile("(?m)^" + name + "( +|\n +)7 +12,345$").MatchString(w.String()) {
		t.Errorf("%s is not shown:\n%s", name, &w)
	}
}

// A claim about several seeds stands with the interval of each value: in the table of the
// page, and on a terminal where it failed.
func TestIntervalsOfClaims(t *testing.T) {
	f := small()
	f.Checks = []results.Check{
		{Text: "a.fct_p99_seconds < b.fct_p99_seconds", Got: 1, Why: "why", Values: []results.Estimate{
			results.NewEstimate("a.fct_p99_seconds", []float64{3e-6, 3e-6, 6e-6}), results.NewEstimate("b.fct_p99_seconds", []float64{1e-6, 2e-6}), results.NewEstimate("c", []float64{7})}},
		{Text: "held", OK: true, Why: "sure", Values: []results.Estimate{results.NewEstimate("d", []float64{8, 8, 8})}},
	}
	var page, text bytes.Buffer
	if err := HTML(&page, f); err != nil {
		t.Fatal(err)
	}
	if err := Text(&text, f, TextOptions{Width: 200}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Join(strings.Fields(text.String()), " ") // those that were wrapped in one
	for _, want := range []string{"a.fct_p99_seconds 4 µs ± 4.30 µs of 3 seeds", "b.fct_p99_seconds 1.50 µs of 2 seeds", "c 7 of 1 seed", "d 8 ± 0 of 3 seeds"} {
		if !strings.Contains(page.String(), `<div class="note">`+want+"</div>") {
			t.Errorf("the page has no %q", want)
		}
		if got := strings.Contains(lines, strings.ReplaceAll(want, "µ", "u")); got != !strings.HasPrefix(want, "d") {
			t.Errorf("%q stands on the terminal: %v", want, got)
		}
	}
}

// hostile has what would break out of the page if it were not escaped.
func hostile() *results.File {
	const evil = `</title></svg><script>alert("x")</script>'" onload=x &amp; ` + "\x1b[31m\x00"
	f := synthetic([]string{"1"}, evil, "b"+evil)
	f.Title, f.Figure, f.Version, f.Scenario = evil, evil, evil, evil
	f.Params[0] = results.Param{Name: evil, Value: evil}
	r := &f.Runs[0]
	r.Engine, r.Digest = evil, evil
	r.Values[evil] = 1
	r.Buckets[0].Label = evil
	r.CDFs[0].Name, r.CDFs[0].Unit = evil, evil
	r.Series[1].Object, r.Series[1].Name, r.Series[2].Unit = evil, evil, evil
	r.Checks[0] = results.Check{Text: evil, Why: evil, Got: math.NaN(), Values: []results.Estimate{results.NewEstimate(evil, []float64{1, 2})}}
	return f
}

func TestHTMLEscapes(t *testing.T) {
	var w bytes.Buffer
	if err := HTML(&w, hostile()); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(w.String(), "<script") {
		t.Error("a script")
	}
	for _, bad := range []string{"http://", "https://", "src=", "@import", "url("} {
		if strings.Contains(w.String(), bad) {
			t.Errorf("the page asks for something else: %s", bad)
		}
	}
	var text bytes.Buffer
	if err := Text(&text, hostile(), TextOptions{}); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(text.String(), "\x1b\x00") {
		t.Error("control characters on the terminal")
	}
}

// Every drawing of a page is well-formed and has no place that is no number.
func TestDrawingsAreWellFormed(t *testing.T) {
	for _, f := range []*results.File{synthetic([]string{"50%"}, "hpcc"), synthetic([]string{"30%", "50%", "70%"}, "hpcc", "dcqcn", "timely"), hostile(), extremes(), {}} {
		var w bytes.Buffer
		if err := HTML(&w, f); err != nil {
			t.Fatal(err)
		}
		if w.Len() > 4<<20 {
			t.Errorf("a page of %d bytes", w.Len())
		}
		for _, fig := range strings.Split(w.String(), "<figure>")[1:] {
			svg, _, _ := strings.Cut(fig, "</figure>")
			d := xml.NewDecoder(strings.NewReader(svg))
			for {
				tok, err := d.Token()
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatalf("%v\n%.600s", err, svg)
				}
				if e, ok := tok.(xml.StartElement); ok {
					for _, a := range e.Attr {
						if slices.Contains([]string{"d", "x", "y", "cx", "cy", "width", "height"}, a.Name.Local) && (strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf")) {
							t.Fatalf("%s of %s is %s", a.Name.Local, e.Name.Local, a.Value)
						}
					}
				}
			}
		}
	}
}

// extremes are inputs at the edge: nothing, constants, tiny and huge numbers,
// many objects, long series.
func extremes() *results.File {
	f := &results.File{Scenario: "edge"}
	for i, v := range []float64{0, 1, -5, 1e-12, 1e18, 1} {
		r := results.Run{Name: fmt.Sprint("run ", i), Values: map[string]float64{"slowdown_mean": v, "drops_total": v}}
		r.CDFs = []results.CDF{results.NewCDF("constant", "bytes", []float64{v, v}), {Name: "empty"}}
		r.Buckets = []results.Bucket{{Label: "<= 1", N: 1, Mean: v, Quantiles: map[string]float64{"p50": v, "p95": 1 + v}}}
		for o := range 100 {
			r.Series = append(r.Series, results.Series{Name: "many", Object: fmt.Sprint("o", o), T: []float64{v}, V: []float64{v}})
		}
		r.Series = append(r.Series, results.Series{Name: "none"})
		f.Runs = append(f.Runs, r)
	}
	long := results.Series{Name: "long", Shape: results.ShapeLine}
	for i := range 300_000 {
		long.T, long.V = append(long.T, float64(i)), append(long.V, float64(i%977))
	}
	f.Runs[0].Series = append(f.Runs[0].Series, long)
	return f
}

// thin keeps the extremes of every column, in order, and invents nothing.
func TestThin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, columns := rapid.IntRange(1, 3000).Draw(t, "n"), rapid.IntRange(10, 50).Draw(t, "columns")
		peak := rapid.IntRange(0, n-1).Draw(t, "peak")
		trough := rapid.IntRange(0, n-1).Draw(t, "trough")
		x, y := make([]float64, n), make([]float64, n)
		for i := range x {
			x[i], y[i] = float64(i), float64(i%7)
		}
		y[trough] = -100
		y[peak] = 100
		s := scale{kind: linear, lo: 0, hi: float64(n)}
		tx, ty := thin(x, y, columns, &s)
		if len(tx) > max(n, 4*(columns+1)) || !slices.IsSorted(tx) || slices.Max(ty) != slices.Max(y) || slices.Min(ty) != slices.Min(y) || tx[0] != 0 || tx[len(tx)-1] != x[n-1] {
			t.Fatalf("%d of %d points", len(tx), n)
		}
		if n > 4*(columns+1) && len(tx) > 4*(columns+1) {
			t.Fatalf("%d points in %d columns", len(tx), columns)
		}
		for i := range tx {
			if y[int(tx[i])] != ty[i] {
				t.Fatalf("(%v, %v) was not there", tx[i], ty[i])
			}
		}
	})
}

func TestQuantity(t *testing.T) {
	for _, c := range []struct {
		v    float64
		unit string
		want string
	}{
		{0, "B", "0 B"}, {1048, "B", "1.05 kB"}, {1000, "B", "1 kB"}, {0.0000035, "s", "3.50 µs"}, {1e-9, "s", "1 ns"}, {9.5e10, "b/s", "95 Gb/s"},
		{0.0012, "%", "0.12 %"}, {1234567, "count", "1,234,567"}, {1.018, "", "1.02"}, {math.NaN(), "s", "-"},
	} {
		if got := quantity(c.v, c.unit); got != c.want {
			t.Errorf("%v %s: %q, want %q", c.v, c.unit, got, c.want)
		}
	}
}

func TestTicks(t *testing.T) {
	labels := func(ticks []tick, _ string) string {
		var l []string
		for _, t := range ticks {
			if t.label != "" {
				l = append(l, t.label)
			}
		}
		return strings.Join(l, " ")
	}
	for _, c := range []struct {
		s    scale
		want string
	}{
		{scale{kind: linear, hi: 400_000, unit: "B"}, "0 100 200 300 400"},
		{scale{kind: linear, hi: 1, unit: "%"}, "0 20 40 60 80 100"},
		{scale{kind: logarithmic, lo: 1, hi: 100}, "1 2 5 10 20 50 100"},
		{scale{kind: logarithmic, lo: 1, hi: 1.5}, "1.0 1.1 1.2 1.3 1.4 1.5"},
		{scale{kind: nines, lo: 0.9, hi: 0.9999}, "90 % 95 % 99 % 99.5 % 99.9 % 99.95 % 99.99 %"},
	} {
		if got := labels(c.s.ticks(5)); got != c.want {
			t.Errorf("%+v: %s, want %s", c.s, got, c.want)
		}
	}
}

func TestCompare(t *testing.T) {
	a, b := small(), small()
	b.Runs[0].Values["slowdown_p99"] = 3
	b.Runs[0].Checks[0].OK = false
	b.Runs[1].Name = "other"
	c := Compare([]string{"A", "B"}, []*results.File{a, b})
	if len(c.Runs) != 1 || c.Runs[0].Run != "one" || len(c.Runs[0].Flipped) != 1 || len(c.Unmatched) != 2 {
		t.Fatalf("%+v", c)
	}
	beyond, err := c.Beyond("slowdown_*", 0.5)
	if err != nil || len(beyond) != 1 {
		t.Errorf("%v %v", beyond, err)
	}
	if beyond, err := c.Beyond("slowdown_*", 1); err != nil || len(beyond) != 0 {
		t.Errorf("%v %v", beyond, err)
	}
	if _, err := c.Beyond("[", 1); err == nil {
		t.Error("a broken pattern")
	}
	var w bytes.Buffer
	if err := c.Text(&w, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	goldentest.Compare(t, "compare.txt", w.String())
}
