package report

import (
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
)

// scaleKind says how values become places on an axis.
type scaleKind uint8

const (
	linear scaleKind = iota
	logarithmic
	nines   // a share: equal steps for 90 %, 99 %, 99.9 %, ...
	ordinal // values are 0, 1, 2 ..., named by scale.names
)

// scale maps values from lo to hi to an axis. It is gonum's plot.Normalizer and
// plot.Ticker.
type scale struct {
	kind   scaleKind
	lo, hi float64
	unit   string
	names  []string // of an ordinal scale
	marks  int      // about so many ticks have a label
}

// warp makes equal steps of what the kind of scale shows as equal steps.
func (s *scale) warp(v float64) float64 {
	switch s.kind {
	case logarithmic:
		return math.Log10(v)
	case nines:
		return -math.Log10(1 - v)
	}
	return v
}

// norm returns the place of v, 0 at the beginning of the axis and 1 at its end.
// Values beyond the ends lie on the ends, so that a log axis has a place for zero.
func (s *scale) norm(v float64) float64 {
	v = min(max(v, s.lo), s.hi)
	lo, hi := s.warp(s.lo), s.warp(s.hi)
	if hi == lo {
		return 0.5
	}
	return (s.warp(v) - lo) / (hi - lo)
}

// Normalize is plot.Normalizer's; the scale knows its ends itself.
func (s *scale) Normalize(_, _, v float64) float64 { return s.norm(v) }

// Ticks is plot.Ticker's.
func (s *scale) Ticks(_, _ float64) []plot.Tick {
	marks, _ := s.ticks(s.marks)
	out := make([]plot.Tick, len(marks))
	for i, m := range marks {
		out[i] = plot.Tick{Value: m.v, Label: printable(shorten(m.label, longestTick))}
	}
	return out
}

// longestTick is how many letters of a name are shown at its place on an axis.
const longestTick = 22

// tick is a mark on an axis; one without a label is minor.
type tick struct {
	v     float64
	label string
}

// ticks returns about n labelled marks and the unit with its SI prefix that
// belongs behind the axis' name.
func (s *scale) ticks(n int) ([]tick, string) {
	switch s.kind {
	case logarithmic:
		if s.hi < s.lo*2 {
			return s.linearTicks(n)
		}
		return s.logTicks(n), s.unit
	case nines:
		return s.ninesTicks(), s.unit
	case ordinal:
		return s.nameTicks(n), s.unit
	}
	return s.linearTicks(n)
}

// linearTicks marks multiples of 1, 2 or 5 times a power of ten.
func (s *scale) linearTicks(n int) ([]tick, string) {
	span := s.hi - s.lo
	if span <= 0 {
		return []tick{{s.lo, quantity(s.lo, s.unit)}}, s.unit
	}
	step := niceStep(span / float64(n))
	unit, factor := s.unit, 1.0
	switch {
	case unit == "%":
		factor = 0.01
	case unit == "s" || unit == "B" || unit == "b/s" || math.Max(math.Abs(s.lo), math.Abs(s.hi)) >= 1e4:
		var p string
		p, factor = prefix(math.Max(math.Abs(s.lo), math.Abs(s.hi)))
		unit = p + unit
	}
	digits := max(0, int(-math.Floor(math.Log10(step/factor)+1e-9)))
	var out []tick
	for i := math.Ceil(s.lo/step - 1e-9); i*step <= s.hi+step*1e-9; i++ {
		label := strconv.FormatFloat(i*step/factor, 'f', digits, 64)
		if i == 0 {
			label = "0"
		}
		out = append(out, tick{i * step, label})
	}
	return out, unit
}

// niceStep returns the next of 1, 2, 5 times a power of ten.
func niceStep(v float64) float64 {
	e := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if v <= m*e*(1+1e-9) {
			return m * e
		}
	}
	return 10 * e
}

