package metrics

import (
	"gswitch/crossbar"
	"gswitch/pfc"
)

func (e emitter) crossbar(v *crossbar.View, sw, port string) {
	if v == nil {
		return
	}
	for c := range v.Ingress {
		e.gauge(crossbarBytes, float64(v.Ingress[c]), sw, port, digit(c), "ingress")
		e.gauge(crossbarBytes, float64(v.Egress[c]), sw, port, digit(c), "egress")
	}
	e.gauge(crossbarPeak, float64(v.IngressPeak), sw, port, "ingress")
	e.gauge(crossbarPeak, float64(v.EgressPeak), sw, port, "egress")
	e.count(crossbarPackets, v.Out.Frames, sw, port, "crossed")
	e.count(crossbarPackets, v.Out.Skipped, sw, port, "skipped")
	e.count(crossbarRefused, v.In.Refused, sw, port, "lossless")
	e.count(crossbarRefused, v.In.RefusedLossy, sw, port, "lossy")
}

func (e emitter) pfc(p *Port, class int, configured bool, labels ...string) {
	s, with := &p.PFC, func(more ...string) []string { return append(append([]string{}, labels...), more...) }
	if !configured && *s == (pfc.Stats{}) {
		return // no flow control was ever seen here
	}
	e.count(pfcFrames, s.RxXOFF[class], with("rx", "xoff")...)
	e.count(pfcFrames, s.RxXON[class], with("rx", "xon")...)
	e.count(pfcFrames, s.TxXOFF[class], with("tx", "xoff")...)
	e.count(pfcFrames, s.TxXON[class], with("tx", "xon")...)
	e.gauge(pfcSeconds, s.PausedTime[class].Seconds(), with("rx")...)
	e.gauge(pfcSeconds, s.RequestTime[class].Seconds(), with("tx")...)
	e.gauge(pfcPaused, truth(p.Classes[class].Paused), with("rx")...)
	e.gauge(pfcPaused, truth(p.Classes[class].XOFFSent), with("tx")...)
	e.gauge(pfcHeld, p.Held[class].Seconds(), labels...)
	e.count(pfcWatchdog, s.Storms[class], with("storm")...)
	e.count(pfcWatchdog, s.Restored[class], with("restore")...)
	e.count(pfcBroken, s.Ignored[class], labels...)
	e.count(pfcInVain, s.Ignored[class], labels...)
}
