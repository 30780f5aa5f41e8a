package transport

import (
	"gswitch/frame"
	"gswitch/options"
)

// IRN is selective retransmission with a bitmap at both ends and two timeouts.
var IRN = register(Kind{
	Name: "irn", Code: 1, Title: "selective retransmission with a bitmap at both ends, a cap on the packets in flight and two timeouts",
	Paper: "Mittal et al., Revisiting Network Support for RDMA, SIGCOMM 2018", Cite: "IRN, SIGCOMM'18",
	Params:      []options.Param{rulesParam, restartParam, nParam, nackThresholdParam, partialAckParam, retransmitDelayParam, dynamicRTOParam},
	Transparent: true, Keeps: true, SACKs: true, Capped: true, LowRTO: true,
	Set: setIRN, Step: stepIRN, Resent: resentIRN, Expired: expireSelective,
})

// IRNNoSACK is an ablation: the receiver keeps what is out of order but reports
// only the cumulative number.
var IRNNoSACK = register(Kind{
	Name: "irn-no-sack", Code: 3, Title: "IRN with cumulative acknowledgements alone, an ablation",
	Paper: "Mittal et al., Revisiting Network Support for RDMA, SIGCOMM 2018, section 4.3", Cite: "IRN, SIGCOMM'18",
	Params: []options.Param{restartParam, nParam, retransmitDelayParam, dynamicRTOParam},
	Keeps:  true, Capped: true, LowRTO: true,
	Set: func(c *Config, v *options.Values) {
		c.N, c.RestartOnProgress = uint32(v.Int("n")), v.Choice("restart") == "progress"
		c.RetransmitDelay, c.DynamicRTO = v.Time("retransmit_delay"), v.Flag("dynamic_rto")
	},
	Nak: func(s *Sender, now frame.Time, _ bool, r *AckResult) {
		if !s.inRec && s.resend == s.next {
			s.Enter(now, r)
		}
	},
	// Where no SACK can say, the next hole is at cum (RFC 6582).
	Step:    func(s *Sender, now frame.Time, _ *AckResult) { s.stepSelective(now, true) },
	Expired: expireSelective,
})

func setIRN(c *Config, v *options.Values) {
	c.N, c.NackThreshold = uint32(v.Int("n")), uint8(v.Int("nack_threshold"))
	c.TextRules, c.RestartOnProgress = v.Choice("rules") == "text", v.Choice("restart") == "progress"
	c.PartialAck = v.Flag("partial_ack")
	c.RetransmitDelay, c.DynamicRTO = v.Time("retransmit_delay"), v.Flag("dynamic_rto")
}

// stepIRN takes the packet at cum for lost at every step within a recovery, as
// the code that the authors published does. By the text of the paper nothing
// is lost but what a SACK stands above, so that the loss of a tail costs a
// timeout for each packet.
func stepIRN(s *Sender, now frame.Time, _ *AckResult) {
	s.stepSelective(now, !s.cfg.TextRules || s.cfg.PartialAck && s.byTimeout)
}

// resentIRN moves the end of the recovery with every retransmission: in the
// authors' code it ends when all is acknowledged that was sent before the last
// of them, in the text before the first.
func resentIRN(s *Sender) {
	if !s.cfg.TextRules {
		s.recSeq = s.next - 1
	}
}

// stepSelective ends the episode, or, with partial, takes the packet at cum
// for lost, unless this episode has retransmitted it.
func (s *Sender) stepSelective(now frame.Time, partial bool) {
	if !s.EndEpisode() && partial {
		s.Resend(now)
	}
}

func expireSelective(s *Sender, now frame.Time) { s.Begin(now, true) }
