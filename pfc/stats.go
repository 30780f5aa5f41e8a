package pfc

import "gswitch/frame"

// Stats is what a port counted.
type Stats struct {
	RxFrames, TxFrames uint64    // PFC frames
	RxPause, TxPause   uint64    // 802.3x frames
	RxIgnored          uint64    // frames of a kind that is not configured
	RxDisabled         [8]uint64 // asks for a class that is not under flow control

	RxXOFF, RxXON [8]uint64     // asks of the neighbour, first ones and renewals
	Pauses        [8]uint64     // times that the neighbour began to pause the class
	Expired       [8]uint64     // pauses that ended by themselves, without XON
	PausedTime    [8]frame.Time // how long the neighbour paused the class in all; with Config.Stages, slowed it

	TxXOFF, TxXON [8]uint64     // asks of ours, first ones and renewals
	Requests      [8]uint64     // times that the buffer began to want pause
	RequestTime   [8]frame.Time // how long we paused the neighbour in all

	Violations [8]uint64 // times that frames of the class came where a pause should have stopped them
	Disables   uint64    // times that the neighbour did not respond to pauses

	Storms, Restored [8]uint64     // found and ended by the watchdog
	StormTime        [8]frame.Time // how long in all
}

// Stats returns the counters as of now, with pauses and storms that last.
func (p *Port) Stats(now frame.Time) Stats {
	p.expire(now)
	s := p.stats
	for c := range p.rx {
		if p.paused>>c&1 != 0 {
			s.PausedTime[c] += now - p.rx[c].since
		}
		if p.sent>>c&1 != 0 {
			s.RequestTime[c] += now - p.since[c]
		}
		if p.storm>>c&1 != 0 {
			s.StormTime[c] += now - p.rx[c].stormy
		}
	}
	return s
}

// ClassState is the flow control of one class as of the last call that took
// the time.
type ClassState struct {
	Paused      bool       // by the neighbour, followed or not; with Config.Stages: slowed
	PausedSince frame.Time // if Paused
	PausedUntil frame.Time // if Paused
	XOFFSent    bool       // XOFF was sent last
	XOFFSince   frame.Time // if XOFFSent
	Storm       bool       // the watchdog acts
}

// Class returns the state of a class.
func (p *Port) Class(class int) ClassState {
	c := class & 7
	s := ClassState{Paused: p.paused>>c&1 != 0, XOFFSent: p.sent>>c&1 != 0, Storm: p.storm>>c&1 != 0}
	if s.Paused {
		s.PausedSince, s.PausedUntil = p.rx[c].since, p.rx[c].until
	}
	if s.XOFFSent {
		s.XOFFSince = p.since[c]
	}
	return s
}
