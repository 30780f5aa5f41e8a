// Package cc is congestion control for the sending host: one pure state
// machine for each queue pair, which turns feedback into a rate and a window.
//
// An algorithm reads no clock and draws no randomness; every call carries the
// time. Adding one takes one file with its type and a call of Register.
package cc

import (
	inband "gswitch/int"

	"gswitch/frame"
)

// Env is what an algorithm knows of its surroundings when a queue pair opens.
type Env struct {
	Rate    float64      // line rate of the NIC port, bit/s
	BaseRTT frame.Time   // T: the constant that all flows share, slightly above the largest base RTT of the network
	MTU     int          // bytes on the wire of a full data frame
	Payload int          // bytes of payload in a full data frame
	Range   inband.Range // of the telemetry format in use; zero without telemetry

	// Segment is what the NIC sends as one burst in payload bytes, and Burst
	// the rate in bit/s at which the frames of a burst follow each other. 0:
	// frames one by one; at line rate.
	Segment uint32
	Burst   float64
}

// BDP returns the bandwidth-delay product in bytes.
func (e *Env) BDP() float64 { return e.Rate / 8 * float64(e.BaseRTT) / 1e9 }

// Feedback is what one acknowledgement reports. Byte counts are stream
// positions: payload bytes since the queue pair opened.
type Feedback struct {
	Now    frame.Time
	Ack    uint64       // cumulative: everything before this position has arrived
	SndNxt uint64       // next position to be sent for the first time
	Next   uint64       // position that is sent next, which is below SndNxt while the sender goes back; 0: SndNxt
	Newly  uint32       // bytes that this acknowledgement newly covers
	RTT    frame.Time   // 0: no sample (retransmitted, or an old acknowledgement)
	OneWay frame.Time   // of the frame that the RTT sample is of, until its last switch sent it on, by synchronised clocks and telemetry; 0: not known
	Bytes  uint32       // bytes on the wire of the frame (or segment) that the RTT sample is of
	Path   *inband.Path // telemetry, nil without
	CE     bool         // the receiver saw the congestion mark
	NAK    bool         // out-of-sequence notification
}

// Loss says how a loss was noticed.
type Loss uint8

const (
	LossNAK     Loss = iota // the receiver reported a gap; once for each recovery episode
	LossTimeout             // the retransmission timer ran out
)

// Algorithm is the congestion control of one queue pair. What it decides is
// read back by Rate and Window after each call; the caller keeps both beside
// the queue pair, so that sending a frame asks nothing.
type Algorithm interface {
	OnAck(f *Feedback)
	OnCNP(now frame.Time)            // RoCEv2 congestion notification
	OnLoss(now frame.Time, why Loss) // entering recovery
	OnSend(now frame.Time, n uint32) // n bytes on the wire leave now
	// OnTimer runs what is due. Timer returns the next instant at which it
	// would change rate or window, Never if none is pending.
	OnTimer(now frame.Time)
	Timer() frame.Time

	Rate() float64   // bit/s at which to pace; never more than Env.Rate
	Window() float64 // bytes in flight at most; 0 = no window
}

// Wrapper is an Algorithm around another one. What else that one listens to,
// such as a FairRater to switches, reaches it directly.
type Wrapper interface {
	Unwrap() Algorithm
}

// Inspector is an Algorithm that shows its internals for series and debugging.
type Inspector interface {
	// Inspect calls yield with each value that the algorithm's page names,
	// such as U, W and R of HPCC.
	Inspect(yield func(name string, v float64))
}
