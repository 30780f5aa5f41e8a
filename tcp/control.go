package tcp

import (
	"maps"
	"slices"

	"gswitch/frame"
)

// Control decides how much may be under way. Windows are in bytes.
type Control interface {
	// Acked takes bytes acknowledged outside of recovery, whether the window
	// was what held the sender back, and the latest round trip, 0 if it was not
	// measured.
	Acked(now frame.Time, bytes int, limited bool, rtt frame.Time)
	// Marks takes every acknowledgement: bytes, and how many of these were
	// echoed as marked. next is the next sequence number to be sent: the end of the
	// present window of data, and una the first that is not acknowledged.
	Marks(now frame.Time, bytes, marked int, una, next uint64)
	// Lost is a loss or, where it is once in a window, a mark: flight is what was
	// under way.
	Lost(now frame.Time, flight int)
	// TimedOut is a retransmission timeout: the window is one segment then. again says
	// that what timed out was sent again by the timer before, so that the threshold of
	// slow start stays (RFC 5681 section 3.1).
	TimedOut(now frame.Time, flight int, again bool)
	Window() int
	Threshold() int // of slow start
}

// Environment is what a control is made for.
type Environment struct {
	MSS     int
	Initial int // window in bytes
}

var controls = map[string]func(Environment) Control{
	"reno":  func(e Environment) Control { return newReno(e) },
	"cubic": func(e Environment) Control { return newCubic(e) },
	"dctcp": func(e Environment) Control { return newDCTCP(e) },
}

// Controls returns the names of what there is.
func Controls() []string { return slices.Sorted(maps.Keys(controls)) }

// unlimited is a threshold of slow start that nothing reaches.
const unlimited = 1 << 30

// reno is RFC 5681, with bytes counted as in RFC 3465 (limit of two segments).
type reno struct {
	mss       int
	window    int
	threshold int
	credit    int // bytes acknowledged that did not make a whole segment yet
}

func newReno(e Environment) *reno {
	return &reno{mss: e.MSS, window: e.Initial, threshold: unlimited}
}

func (r *reno) Acked(_ frame.Time, bytes int, limited bool, _ frame.Time) {
	if !limited {
		return // RFC 7661: what was not used proves nothing
	}
	if r.window < r.threshold {
		r.window += min(bytes, 2*r.mss)
		return
	}
	if r.credit += bytes; r.credit >= r.window {
		r.credit -= r.window
		r.window += r.mss
	}
}

func (r *reno) Marks(frame.Time, int, int, uint64, uint64) {}

// Lost halves (RFC 5681 equation 4).
func (r *reno) Lost(_ frame.Time, flight int) {
	r.threshold = max(flight/2, 2*r.mss)
	r.window, r.credit = r.threshold, 0
}

func (r *reno) TimedOut(now frame.Time, flight int, again bool) {
	if !again {
		r.Lost(now, flight)
	}
	r.window, r.credit = r.mss, 0
}

func (r *reno) Window() int    { return r.window }
func (r *reno) Threshold() int { return r.threshold }

// dctcp is RFC 8257: Reno, but what a window of data with marks costs is as much
// as the share that was marked.
type dctcp struct {
	reno
	alpha         float64
	bytes, marked int
	end           uint64 // of the present window of data
}

const dctcpGain = 1.0 / 16 // RFC 8257 section 4.2

func newDCTCP(e Environment) *dctcp { return &dctcp{reno: *newReno(e), alpha: 1} }

func (d *dctcp) Marks(_ frame.Time, bytes, marked int, una, next uint64) {
	d.bytes += bytes
	d.marked += marked
	if una < d.end || d.bytes == 0 {
		return
	}
	share := float64(d.marked) / float64(d.bytes)
	d.alpha = float64(d.alpha*(1-dctcpGain)) + float64(dctcpGain*share)
	if d.marked > 0 {
		d.threshold = max(d.window-int(float64(d.window)*d.alpha/2), 2*d.mss)
		d.window, d.credit = d.threshold, 0
	}
	d.bytes, d.marked, d.end = 0, 0, next
}
