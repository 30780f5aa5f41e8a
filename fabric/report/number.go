package report

import (
	"math"
	"strconv"
	"strings"
)

// unitOf returns the unit that the last part of a value's name names.
func unitOf(name string) string {
	switch name[strings.LastIndexByte(name, '_')+1:] {
	case "seconds":
		return "s"
	case "bytes":
		return "B"
	case "bps":
		return "b/s"
	case "share":
		return "%"
	case "total":
		return "count"
	}
	return ""
}

// symbol returns the symbol of a unit as series and distributions name it.
func symbol(unit string) string {
	switch unit {
	case "bytes":
		return "B"
	case "bps", "bit/s":
		return "b/s"
	case "seconds":
		return "s"
	case "share":
		return "%"
	}
	return unit
}

// prefixes of SI from 10^-9 on.
var prefixes = []string{"n", "µ", "m", "", "k", "M", "G", "T", "P"}

// prefix returns the SI prefix that suits v and its factor.
func prefix(v float64) (string, float64) {
	e := 0
	if v = math.Abs(v); v > 0 && !math.IsInf(v, 0) {
		e = int(math.Floor(math.Log10(v)*(1+1e-12)/3 + 1e-12))
	}
	e = min(max(e, -3), len(prefixes)-4)
	return prefixes[e+3], math.Pow(1000, float64(e))
}

// significant writes v with three digits or a little more, without an exponent
// where that is readable.
func significant(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v):
		return "-"
	case math.IsInf(v, 0) || a >= 1e15:
		return strconv.FormatFloat(v, 'g', 3, 64)
	case a >= 100 || v == math.Trunc(v):
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a >= 0.01:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}

// thousands parts a whole number in groups of three.
func thousands(v float64) string {
	s := strconv.FormatFloat(math.Abs(v), 'f', 0, 64)
	var b strings.Builder
	if v < 0 {
		b.WriteByte('-')
	}
	for i := range len(s) {
		if i > 0 && (len(s)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// quantity writes v in unit, with an SI prefix where the unit has a symbol:
// "12.3 kB", "4.5 %", "1,234", "1.02".
func quantity(v float64, unit string) string {
	switch {
	case math.IsNaN(v):
		return "-"
	case unit == "%":
		return significant(v*100) + " %"
	case unit == "count" || unit == "" && math.Abs(v) >= 1e4:
		if v != math.Trunc(v) || math.Abs(v) >= 1e15 {
			return significant(v)
		}
		return thousands(v)
	case unit == "s" || unit == "B" || unit == "b/s":
		p, f := prefix(v)
		return significant(v/f) + " " + p + unit
	case unit == "":
		return significant(v)
	}
	return significant(v) + " " + unit
}
