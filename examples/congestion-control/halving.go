package main

import (
	"gswitch/cc"
	"gswitch/feature"
	"gswitch/frame"
	"gswitch/options"
)

// The name is what scenarios and flags write (hosts.cc: halving, --cc halving).
func init() {
	cc.Register(cc.Info{
		Name:  "halving",
		Title: "Halve the rate once a round trip while the delay is above a target, else add a step",
		Paper: "an example, published nowhere",
		Cite:  "example",
		Kind:  "rate+window",
		Needs: feature.RoundTrips,
		Params: []options.Param{
			{Name: "target", Unit: options.Time, Default: "12us", Min: 1, Source: "example", Doc: "round trip above which the rate is halved"},
			{Name: "step", Unit: options.Rate, Default: "50Mbps", Min: 1, Source: "example", Doc: "what the rate grows by with each acknowledgement"},
		},
		New: func(p options.Values) (func(*cc.Env) cc.Algorithm, error) {
			target, step := frame.Time(p.Float("target")), p.Float("step")
			return func(env *cc.Env) cc.Algorithm {
				h := &halving{target: target, step: step}
				h.Reset(env)
				return h
			}, nil
		},
	})
}

// halving is the state of one queue pair.
type halving struct {
	target frame.Time
	step   float64 // bit/s
	line   float64 // bit/s
	rate   float64 // bit/s
	cut    frame.Time
}

// Reset begins anew for another queue pair.
func (h *halving) Reset(env *cc.Env) { h.line, h.rate, h.cut = env.Rate, env.Rate, 0 }

// OnAck is called with each acknowledgement.
func (h *halving) OnAck(f *cc.Feedback) {
	switch {
	case f.RTT == 0: // of a retransmission: it says nothing
	case f.RTT <= h.target:
		h.rate = min(h.rate+h.step, h.line)
	case f.Now-h.cut >= f.RTT: // once a round trip
		h.rate, h.cut = max(h.rate/2, h.line/1000), f.Now
	}
}

// Window lets a target's worth of frames be on the way, bytes.
func (h *halving) Window() float64 { return h.rate * float64(h.target) / 8e9 }

// What this algorithm does not listen to.
func (h *halving) OnCNP(frame.Time)                {}
func (h *halving) OnLoss(frame.Time, cc.Loss)      {}
func (h *halving) OnSend(frame.Time, uint32)       {}
func (h *halving) OnTimer(frame.Time)              {}
func (h *halving) Timer() frame.Time               { return frame.Never }
func (h *halving) Rate() float64                   { return h.rate }
func (h *halving) Inspect(y func(string, float64)) { y("rate", h.rate) }
