// Package options describes the options of what is registered by name, such as
// a congestion control or a scheme of loss recovery: their units, defaults and
// sources, and how their values are read from text.
package options

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"gswitch/frame"
	"gswitch/units"
)

// Unit is the kind of quantity that an option is, and so how it is written.
type Unit string

// Units of options.
const (
	Number Unit = "number" // 0.95
	Count  Unit = "count"  // 5
	Rate   Unit = "rate"   // 40Mbps, 1.5Gbps; bit/s
	Bytes  Unit = "bytes"  // 80B, 10MB; MB = 10^6
	Time   Unit = "time"   // 50us, 1.5ms
	Flag   Unit = "flag"   // true, false
	Choice Unit = "choice" // one of Param.Choices
)

// Param describes an option.
type Param struct {
	Name    string   `json:"name"`
	Unit    Unit     `json:"unit"`
	Default string   `json:"default"`       // a value as one would write it, or a rule in words, which begins with "="
	Doc     string   `json:"doc"`           // what it does
	Source  string   `json:"source"`        // where the default comes from
	Min     float64  `json:"min"`           // least value, in base units (bit/s, bytes, ns)
	Max     float64  `json:"max,omitempty"` // greatest value; 0 = no limit
	Choices []string `json:"choices,omitempty"`
}

// Rule says whether the default depends on the queue pair's surroundings.
func (p *Param) Rule() bool { return strings.HasPrefix(p.Default, "=") }

// Check says what is wrong with a description.
func (p *Param) Check() error {
	if p.Name == "" || p.Doc == "" || p.Source == "" {
		return fmt.Errorf("option %q lacks a name, a description or a source", p.Name)
	}
	if !slices.Contains([]Unit{Number, Count, Rate, Bytes, Time, Flag, Choice}, p.Unit) {
		return fmt.Errorf("option %q has the unit %q, which there is not", p.Name, p.Unit)
	}
	if p.Rule() {
		return nil
	}
	_, err := p.parse(p.Default)
	return err
}

// parse reads a value into base units: bit/s, bytes, ns; flags are 0 and 1, a
// choice is its index.
func (p *Param) parse(text string) (float64, error) {
	text = strings.TrimSpace(text)
	switch p.Unit {
	case Flag:
		switch text {
		case "true", "yes", "on":
			return 1, nil
		case "false", "no", "off":
			return 0, nil
		}
		return 0, fmt.Errorf("%s: %q is neither true nor false", p.Name, text)
	case Choice:
		if i := slices.Index(p.Choices, text); i >= 0 {
			return float64(i), nil
		}
		return 0, fmt.Errorf("%s: %q is not one of %s", p.Name, text, strings.Join(p.Choices, ", "))
	}
	v, err := quantity(text, p.Unit)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", p.Name, err)
	}
	if p.Unit == Count && v != math.Trunc(v) {
		return 0, fmt.Errorf("%s: %q is not a whole number", p.Name, text)
	}
	if v < p.Min || p.Max != 0 && v > p.Max {
		return 0, fmt.Errorf("%s: %s is out of range; it must be %s", p.Name, text, p.Range())
	}
	return v, nil
}

// Range says in words which values are allowed; "" for flags and choices.
func (p *Param) Range() string {
	switch {
	case p.Unit == Flag || p.Unit == Choice:
		return ""
	case p.Max == 0:
		return "at least " + Format(p.Min, p.Unit)
	}
	return "from " + Format(p.Min, p.Unit) + " to " + Format(p.Max, p.Unit)
}

// quantities are the units that are written with a suffix.
var quantities = map[Unit]*units.Kind{Rate: units.Bits, Bytes: units.Bytes, Time: units.Time}

// quantity reads a decimal number with a suffix of the unit behind it. Zero
// needs none.
func quantity(text string, u Unit) (float64, error) {
	if kind := quantities[u]; kind != nil {
		return kind.Number(text)
	}
	if rest := strings.TrimLeft(text, "-.0123456789"); rest == text {
		return 0, fmt.Errorf("%q does not begin with a number", text)
	} else if rest != "" {
		return 0, fmt.Errorf("%q has a unit, but a plain number is wanted", text)
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number", text)
	}
	return v, nil
}

// Format writes v, in base units, with the suffix that gives a short number.
func Format(v float64, u Unit) string {
	if kind := quantities[u]; kind != nil {
		return kind.Full(v)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// Values are options as they were read.
type Values struct {
	params []Param
	v      []float64 // in base units; NaN where a rule applies
}

// Parse reads the given values of params, by name and in the notation of Param.
// Options that are left out have their defaults. The error names the option.
func Parse(params []Param, given map[string]string) (Values, error) {
	out := Values{params, make([]float64, len(params))}
	for _, key := range slices.Sorted(maps.Keys(given)) {
		if !slices.ContainsFunc(params, func(p Param) bool { return p.Name == key }) {
			return Values{}, fmt.Errorf("unknown option %q; %s", key, knownOptions(params))
		}
	}
	for i := range params {
		p := &params[i]
		text, ok := given[p.Name]
		if !ok {
			text = p.Default
		}
		if strings.HasPrefix(text, "=") && p.Rule() {
			out.v[i] = math.NaN()
			continue
		}
		v, err := p.parse(text)
		if err != nil {
			return Values{}, err
		}
		out.v[i] = v
	}
	return out, nil
}

func knownOptions(params []Param) string {
	if len(params) == 0 {
		return "there are none"
	}
	names := make([]string, len(params))
	for i, p := range params {
		names[i] = p.Name
	}
	return "known are " + strings.Join(names, ", ")
}

// get panics on a name that was not described: a mistake of the program that
// each construction shows.
func (v *Values) get(name string) (float64, *Param) {
	for i := range v.params {
		if v.params[i].Name == name {
			return v.v[i], &v.params[i]
		}
	}
	panic("option " + name + " is read but not described")
}

// Set says whether the option has a value; if not, its rule applies.
func (v *Values) Set(name string) bool { f, _ := v.get(name); return !math.IsNaN(f) }

// Float returns an option in base units (bit/s, bytes, ns), NaN where its rule applies.
func (v *Values) Float(name string) float64 { f, _ := v.get(name); return f }

// Time returns an option that is a span of time.
func (v *Values) Time(name string) frame.Time { f, _ := v.get(name); return frame.Time(math.Round(f)) }

// Int returns an option that is a count.
func (v *Values) Int(name string) int { f, _ := v.get(name); return int(f) }

// Flag returns an option that is true or false.
func (v *Values) Flag(name string) bool { f, _ := v.get(name); return f != 0 }

// Choice returns an option that is one of several words.
func (v *Values) Choice(name string) string { f, p := v.get(name); return p.Choices[int(f)] }

// Or returns v, or what the rule says if v was not given.
func Or(v, rule float64) float64 {
	if math.IsNaN(v) {
		return rule
	}
	return v
}
