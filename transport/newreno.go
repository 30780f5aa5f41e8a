package transport

import (
	"gswitch/frame"
	"gswitch/options"
)

// NewReno is TCP without SACK: a timeout goes back, and what the receiver kept
// is jumped over.
var NewReno = register(Kind{
	Name: "newreno", Code: 5, Title: "TCP's recovery without selective acknowledgements",
	Paper: "RFC 6582, RFC 5681, RFC 6298", Cite: "RFC 6582",
	Note: "rto_high is the initial timeout and rto_low the least",
	Params: []options.Param{dupThreshParam, retransmitDelayParam,
		{Name: "fast_retransmit", Unit: options.Flag, Default: "true", Source: "RFC 5681 section 3.2; false: DeTail section 4.3.4",
			Doc: "false: duplicate acknowledgements mean nothing, only the timeout repairs, for networks that reorder and lose nothing"}},
	Keeps: true, Dynamic: true, Windowed: true, DupThresh: 3,
	Set: func(c *Config, v *options.Values) {
		c.NackThreshold, c.RetransmitDelay, c.NoFastRetransmit = uint8(v.Int("nack_threshold")), v.Time("retransmit_delay"), !v.Flag("fast_retransmit")
	},
	Nak: func(s *Sender, now frame.Time, advanced bool, r *AckResult) {
		if !advanced {
			s.duplicate(now, r)
		}
	},
	Step:    (*Sender).partial,
	Expired: (*Sender).restart,
})

// duplicate takes a duplicate acknowledgement: a packet arrived and the one at
// cum did not. The third begins fast retransmit, and from then on each reports
// that a packet has left the network (RFC 5681 section 3.2), which RFC 6582
// puts as a larger window and this as less in flight. After a timeout
// duplicates mean nothing until all is acknowledged that was sent before
// (RFC 6582 section 4).
func (s *Sender) duplicate(now frame.Time, r *AckResult) {
	if s.cfg.NoFastRetransmit || s.resend < s.next { // or all is being sent again
		s.stats.StaleNaks++
		return
	}
	s.dups++
	packet := uint64(s.record(s.cum).bytes)
	switch {
	case s.inRec && !s.byTimeout:
		s.inflation += packet
	case !s.inRec && s.dups >= s.cfg.threshold():
		s.Enter(now, r)
		s.inflation = uint64(s.dups) * packet
	}
}

// partial follows a step of the cumulative acknowledgement. One that does not
// end a recovery says that the packet at cum is lost too; the window deflates
// by what was acknowledged, less a packet (RFC 6582 section 3.2 step 3).
func (s *Sender) partial(now frame.Time, r *AckResult) {
	s.dups = 0
	switch {
	case !s.inRec:
	case s.cum > s.recSeq:
		s.inRec, s.rtxFirst, s.inflation = false, false, 0
	case !s.byTimeout:
		s.inflation -= min(s.inflation, uint64(r.NewBytes))
		s.inflation += uint64(s.record(s.cum).bytes)
		if s.rtxNext <= s.cum {
			s.rtxFirst = true
			s.lose(now, s.cum)
		}
	}
}

// restart sends all again from cum on, as a timeout asks for without SACK.
// What the receiver kept, its next acknowledgement jumps over.
func (s *Sender) restart(now frame.Time) {
	s.inRec, s.byTimeout = true, true
	s.recSeq = s.next - 1
	s.dups, s.inflation = 0, 0
	s.GoBack(now)
}
