package report

import (
	"fmt"
	"io"
	"maps"
	"math"
	"path"
	"slices"
	"strings"

	"gswitch/fabric/results"
)

// Comparison is several results side by side. Lists over files have an entry
// for each, in the order given; differences are against the first.
type Comparison struct {
	Files     []string    `json:"files"`
	Runs      []Matched   `json:"runs"`
	Unmatched []Unmatched `json:"unmatched,omitempty"`
	// Flipped are expectations between runs that held in some files only.
	Flipped []Flipped `json:"flipped,omitempty"`
}

// Matched is a run that all files have.
type Matched struct {
	Run     string       `json:"run"`
	Values  []Difference `json:"values"`
	KS      []Distance   `json:"ks,omitempty"`
	Flipped []Flipped    `json:"flipped,omitempty"`
}

// Difference is a scalar in each file; null where a file has none.
type Difference struct {
	Name     string     `json:"name"`
	Values   []*float64 `json:"values"`
	Relative []*float64 `json:"relative"` // (v-first)/|first|; null where that says nothing
}

// Distance is that of Kolmogorov and Smirnov between the distributions of each
// file and the first; null where a file has none.
type Distance struct {
	Name string     `json:"name"`
	D    []*float64 `json:"d"`
}

// Flipped is an expectation and in which files it held.
type Flipped struct {
	Text string `json:"text"`
	OK   []bool `json:"ok"`
}

// Unmatched is a run that not all files have.
type Unmatched struct {
	File string `json:"file"`
	Run  string `json:"run"`
}

// Compare matches the runs of files by their names, parameters and order (of
// seeds). Files of one run each are about that run,
// whatever it is called. names are of the files, of which there is at least one.
func Compare(names []string, files []*results.File) *Comparison {
	c := &Comparison{Files: names, Runs: []Matched{}}
	found := make([]map[string]*results.Run, len(files))
	labels := make([]map[string]string, len(files))
	for i, f := range files {
		found[i], labels[i] = keyed(f.Runs)
	}
	// Files of one run each are about that run, whatever it is called.
	alone := !slices.ContainsFunc(files, func(f *results.File) bool { return len(f.Runs) != 1 })
	for _, key := range keysOf(files[0].Runs) {
		group := make([]*results.Run, len(files))
		for i := range files {
			if group[i] = found[i][key]; alone {
				group[i] = &files[i].Runs[0]
			}
		}
		if !slices.Contains(group, nil) {
			c.Runs = append(c.Runs, match(labels[0][key], group))
			for i := range files {
				delete(found[i], key)
			}
		}
	}
	for i, f := range files {
		for _, key := range keysOf(f.Runs) {
			if found[i][key] != nil && !alone {
				c.Unmatched = append(c.Unmatched, Unmatched{names[i], labels[i][key]})
			}
		}
	}
	var lists [][]results.Check
	for _, f := range files {
		lists = append(lists, f.Checks)
	}
	c.Flipped = flipped(lists)
	return c
}

// keysOf returns what distinguishes runs in any file: name, parameters, and how
// many of the same came before.
func keysOf(runs []results.Run) []string {
	count := map[string]int{}
	keys := make([]string, len(runs))
	for i := range runs {
		var b strings.Builder
		fmt.Fprintf(&b, "%q", runs[i].Name)
		for _, k := range slices.Sorted(maps.Keys(runs[i].Params)) {
			if k != "seed" {
				fmt.Fprintf(&b, " %q=%q", k, runs[i].Params[k])
			}
		}
		key := b.String()
		keys[i] = fmt.Sprintf("%s %d", key, count[key])
		count[key]++
	}
	return keys
}

func keyed(runs []results.Run) (map[string]*results.Run, map[string]string) {
	byKey, names := map[string]*results.Run{}, map[string]string{}
	labels := results.Labels(runs)
	for i, key := range keysOf(runs) {
		byKey[key], names[key] = &runs[i], labels[i]
	}
	return byKey, names
}

// match puts one run of each file side by side.
func match(label string, group []*results.Run) Matched {
	m := Matched{Run: label, Values: []Difference{}}
	var flat []results.Run
	var checks [][]results.Check
	for _, r := range group {
		flat = append(flat, *r)
		checks = append(checks, r.Checks)
	}
	for _, k := range results.MeasuresOf(flat) {
		m.Values = append(m.Values, differ(k.Name, flat))
	}
	var names []string
	for i := range flat {
		for k := range flat[i].CDFs {
			indexOf(&names, flat[i].CDFs[k].Name)
		}
	}
	for _, name := range names {
		d := Distance{Name: name}
		first := findCDF(&flat[0], name)
		for i := range flat {
			var v *float64
			if c := findCDF(&flat[i], name); c != nil && first != nil {
				ks := results.KS(first, c)
				v = &ks
			}
			d.D = append(d.D, v)
		}
		m.KS = append(m.KS, d)
	}
	m.Flipped = flipped(checks)
	return m
}

func differ(name string, runs []results.Run) Difference {
	d := Difference{Name: name}
	first, known := runs[0].Values[name]
	for i := range runs {
		v, ok := runs[i].Values[name]
		if !ok {
			d.Values, d.Relative = append(d.Values, nil), append(d.Relative, nil)
			continue
		}
		d.Values = append(d.Values, &v)
		var relative *float64
		if r := (v - first) / math.Abs(first); known && v == first {
			relative = new(float64)
		} else if known && first != 0 {
			relative = &r
		}
		d.Relative = append(d.Relative, relative)
	}
	return d
}

