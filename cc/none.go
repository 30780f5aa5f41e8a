package cc

import (
	"gswitch/frame"
	"gswitch/options"
)

func init() {
	Register(Info{
		Name:  "none",
		Title: "No congestion control: line rate, and a fixed window or none",
		Paper: "the baseline of every evaluation; window=bdp is what IRN calls BDP-FC",
		Cite:  "-",
		Kind:  "rate+window",
		Params: []options.Param{
			windowParam("bdp"),
			{Name: "bytes", Unit: options.Bytes, Default: "= by window", Min: 1, Max: 1e12, Source: "ours", Doc: "a window of this size; takes the place of window"},
			{Name: "rate", Unit: options.Rate, Default: "= line rate", Min: 1, Max: 1e13, Source: "ours", Doc: "rate at which to pace"},
		},
		New: newNone,
	})
}

type noneConfig struct {
	window      windowRule
	bytes, rate float64
}

func newNone(p options.Values) (func(*Env) Algorithm, error) {
	c := &noneConfig{windowOption(&p), p.Float("bytes"), p.Float("rate")}
	return func(env *Env) Algorithm {
		n := &none{cfg: c}
		n.Reset(env)
		return n
	}, nil
}

// none keeps what it began with.
type none struct {
	cfg       *noneConfig
	rate, win float64
}

// Reset implements Resetter.
func (n *none) Reset(env *Env) {
	n.rate = min(options.Or(n.cfg.rate, env.Rate), env.Rate)
	n.win = options.Or(n.cfg.bytes, n.cfg.window.of(n.rate, env.Rate, float64(max(env.BaseRTT, 1))))
}

func (n *none) OnAck(*Feedback)           {}
func (n *none) OnCNP(frame.Time)          {}
func (n *none) OnLoss(frame.Time, Loss)   {}
func (n *none) OnSend(frame.Time, uint32) {}
func (n *none) OnTimer(frame.Time)        {}
func (n *none) Timer() frame.Time         { return frame.Never }
func (n *none) Rate() float64             { return n.rate }
func (n *none) Window() float64           { return n.win }
