package scenario

import (
	"fmt"
	"math"
	"strings"
)

// scales are the units in which values are written, by the last part of their
// names, smallest first. They are units of expectations.
var scales = map[string][]string{
	"bytes":   {"B", "KB", "MB", "GB"},
	"seconds": {"ns", "us", "ms", "s"},
	"bps":     {"bps", "kbps", "Mbps", "Gbps", "Tbps"},
	"share":   {"%"},
}

// quantity writes the value of a key with four digits, as an expectation would
// have it: 27.1Gbps.
func quantity(key string, x float64) string {
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return short(x)
	}
	best := ""
	for i, u := range scales[key[strings.LastIndexByte(key, '_')+1:]] {
		if i == 0 || math.Abs(x) >= units[u] {
			best = u
		}
	}
	if best == "" {
		return short(x)
	}
	return short(x/units[best]) + best
}

// short writes a number with four digits, whole numbers below a billion with all.
func short(x float64) string {
	if x == math.Trunc(x) && math.Abs(x) < 1e9 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.4g", x)
}