// flipped returns the expectations that all lists have and that held in some.
func flipped(lists [][]results.Check) []Flipped {
	var out []Flipped
	for _, c := range lists[0] {
		f := Flipped{Text: c.Text}
		if c.Run != "" {
			f.Text = c.Run + ": " + c.Text
		}
		for _, list := range lists {
			if i := slices.IndexFunc(list, func(o results.Check) bool { return o.Text == c.Text && o.Run == c.Run }); i >= 0 {
				f.OK = append(f.OK, list[i].OK)
			}
		}
		if len(f.OK) == len(lists) && slices.Contains(f.OK, true) && slices.Contains(f.OK, false) {
			out = append(out, f)
		}
	}
	return out
}

// Beyond describes the values whose names match pattern (path.Match) and that
// differ from the first file's by more than the share tolerance, or that only
// some files have.
func (c *Comparison) Beyond(pattern string, tolerance float64) ([]string, error) {
	var out []string
	matched := false
	for _, m := range c.Runs {
		for _, d := range m.Values {
			ok, err := path.Match(pattern, d.Name)
			if err != nil {
				return nil, fmt.Errorf("%q: %w", pattern, err)
			}
			if !ok {
				continue
			}
			matched = true
			for i, v := range d.Values {
				r := d.Relative[i]
				if v != nil && r != nil && math.Abs(*r) <= tolerance {
					continue
				}
				out = append(out, fmt.Sprintf("%s: %s: %s in %s, %s in %s %s", m.Run, d.Name, cell(d, 0), c.Files[0], cell(d, i), c.Files[i], relative(r)))
			}
		}
	}
	if !matched {
		return nil, fmt.Errorf("%q: no value of a run that all files have is called so", pattern)
	}
	return out, nil
}

// equal says whether all files have the value, and the same.
func (d Difference) equal() bool {
	for _, v := range d.Values {
		if v == nil || d.Values[0] == nil || *v != *d.Values[0] {
			return false
		}
	}
	return true
}

func cell(d Difference, i int) string {
	if d.Values[i] == nil {
		return "-"
	}
	return quantity(*d.Values[i], unitOf(d.Name))
}

func relative(r *float64) string {
	if r == nil {
		return ""
	}
	return fmt.Sprintf("%+.1f %%", *r*100)
}

// Text writes the comparison: a table for each run, a column for each file.
func (c *Comparison) Text(w io.Writer, o TextOptions) error {
	if o.Width == 0 {
		o.Width = 100
	}
	t := &text{o: o}
	// The second line of a file's column is the difference to the first.
	n := max(1, (o.Width-labelWidth)/columnWidth/2*2)
	for i, name := range c.Files {
		fmt.Fprintf(&t.b, "%c  %s\n", 'A'+rune(i%26), printable(name))
	}
	for _, m := range c.Runs {
		values := m.Values
		if !o.Equal {
			values = slices.DeleteFunc(slices.Clone(values), Difference.equal)
		}
		columns := []string{"A"}
		for i := range c.Files[1:] {
			columns = append(columns, string('A'+rune((i+1)%26)), "vs A")
		}
		for from := 0; from < len(columns); from += n {
			to := min(from+n, len(columns))
			t.b.WriteByte('\n')
			t.columns(shorten(printable(m.Run), labelWidth+5), columns[from:to])
			for _, d := range values {
				t.row(labelOf(d.Name), to-from, func(i int) string {
					if i += from; i == 0 {
						return cell(d, 0)
					}
					if i%2 == 1 {
						return cell(d, (i+1)/2)
					}
					return relative(d.Relative[i/2])
				})
			}
			for _, d := range m.KS {
				t.row("KS of "+pretty(d.Name), to-from, func(i int) string {
					if i += from; i == 0 || i%2 == 1 || d.D[i/2] == nil {
						return " "
					}
					return significant(*d.D[i/2])
				})
			}
		}
		if k := len(m.Values) - len(values); k > 0 {
			fmt.Fprintf(&t.b, "%d values are the same\n", k)
		}
		t.flipped(m.Flipped)
	}
	t.flipped(c.Flipped)
	for _, u := range c.Unmatched {
		fmt.Fprintf(&t.b, "only in %s: %s\n", printable(u.File), printable(u.Run))
	}
	_, err := io.WriteString(w, t.b.String())
	return err
}

func labelOf(name string) string { return results.Measure{Name: name, Label: known(name)}.FullLabel() }

func known(name string) string {
	for _, m := range results.Measures {
		if m.Name == name {
			return m.Label
		}
	}
	return name
}

func (t *text) flipped(all []Flipped) {
	for _, f := range all {
		t.b.WriteString("flipped: " + printable(f.Text) + ":")
		for i, ok := range f.OK {
			verdict := t.paint(red, "FAILED")
			if ok {
				verdict = t.paint(green, "ok")
			}
			fmt.Fprintf(&t.b, " %c %s", 'A'+rune(i%26), verdict)
		}
		t.b.WriteByte('\n')
	}
}
