package cc

import (
	"math"

	"gswitch/options"
)

// windowRule is how a rate-based algorithm bounds the bytes in flight. HPCC's
// evaluation adds "the same sending window as HPCC" to DCQCN and TIMELY, which
// stops a sender whose feedback is late (HPCC section 5.1).
type windowRule uint8

const (
	windowNone windowRule = iota
	windowBDP             // W = line rate * T
	windowRate            // W = R * T
)

func windowParam(def string) options.Param {
	return options.Param{Name: "window", Unit: options.Choice, Default: def, Choices: []string{"none", "rate", "bdp"}, Source: "HPCC section 5.1",
		Doc: "bound of the bytes in flight: none, rate (R*T, T is the base RTT that all flows share), bdp (line rate*T)"}
}

// windowOption returns the rule that windowParam describes.
func windowOption(v *options.Values) windowRule {
	switch v.Choice("window") {
	case "rate":
		return windowRate
	case "bdp":
		return windowBDP
	}
	return windowNone
}

// windowOf returns the bytes that rate bit/s sends in t ns: whole bytes, and
// never 0, which would mean no window.
func windowOf(rate, t float64) float64 { return max(1, math.Floor(rate*t/8e9)) }

// of returns the window at a rate.
func (w windowRule) of(rate, line, t float64) float64 {
	switch w {
	case windowRate:
		return windowOf(rate, t)
	case windowBDP:
		return windowOf(line, t)
	}
	return 0
}

// minRateParam describes the least rate of an algorithm; where says when it applies.
func minRateParam(where string) options.Param {
	return options.Param{Name: "minrate", Unit: options.Rate, Default: "= 100Mbps, at most a hundredth of the line rate", Min: 1, Max: 1e13, Source: "authors' HPCC simulator, MIN_RATE (1Gbps in its published runs)",
		Doc: "least rate" + where}
}

// minRate returns the least rate at a line rate, given what was set.
func minRate(set, line float64) float64 { return min(options.Or(set, min(100e6, line/100)), line) }
