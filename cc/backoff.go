package cc

import "gswitch/options"

// backoffParam describes what a loss takes off a rate. The papers of the
// algorithms that have it assume a network that loses nothing.
func backoffParam() options.Param {
	return options.Param{Name: "backoff", Unit: options.Number, Default: "0", Max: 1, Source: "IRN section 4.3, for go-back-N; it gives no number",
		Doc: "share of the rate that a loss takes off, once for each recovery and each timeout; 0: losses change nothing"}
}
