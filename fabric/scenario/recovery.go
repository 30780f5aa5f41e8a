package scenario

import (
	"fmt"
	"slices"
	"strconv"

	"gswitch/frame"
	"gswitch/options"
	"gswitch/transport"
)

// Recovery returns the scheme of loss recovery with its options. Cap and timeouts, which
// all schemes share, are left to the caller.
func (t *Transport) Recovery() (transport.Config, error) {
	kind, err := transport.Lookup(t.Mode)
	if err != nil {
		return transport.Config{}, err
	}
	given := t.keys(kind)
	for name, s := range t.Params {
		if _, twice := given[name]; twice {
			return transport.Config{}, fmt.Errorf("%s stands under params and beside it; leave one out", name)
		}
		given[name] = string(s)
	}
	c, err := kind.Configure(given)
	c.Recursive = t.RC3.Loop()
	return c, err
}

// keys returns the options of a scheme that have a key of their own in the document. A
// key that does not apply to the scheme is ignored, since variants may change mode alone.
func (t *Transport) keys(kind *transport.Kind) map[string]string {
	given := map[string]string{}
	put := func(name, text string) {
		if slices.ContainsFunc(kind.Params, func(p options.Param) bool { return p.Name == name }) {
			given[name] = text
		}
	}
	if t.N != 0 {
		put("n", strconv.Itoa(t.N))
	}
	if t.NackThreshold != 0 {
		put("nack_threshold", strconv.Itoa(t.NackThreshold))
	}
	for name, d := range map[string]frame.Time{"retransmit_delay": frame.Time(t.RetransmitDelay), "nak_interval": frame.Time(t.NakInterval)} {
		if d != 0 {
			put(name, options.Format(float64(d), options.Time))
		}
	}
	for name, on := range map[string]bool{"partial_ack": t.PartialAck, "nak_every": t.NakEvery, "dynamic_rto": t.DynamicRTO} {
		if on {
			put(name, "true")
		}
	}
	if t.FastRetransmit != nil {
		put("fast_retransmit", strconv.FormatBool(*t.FastRetransmit))
	}
	return given
}
