package transport

import (
	"gswitch/frame"
	"gswitch/options"
)

// TCP is recovery by a SACK scoreboard, as iWARP uses it: SACKed and lost
// packets leave the flight.
var TCP = register(Kind{
	Name: "tcp", Code: 4, Title: "TCP's recovery with selective acknowledgements: three packets above a gap, a timer from round trips",
	Paper: "RFC 6675, RFC 6298", Cite: "RFC 6675",
	Note:        "rto_high is the initial timeout and rto_low the least",
	Params:      []options.Param{dupThreshParam, partialAckParam, retransmitDelayParam},
	Transparent: true, Keeps: true, SACKs: true, Dynamic: true, Pipe: true, Windowed: true, DupThresh: 3,
	Set: func(c *Config, v *options.Values) {
		c.NackThreshold, c.PartialAck, c.RetransmitDelay = uint8(v.Int("nack_threshold")), v.Flag("partial_ack"), v.Time("retransmit_delay")
	},
	Step: func(s *Sender, now frame.Time, _ *AckResult) { s.stepSelective(now, s.cfg.PartialAck && s.byTimeout) },
	// Everything that is not SACKed is lost (RFC 6675 section 5.1).
	Expired: func(s *Sender, now frame.Time) {
		s.Begin(now, true)
		s.edge = s.next
		s.loseHoles(now, s.cum, s.edge)
	},
})
