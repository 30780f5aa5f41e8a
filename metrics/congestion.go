package metrics

import "gswitch/pfc"

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
	e.count(pfcBroken, s.Violations[class], labels...)
	e.count(pfcViolationsWas, s.Violations[class], labels...)
}
