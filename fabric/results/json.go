package results

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
)

// Encode writes f as results.json, without its flows.
func Encode(w io.Writer, f *File) error {
	c := finiteFile(f)
	c.Format = Format
	b, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("results of %s: %w", f.Scenario, err)
	}
	_, err = w.Write(layout(b))
	return err
}

// layout indents compact JSON, but keeps lists of numbers on one line: a
// series would fill a page otherwise.
func layout(b []byte) []byte {
	var out bytes.Buffer
	if err := json.Indent(&out, b, "", "  "); err != nil {
		return b // json.Marshal does not write what json.Indent refuses
	}
	in := out.Bytes()
	flat := make([]byte, 0, len(in))
	quoted := false
	for i := 0; i < len(in); i++ {
		switch c := in[i]; {
		case quoted && c == '\\':
			flat = append(flat, c)
			i++
		case c == '"':
			quoted = !quoted
		case c == '[' && !quoted:
			if n := bytes.IndexAny(in[i:], "\"{]"); n >= 0 && in[i+n] == ']' && bytes.IndexByte(in[i+1:i+n], '[') < 0 {
				flat = appendList(flat, in[i:i+n+1])
				i += n
				continue
			}
		}
		flat = append(flat, in[i])
	}
	return append(flat, '\n')
}

// appendList appends a list of numbers without its white space.
func appendList(dst, list []byte) []byte {
	for _, c := range list {
		if c != ' ' && c != '\n' {
			dst = append(dst, c)
		}
	}
	return dst
}

func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// finiteFile returns f without numbers that JSON cannot hold. It shares what
// needs no change with f.
func finiteFile(f *File) *File {
	c := *f
	c.Runs = slices.Clone(f.Runs)
	if c.Runs == nil {
		c.Runs = []Run{}
	}
	for i := range c.Runs {
		r := &c.Runs[i]
		for _, v := range []*float64{&r.VirtualTime, &r.WallTime} {
			if !isFinite(*v) {
				*v = 0
			}
		}
		r.Values = finiteMap(r.Values)
		r.Buckets = slices.Clone(r.Buckets)
		for k := range r.Buckets {
			b := &r.Buckets[k]
			b.Quantiles = finiteMap(b.Quantiles)
			if !isFinite(b.Mean) {
				b.Mean = 0
			}
		}
		r.CDFs = slices.Clone(r.CDFs)
		for k := range r.CDFs {
			r.CDFs[k].X, r.CDFs[k].F = finitePoints(r.CDFs[k].X, r.CDFs[k].F)
		}
		r.Series = slices.Clone(r.Series)
		for k := range r.Series {
			r.Series[k].T, r.Series[k].V = finitePoints(r.Series[k].T, r.Series[k].V)
		}
	}
	return &c
}

// finiteMap returns m without values that are not finite, never nil.
func finiteMap(m map[string]float64) map[string]float64 {
	out := maps.Clone(m)
	if out == nil {
		out = map[string]float64{}
	}
	maps.DeleteFunc(out, func(_ string, v float64) bool { return !isFinite(v) })
	return out
}

// finitePoints returns the points whose two numbers are finite.
func finitePoints(a, b []float64) (x, y []float64) {
	n := min(len(a), len(b))
	x, y = make([]float64, 0, n), make([]float64, 0, n)
	for i := range n {
		if isFinite(a[i]) && isFinite(b[i]) {
			x, y = append(x, a[i]), append(y, b[i])
		}
	}
	return x, y
}

// checkJSON is Check with a number that may be missing.
type checkJSON struct {
	Text     string     `json:"text"`
	Run      string     `json:"run,omitempty"`
	Deviates string     `json:"deviates,omitempty"`
	OK       bool       `json:"ok"`
	Got      *float64   `json:"got"`
	Why      string     `json:"why,omitempty"`
	Values   []Estimate `json:"values,omitempty"`
}

// MarshalJSON writes a Got that is no finite number as null, and leaves out such values.
func (c Check) MarshalJSON() ([]byte, error) {
	j := checkJSON{Text: c.Text, Run: c.Run, Deviates: c.Deviates, OK: c.OK, Why: c.Why, Values: c.Values}
	if isFinite(c.Got) {
		j.Got = &c.Got
	}
	j.Values = slices.DeleteFunc(slices.Clone(j.Values), func(e Estimate) bool { return !isFinite(e.Mean) })
	return json.Marshal(j)
}

// UnmarshalJSON reads a Got of null as NaN.
func (c *Check) UnmarshalJSON(b []byte) error {
	var j checkJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*c = Check{Text: j.Text, Run: j.Run, Deviates: j.Deviates, OK: j.OK, Got: math.NaN(), Why: j.Why, Values: j.Values}
	if j.Got != nil {
		c.Got = *j.Got
	}
	return nil
}

// Decode reads results.json. Errors name the line.
func Decode(b []byte) (*File, error) {
	f, err := decodeFile(b)
	if err != nil {
		return nil, atLine(b, err)
	}
	if f.Format != Format {
		return nil, fmt.Errorf("format %d: this program reads format %d; run the scenario again", f.Format, Format)
	}
	for i := range f.Runs {
		if err := f.Runs[i].check(); err != nil {
			return nil, fmt.Errorf("run %d (%s): %w", i, f.Runs[i].Name, err)
		}
	}
	return f, nil
}

// atLine adds the line to an error of encoding/json.
func atLine(b []byte, err error) error {
	var offset int64
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &kind):
		offset = kind.Offset
		err = fmt.Errorf("%s: a %s does not fit here", kind.Field, kind.Value)
	default:
		return err
	}
	offset = min(offset, int64(len(b)))
	return fmt.Errorf("line %d: %w", 1+bytes.Count(b[:offset], []byte("\n")), err)
}

// check refuses what no run can have measured and what would mislead a reader.
func (r *Run) check() error {
	for i := range r.CDFs {
		if err := r.CDFs[i].check(); err != nil {
			return fmt.Errorf("cdf %q: %w", r.CDFs[i].Name, err)
		}
	}
	for i := range r.Series {
		s := &r.Series[i]
		if len(s.T) != len(s.V) {
			return fmt.Errorf("series %q of %q: %d times and %d values", s.Name, s.Object, len(s.T), len(s.V))
		}
		if !slices.IsSorted(s.T) {
			return fmt.Errorf("series %q of %q: times go backwards", s.Name, s.Object)
		}
		if s.Shape != ShapeStep && s.Shape != ShapeMean && s.Shape != ShapeLine {
			return fmt.Errorf("series %q of %q: shape %q is not one of mean, line or nothing", s.Name, s.Object, s.Shape)
		}
	}
	return nil
}

func (c *CDF) check() error {
	if len(c.X) != len(c.F) {
		return fmt.Errorf("%d values and %d shares", len(c.X), len(c.F))
	}
	if !slices.IsSorted(c.X) || !slices.IsSorted(c.F) {
		return errors.New("a distribution must not fall")
	}
	if n := len(c.F); n > 0 && (c.F[0] < 0 || c.F[n-1] > 1) {
		return errors.New("a share must be from 0 to 1")
	}
	return nil
}
