package units

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// Kind is what a quantity measures, with the units in which it is written.
type Kind struct {
	what     string
	examples string
	units    []unit
}

type unit struct {
	name   string
	factor uint64
	brief  bool // numbers with few digits are written in it
}

// The first unit of a factor is the one that is written, the largest first.
var (
	// Bits are rates in bit/s.
	Bits = &Kind{"rate", "10Gbps, 100Mbit or unlimited", []unit{
		{"Tbps", 1e12, true}, {"Gbps", 1e9, true}, {"Mbps", 1e6, true}, {"kbps", 1e3, true}, {"bps", 1, true},
		{"Tbit", 1e12, false}, {"Gbit", 1e9, false}, {"Mbit", 1e6, false}, {"kbit", 1e3, false}, {"bit", 1, false},
		{"Tbit/s", 1e12, false}, {"Gbit/s", 1e9, false}, {"Mbit/s", 1e6, false}, {"kbit/s", 1e3, false}, {"bit/s", 1, false},
		{"Tb/s", 1e12, false}, {"Gb/s", 1e9, false}, {"Mb/s", 1e6, false}, {"kb/s", 1e3, false}, {"b/s", 1, false},
		{"Kbps", 1e3, false}, {"Kbit", 1e3, false}, {"Kbit/s", 1e3, false}, {"Kb/s", 1e3, false},
	}}
	// Bytes are sizes in bytes.
	Bytes = &Kind{"size", "64KiB, 32MB or 1500B", []unit{
		{"GiB", 1 << 30, false}, {"MiB", 1 << 20, false}, {"KiB", 1 << 10, false}, {"kiB", 1 << 10, false},
		{"TB", 1e12, true}, {"GB", 1e9, true}, {"MB", 1e6, true}, {"kB", 1e3, true}, {"B", 1, true}, {"KB", 1e3, false},
	}}
	// Time are spans of time in nanoseconds.
	Time = &Kind{"duration", "1us, 200ms or 5s", []unit{
		{"h", 3600e9, false}, {"min", 60e9, false}, {"s", 1e9, true}, {"ms", 1e6, true}, {"us", 1e3, true}, {"ns", 1, true}, {"µs", 1e3, false},
	}}
)

// Names returns every spelling that is read. The first one of a unit is written.
func (k *Kind) Names() []string {
	names := make([]string, len(k.units))
	for i, u := range k.units {
		names[i] = u.name
	}
	return names
}

// Factor returns how many base units (bit/s, bytes, ns) a unit is, and whether
// it is one of this kind.
func (k *Kind) Factor(unit string) (float64, bool) {
	for _, u := range k.units {
		if u.name == unit {
			return float64(u.factor), true
		}
	}
	return 0, false
}

// Whole reads a decimal number with a unit behind it, in base units. The number
// may have a fraction as long as the result is whole; it is at most limit.
func (k *Kind) Whole(text string, limit uint64) (uint64, error) {
	number, factor, err := k.split(text)
	if err != nil {
		return 0, err
	}
	r, _ := new(big.Rat).SetString(number)
	r.Mul(r, new(big.Rat).SetInt(new(big.Int).SetUint64(factor)))
	if !r.IsInt() {
		return 0, k.bad(text, "it is finer than one "+k.base())
	}
	if !r.Num().IsUint64() || r.Num().Uint64() > limit {
		return 0, k.bad(text, "it is too large")
	}
	return r.Num().Uint64(), nil
}

// Number reads a decimal number with a unit behind it, in base units. Zero needs
// no unit.
func (k *Kind) Number(text string) (float64, error) {
	if v, err := strconv.ParseFloat(text, 64); err == nil && v == 0 {
		return 0, nil
	}
	negative := strings.HasPrefix(text, "-")
	number, factor, err := k.split(strings.TrimPrefix(text, "-"))
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, k.bad(text, "it must begin with a number")
	}
	if negative {
		v = -v
	}
	return v * float64(factor), nil
}

// split parts a text into its number, which is digits with at most one point
// between them, and what its unit is worth.
func (k *Kind) split(text string) (number string, factor uint64, err error) {
	i := 0
	for i < len(text) && (text[i] >= '0' && text[i] <= '9' || text[i] == '.') {
		i++
	}
	number, suffix := text[:i], strings.TrimLeft(text[i:], " ")
	if number == "" || len(number) > 24 || strings.Count(number, ".") > 1 || strings.HasPrefix(number, ".") || strings.HasSuffix(number, ".") {
		return "", 0, k.bad(text, "it must begin with a number")
	}
	if suffix == "" {
		return "", 0, k.bad(text, "the unit is missing")
	}
	for _, u := range k.units {
		if u.name == suffix {
			return number, u.factor, nil
		}
	}
	why := fmt.Sprintf("unknown unit %q", suffix)
	if n := Nearest(suffix, k.Names()); n != "" {
		why += fmt.Sprintf(", did you mean %q?", n)
	}
	return "", 0, k.bad(text, why)
}

func (k *Kind) bad(text, why string) error {
	return fmt.Errorf("%q is not a %s: %s; write %s", text, k.what, why, k.examples)
}

// base is the name of the base unit.
func (k *Kind) base() string {
	for _, u := range k.units {
		if u.factor == 1 {
			return u.name
		}
	}
	return ""
}

// exact writes v in the largest unit that gives a number without fraction.
func (k *Kind) exact(v uint64) string {
	for _, u := range k.units {
		if v != 0 && v%u.factor == 0 {
			return strconv.FormatUint(v/u.factor, 10) + u.name
		}
	}
	return "0" + k.base()
}

// Full writes v, in base units, with all its digits and a decimal unit that
// gives a short number.
func (k *Kind) Full(v float64) string {
	for _, u := range k.units {
		if u.brief && (math.Abs(v) >= float64(u.factor) || u.factor == 1) {
			return strconv.FormatFloat(v/float64(u.factor), 'g', -1, 64) + u.name
		}
	}
	return ""
}

// Brief writes v, in base units, with four digits and the largest decimal unit
// in which it is at least 1, or the smallest: 18.49Mbps.
func (k *Kind) Brief(v float64) string {
	for _, u := range k.units {
		// What four digits round up to the next unit is written in that.
		if x := v / float64(u.factor); u.brief && (math.Abs(x) >= 0.99995 || u.factor == 1) {
			if math.Abs(x) >= 999.95 {
				return fmt.Sprintf("%.0f%s", x, u.name)
			}
			return fmt.Sprintf("%.4g%s", x, u.name)
		}
	}
	return ""
}

// expression matches what Whole takes, as a regular expression.
func (k *Kind) expression() string {
	return `[0-9]+(\.[0-9]+)? ?(` + strings.Join(k.Names(), "|") + ")"
}
