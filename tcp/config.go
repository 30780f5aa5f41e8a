package tcp

import (
	"fmt"

	"gswitch/frame"
)

// Config are the parameters of a connection's end. Default gives those of Linux.
type Config struct {
	MSS           int    // largest payload that this end takes; 0 = 1460
	SACK          bool   // selective acknowledgements (RFC 2018)
	Stamps        bool   // time stamps (RFC 7323)
	Control       string // congestion control: reno, cubic, dctcp
	ECN           bool   // RFC 3168; DCTCP needs it
	InitialWindow int    // segments (RFC 6928: 10)
	Nagle         bool   // RFC 896

	MinRTO frame.Time // least retransmission timeout; Linux: 200 ms, RFC 6298: 1 s
	MaxRTO frame.Time
	// Retries is how often in a row the timer runs out, or a probe of a closed window is
	// not answered, before the connection is aborted (Linux: 15).
	Retries int

	DelayedACK frame.Time // longest time for which an acknowledgement is held back; 0: none is
	QuickACKs  int        // segments at the beginning that are acknowledged at once (Linux: 16)

	// DupThresh is how many duplicate acknowledgements, or segments beyond, mean a
	// loss at first (RFC 6675: 3). Where MaxReordering is larger, it grows up to that
	// with the reordering that is seen, and never shrinks (Linux:
	// net.ipv4.tcp_max_reordering).
	DupThresh     int
	MaxReordering int
	RACK          bool // losses are found by time as well (RFC 8985)
	TailProbe     bool // a probe before the timer for what is lost at the end (RFC 8985 section 7)

	SendBuffer    int // bytes; 0 = 4 MiB
	ReceiveBuffer int // bytes at first; 0 = 128 KiB
	MaxReceive    int // up to which it grows as the application reads; 0 = 6 MiB
	// SlowWindow says that the window that is offered begins at ten segments and
	// grows by two with each that comes, up to the buffer, as Linux does.
	SlowWindow bool
	TimeWait   frame.Time
	// Lengths keeps no bytes: Write takes counts, Read gives counts.
	Lengths bool
}

// Default are the parameters that Linux has without being asked for others.
func Default() Config {
	return Config{
		MSS: 1460, SACK: true, Stamps: true, Control: "cubic", InitialWindow: 10, Nagle: true,
		MinRTO: 200 * frame.Millisecond, MaxRTO: 120 * frame.Second, Retries: 15,
		DelayedACK: 40 * frame.Millisecond, QuickACKs: 16, DupThresh: 3, RACK: true, TailProbe: true,
		SendBuffer: 4 << 20, ReceiveBuffer: 128 << 10, MaxReceive: 6 << 20, TimeWait: 60 * frame.Second,
	}
}

// Validate reports what is wrong with c, and fills in what was left out.
func (c *Config) Validate() error {
	orInt := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	orInt(&c.MSS, 1460)
	orInt(&c.InitialWindow, 10)
	orInt(&c.DupThresh, 3)
	orInt(&c.Retries, 15)
	orInt(&c.SendBuffer, 4<<20)
	orInt(&c.ReceiveBuffer, 128<<10)
	orInt(&c.MaxReceive, max(6<<20, c.ReceiveBuffer))
	if c.MaxRTO == 0 {
		c.MaxRTO = 120 * frame.Second
	}
	if c.Control == "" {
		c.Control = "cubic"
	}
	switch {
	case c.MSS < 88 || c.MSS > 65495:
		return fmt.Errorf("tcp: an MSS of %d bytes: 88 to 65495 are possible", c.MSS)
	case c.MinRTO <= 0 || c.MaxRTO < c.MinRTO:
		return fmt.Errorf("tcp: timeouts from %v to %v: the least must be positive, and the largest no less", c.MinRTO.Duration(), c.MaxRTO.Duration())
	case c.DelayedACK < 0 || c.DelayedACK > 500*frame.Millisecond:
		return fmt.Errorf("tcp: acknowledgements are held back for %v: RFC 9293 allows half a second", c.DelayedACK.Duration())
	case c.MaxReordering < 0 || c.MaxReordering > 1000:
		return fmt.Errorf("tcp: reordering of up to %d segments: 0 to 1000 are possible", c.MaxReordering)
	case c.InitialWindow < 1 || c.DupThresh < 1 || c.Retries < 1:
		return fmt.Errorf("tcp: an initial window of %d, %d duplicates, %d retries: each must be at least 1", c.InitialWindow, c.DupThresh, c.Retries)
	case c.ReceiveBuffer < 2*c.MSS || c.SendBuffer < 2*c.MSS || c.MaxReceive < c.ReceiveBuffer || c.MaxReceive > 1<<30-1 || c.SendBuffer > 1<<30:
		return fmt.Errorf("tcp: buffers of %d (send), %d to %d bytes (receive): two segments to 1 GiB are possible", c.SendBuffer, c.ReceiveBuffer, c.MaxReceive)
	case controls[c.Control] == nil:
		return fmt.Errorf("tcp: congestion control %q is not known; there are %v", c.Control, Controls())
	case c.Control == "dctcp" && !c.ECN:
		return fmt.Errorf("tcp: dctcp works with marks: set ECN")
	}
	return nil
}

// scale is the window scale that the largest receive buffer needs.
func (c *Config) scale() uint8 {
	s := uint8(0)
	for s < MaxScale && c.MaxReceive>>s > 65535 {
		s++
	}
	return s
}
