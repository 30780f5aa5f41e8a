package tcp

import (
	"gswitch/frame"
)

// cubic is RFC 9438 with fast convergence and the region in which Reno would be
// faster. Windows are kept in segments.
type cubic struct {
	mss       int
	window    float64
	threshold float64
	most      float64 // W_max
	origin    float64 // the window that the curve levels out at
	k         float64 // seconds from the epoch's start until then
	epoch     frame.Time
	started   bool
	reno      float64 // W_est
	rtt       frame.Time
}

// RFC 9438 sections 4.1 and 4.6.
const (
	cubicC    = 0.4
	cubicBeta = 0.7
)

func newCubic(e Environment) *cubic {
	return &cubic{mss: e.MSS, window: float64(e.Initial) / float64(e.MSS), threshold: unlimited}
}

func (c *cubic) Acked(now frame.Time, bytes int, limited bool, rtt frame.Time) {
	if rtt > 0 {
		c.rtt = rtt
	}
	if !limited {
		// Time without sending does not count (RFC 9438 section 5.8).
		c.started = false
		return
	}
	segments := float64(bytes) / float64(c.mss)
	if c.window < c.threshold {
		c.window = min(c.window+min(segments, 2), max(c.threshold, c.window))
		return
	}
	if !c.started {
		c.begin(now)
	}
	t := (now - c.epoch + c.rtt).Seconds()
	d := t - c.k
	target := c.origin + float64(cubicC*d*d*d)
	target = min(max(target, c.window), 1.5*c.window)
	// Section 4.3: what Reno with the same multiplicative decrease would have.
	alpha := 3 * (1 - cubicBeta) / (1 + cubicBeta)
	if c.reno >= c.most {
		alpha = 1
	}
	c.reno += float64(alpha * segments / c.window)
	c.window += float64((target - c.window) * segments / c.window)
	if c.window < c.reno {
		c.window = c.reno
	}
}

func (c *cubic) begin(now frame.Time) {
	c.started, c.epoch, c.reno = true, now, c.window
	if c.window < c.most {
		c.k, c.origin = cubeRoot((c.most-c.window)/cubicC), c.most
	} else {
		c.k, c.origin = 0, c.window
	}
}

func (c *cubic) Marks(frame.Time, int, int, uint64, uint64) {}

func (c *cubic) Lost(_ frame.Time, flight int) {
	if c.window < c.most {
		c.most = float64(c.window * (1 + cubicBeta) / 2) // fast convergence
	} else {
		c.most = c.window
	}
	c.threshold = max(min(c.window, float64(flight)/float64(c.mss))*cubicBeta, 2)
	c.window, c.started = c.threshold, false
}

func (c *cubic) TimedOut(now frame.Time, flight int, again bool) {
	if !again {
		c.Lost(now, flight)
	}
	c.window, c.started = 1, false
}

func (c *cubic) Window() int { return int(c.window * float64(c.mss)) }

func (c *cubic) Threshold() int {
	if c.threshold >= unlimited {
		return unlimited
	}
	return int(c.threshold * float64(c.mss))
}

// cubeRoot by Newton's method: math.Cbrt rounds otherwise on some processors.
func cubeRoot(x float64) float64 {
	if x <= 0 {
		return 0
	}
	y := max(x, 1)
	for range 60 {
		next := (2*y + x/float64(y*y)) / 3
		if next >= y {
			break
		}
		y = next
	}
	return y
}
