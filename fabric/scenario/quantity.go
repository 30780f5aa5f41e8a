package scenario

import (
	"fmt"
	"math"
	"strings"

	"gswitch/units"
)

// quantity formats the value of a key with four digits, as an expectation would write it:
// 27.1Gbps. The last part of a key is its unit.
func quantity(key string, x float64) string {
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return short(x)
	}
	switch key[strings.LastIndexByte(key, '_')+1:] {
	case "bytes":
		return units.Bytes.Brief(x)
	case "seconds":
		return units.Time.Brief(x * 1e9)
	case "bps":
		return units.Bits.Brief(x)
	case "share":
		return short(100*x) + "%"
	}
	return short(x)
}

// short formats a number with four digits, whole numbers below a billion with all.
func short(x float64) string {
	if x == math.Trunc(x) && math.Abs(x) < 1e9 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.4g", x)
}
