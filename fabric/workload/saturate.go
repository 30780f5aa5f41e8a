package workload

import (
	"fmt"

	"gswitch/frame"
)

// SaturateConfig describes connections that always have something to send.
type SaturateConfig struct {
	From, To    []int32 // the i-th host of From sends to the i-th of To, counted round
	Conns       int     // connections of each sender
	Bytes       uint64  // of each message
	Outstanding int     // messages that a connection keeps posted

	Start  frame.Time // of the first sender
	Join   frame.Time // each further sender starts so much later
	Jitter frame.Time // each connection starts up to so much later still
	Stop   frame.Time // of the first sender: it posts no message from here on
	Leave  frame.Time // each further sender stops so much later
	Seed   uint64
}

// Saturate is a Source.
type Saturate struct {
	pending
	cfg   SaturateConfig
	event uint32
}

// NewSaturate checks cfg.
func NewSaturate(cfg SaturateConfig) (*Saturate, error) {
	if len(cfg.From) == 0 || len(cfg.To) == 0 {
		return nil, fmt.Errorf("no host sends or none receives")
	}
	if cfg.Conns < 1 || cfg.Outstanding < 1 || cfg.Bytes == 0 {
		return nil, fmt.Errorf("a sender needs at least one connection with one message of at least one byte")
	}
	if err := checkPosted(len(cfg.From), "senders", cfg.Conns, "connections"); err != nil {
		return nil, err
	}
	if err := checkPosted(len(cfg.From)*cfg.Conns, "connections", cfg.Outstanding, "messages"); err != nil {
		return nil, err
	}
	s := &Saturate{cfg: cfg}
	r := frame.NewRand(cfg.Seed)
	for i, src := range cfg.From {
		dst := cfg.To[i%len(cfg.To)]
		if dst == src {
			return nil, fmt.Errorf("host %d would send to itself", src)
		}
		for c := range cfg.Conns {
			at := cfg.Start + frame.Time(i)*cfg.Join
			if cfg.Jitter > 0 {
				at += frame.Time(r.Float64() * float64(cfg.Jitter))
			}
			for range cfg.Outstanding {
				s.post(at, src, dst, int32(i*cfg.Conns+c))
			}
		}
	}
	return s, nil
}

func (s *Saturate) post(at frame.Time, src, dst, conn int32) {
	if at >= s.stop(conn) {
		return
	}
	s.push(Flow{At: at, Src: src, Dst: dst, Bytes: s.cfg.Bytes, Conn: conn, Event: s.event})
	s.event++
}

// stop is from when on a connection posts nothing.
func (s *Saturate) stop(conn int32) frame.Time {
	if s.cfg.Stop == frame.Never {
		return frame.Never
	}
	return s.cfg.Stop + frame.Time(int(conn)/s.cfg.Conns)*s.cfg.Leave
}

// Until returns the time from which the sender of a flow posts nothing. Before it, each
// message that is done is followed by an identical one, which a process closer to the
// sender may post in place of Done.
func (s *Saturate) Until(f *Flow) frame.Time { return s.stop(f.Conn) }

// Done implements Source.
func (s *Saturate) Done(now frame.Time, f *Flow) { s.post(now, f.Src, f.Dst, f.Conn) }

// PeriodicConfig describes messages at fixed intervals, such as mice that
// measure latency.
type PeriodicConfig struct {
	From, To   []int32 // the i-th host of From sends to the i-th of To, counted round
	Bytes      uint64
	Every      frame.Time
	Count      int  // messages of each sender; 0: until Stop
	Persistent bool // one connection for each sender; else one for each message

	Start, Stop frame.Time
}

// Periodic is a Source.
type Periodic struct {
	cfg   PeriodicConfig
	n     int // messages of each sender so far
	place int // in From, next
}

// NewPeriodic checks cfg.
func NewPeriodic(cfg PeriodicConfig) (*Periodic, error) {
	if len(cfg.From) == 0 || len(cfg.To) == 0 {
		return nil, fmt.Errorf("no host sends or none receives")
	}
	if cfg.Bytes == 0 || cfg.Every <= 0 && cfg.Count != 1 {
		return nil, fmt.Errorf("messages need at least one byte and an interval above zero")
	}
	for i, src := range cfg.From {
		if cfg.To[i%len(cfg.To)] == src {
			return nil, fmt.Errorf("host %d would send to itself", src)
		}
	}
	return &Periodic{cfg: cfg}, nil
}

// Peek implements Source.
func (p *Periodic) Peek() frame.Time {
	at := p.cfg.Start + frame.Time(p.n)*p.cfg.Every
	if at >= p.cfg.Stop || p.cfg.Count > 0 && p.n >= p.cfg.Count {
		return frame.Never
	}
	return at
}

// Pop implements Source.
func (p *Periodic) Pop() Flow {
	f := Flow{At: p.Peek(), Src: p.cfg.From[p.place], Dst: p.cfg.To[p.place%len(p.cfg.To)], Bytes: p.cfg.Bytes, Conn: -1, Event: uint32(p.n*len(p.cfg.From) + p.place)}
	if p.cfg.Persistent {
		f.Conn = int32(p.place)
	}
	if p.place++; p.place == len(p.cfg.From) {
		p.place = 0
		p.n++
	}
	return f
}

// Done implements Source.
func (p *Periodic) Done(frame.Time, *Flow) {}

// List is a Source of flows that are written down.
type List struct{ pending }

// NewList returns a source of the flows in v. Conn is taken as it is.
func NewList(v []Flow) (*List, error) {
	l := new(List)
	for i := range v {
		if v[i].Src == v[i].Dst || v[i].Bytes == 0 {
			return nil, fmt.Errorf("flow %d goes from a host to itself or has no bytes", i)
		}
		l.push(v[i])
	}
	return l, nil
}

// Done implements Source.
func (l *List) Done(frame.Time, *Flow) {}