// logTicks marks powers of ten, and 2 and 5 times those if the axis is short.
func (s *scale) logTicks(n int) []tick {
	var out []tick
	decades := math.Log10(s.hi / s.lo)
	skip := max(1, int(math.Ceil(decades/float64(n))))
	for e := math.Floor(math.Log10(s.lo)); e <= math.Ceil(math.Log10(s.hi)); e++ {
		for m := 1.0; m < 10; m++ {
			v := m * math.Pow(10, e)
			if v < s.lo*(1-1e-9) || v > s.hi*(1+1e-9) {
				continue
			}
			label := ""
			if m == 1 && int(e)%skip == 0 || decades < 2.5 && (m == 2 || m == 5) || decades < 0.9 && m != 7 && m != 9 {
				p, f := prefix(v)
				label = strconv.FormatFloat(v/f, 'g', 3, 64) + p // v is 1, 2 or 5, or nearly so, times a power of ten
				if s.unit == "" && v < 1 {
					label = significant(v)
				}
			}
			out = append(out, tick{v, label})
		}
	}
	return out
}

// ninesTicks marks 90 %, 99 %, ... and what a reader looks for between them.
func (s *scale) ninesTicks() []tick {
	var out []tick
	for e := 1; e < 7; e++ {
		for _, m := range []float64{1, 0.5, 0.2} {
			v := 1 - m*math.Pow(10, -float64(e))
			if v < s.lo-1e-9 || v > s.hi+1e-9 {
				continue
			}
			label := ""
			if m != 0.2 {
				label = strings.TrimRight(strings.TrimRight(strconv.FormatFloat(v*100, 'f', e, 64), "0"), ".") + " %"
			}
			out = append(out, tick{v, label})
		}
	}
	return out
}

// nameTicks marks all, and names as many as there is room for.
func (s *scale) nameTicks(n int) []tick {
	out := make([]tick, len(s.names))
	skip := max(1, (len(s.names)+n-1)/n)
	for i, name := range s.names {
		out[i] = tick{v: float64(i)}
		if i%skip == 0 {
			out[i].label = name
		}
	}
	return out
}

// extent collects the range of values.
type extent struct {
	lo, hi   float64
	positive float64 // smallest above zero
	any      bool
}

func (e *extent) add(values ...float64) {
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		if !e.any {
			e.lo, e.hi, e.any = v, v, true
		}
		e.lo, e.hi = min(e.lo, v), max(e.hi, v)
		if v > 0 && (e.positive == 0 || v < e.positive) {
			e.positive = v
		}
	}
}

// linearFrom returns a linear scale that begins at zero, or below if there are
// negative values, and ends above the largest.
func (e *extent) linearFrom(unit string) scale {
	s := scale{kind: linear, lo: min(0, e.lo), hi: max(0, e.hi), unit: unit}
	if s.hi == s.lo {
		s.hi = s.lo + 1
	}
	step := niceStep((s.hi - s.lo) / 5)
	if s.hi > 0 {
		s.hi += (s.hi - s.lo) * 0.03
	}
	if s.lo < 0 {
		s.lo = math.Floor(s.lo/step) * step
	}
	return s
}

// log returns a logarithmic scale from the smallest positive value to the
// largest, at least from 1 to 2 of their first digit, widened to 1, 2 or 5.
func (e *extent) log(unit string) scale {
	if e.positive == 0 {
		return e.linearFrom(unit)
	}
	s := scale{kind: logarithmic, unit: unit, lo: niceBelow(e.positive), hi: niceStep(e.hi)}
	if s.hi <= s.lo*1.0001 {
		s.hi = s.lo * 2
	}
	if e.hi < s.lo*2 { // too short for 1, 2, 5: ticks as on a linear axis
		s.hi = s.lo + math.Ceil((max(e.hi, s.lo*1.2)-s.lo)/(s.lo/20))*s.lo/20
	}
	return s
}

// niceBelow returns the last of 1, 2, 5 times a power of ten up to v.
func niceBelow(v float64) float64 {
	e := math.Pow(10, math.Floor(math.Log10(v)+1e-12))
	for _, m := range []float64{5, 2} {
		if v >= m*e*(1-1e-9) {
			return m * e
		}
	}
	return e
}
