package cli

import "fmt"

// Span writes nanoseconds with four digits, such as 12.34us.
func Span(ns uint64) string { return scaled(float64(ns), "ns", "us", "ms", "s") }

// Rate writes bit/s with four digits, such as 18.49Mbps: what was measured or
// worked out. What is configured is written in full (config.Rate).
func Rate(bits float64) string { return scaled(bits, "bps", "kbps", "Mbps", "Gbps", "Tbps") }

// scaled writes v in the largest unit in which it is at least 1, each being 1000
// of the one before.
func scaled(v float64, units ...string) string {
	i := 0
	for ; v >= 999.95 && i < len(units)-1; i++ {
		v /= 1000
	}
	if v >= 999.95 {
		return fmt.Sprintf("%.0f%s", v, units[i])
	}
	return fmt.Sprintf("%.4g%s", v, units[i])
}
