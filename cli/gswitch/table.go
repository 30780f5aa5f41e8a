package gswitch

import (
	"fmt"

	"gswitch/units"
)

// rate writes the rate of a port as it was configured.
func rate(bits uint64) string { return units.Rate(bits).String() }

// size writes bytes with a binary unit and three digits.
func size(n uint64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	v, i := float64(n), 0
	for v >= 1024 && i < len(units)-1 {
		v, i = v/1024, i+1
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.3g %s", v, units[i])
}
