package transport

import (
	"gswitch/frame"
	"gswitch/options"
)

// GoBackN is what RoCE NICs do: the receiver discards what is out of order,
// and the sender goes back to the gap.
var GoBackN = register(Kind{
	Name: "go-back-n", Code: 0, Title: "the receiver discards what is out of order, the sender goes back to the gap",
	Paper: "InfiniBand Architecture Specification, volume 1, section 9.7", Cite: "IBTA, vol. 1",
	Params:      []options.Param{nakIntervalParam, nakEveryParam, retransmitDelayParam, dynamicRTOParam},
	Transparent: true,
	Set:         setGoBackN, Nak: nakGoBack, Step: stepEpisode, Expired: expireGoBack,
})

// IRNGoBackN is an ablation: IRN's cap and timeouts, recovery by going back.
var IRNGoBackN = register(Kind{
	Name: "irn-go-back-n", Code: 2, Title: "IRN's cap and timeouts with recovery by going back, an ablation",
	Paper: "Mittal et al., Revisiting Network Support for RDMA, SIGCOMM 2018, section 4.3", Cite: "IRN, SIGCOMM'18",
	Params:      []options.Param{restartParam, nParam, nakIntervalParam, nakEveryParam, retransmitDelayParam, dynamicRTOParam},
	Transparent: true, Capped: true, LowRTO: true,
	Set: func(c *Config, v *options.Values) {
		c.N, c.RestartOnProgress = uint32(v.Int("n")), v.Choice("restart") == "progress"
		setGoBackN(c, v)
	},
	Nak: nakGoBack, Step: stepEpisode, Expired: expireGoBack,
})

func setGoBackN(c *Config, v *options.Values) {
	c.NakInterval, c.NakEvery = v.Time("nak_interval"), v.Flag("nak_every")
	c.RetransmitDelay, c.DynamicRTO = v.Time("retransmit_delay"), v.Flag("dynamic_rto")
}

func nakGoBack(s *Sender, now frame.Time, _ bool, r *AckResult) {
	if !s.inRec {
		s.Enter(now, r)
	}
	s.GoBack(now)
}

func stepEpisode(s *Sender, _ frame.Time, _ *AckResult) { s.EndEpisode() }

func expireGoBack(s *Sender, now frame.Time) {
	s.Begin(now, true)
	s.GoBack(now)
}
