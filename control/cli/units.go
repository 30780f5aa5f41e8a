package cli

import "gswitch/units"

// Span writes nanoseconds with four digits, such as 12.34us.
func Span(ns uint64) string { return units.Time.Brief(float64(ns)) }

// Rate writes bit/s with four digits, such as 18.49Mbps: what was measured or
// worked out. What is configured is written in full (units.Rate).
func Rate(bits float64) string { return units.Bits.Brief(bits) }
