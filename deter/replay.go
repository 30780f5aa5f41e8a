package deter

import (
	"errors"
	"fmt"

	"gswitch/frame"
	"gswitch/tcp"
)

// Step is one event of a replay, behind what it did.
type Step struct {
	End    int // 0 or 1: in the order of the logs
	At     frame.Time
	Kind   Kind
	ID     uint32       // of the packet, with Accept, Receive and Send
	Seg    *tcp.Segment // of the packet
	N      int          // bytes, with Write and Read
	Conn   *tcp.Conn
	Before tcp.Stats // of Conn, before the event
}

// Diverged says that a replay is not what was recorded.
type Diverged struct {
	Name  string // of the connection
	End   int
	Event int // number in the record
	Sent  uint32
	Why   string
}

func (d *Diverged) Error() string {
	return fmt.Sprintf("%s: the replay differs from the record at event %d of end %d, after %d packets sent: %s", d.Name, d.Event, d.End, d.Sent, d.Why)
}

// Result is what a replay was.
type Result struct {
	Events  int
	Sent    [2]uint32 // packets
	Checks  int       // hashes that were compared
	Partial bool      // the record lost what came later
}

// player is one end.
type player struct {
	log    *Log
	b      []byte
	g      guess
	now    frame.Time
	conn   *tcp.Conn
	next   uint32
	len    int
	last   tcp.Segment
	sent   []tcp.Segment
	hash   uint32
	events int
	ahead  *entry // read, and waits for a packet of the peer
	over   bool
}

// Replay runs the ends of a connection again from their records, one of which may be
// missing where the other was made alone, and calls visit, if it is not nil, with
// each step. What an end needs of its peer the peer has made before; their clocks
// need not agree.
func Replay(logs []*Log, visit func(*Step)) (r Result, err error) {
	if len(logs) == 0 || len(logs) > 2 || len(logs) == 1 && !logs[0].Alone {
		return r, fmt.Errorf("%w: a connection has the records of both ends, or of one that was made alone", ErrRecord)
	}
	ends := make([]*player, len(logs))
	for i, l := range logs {
		p := &player{log: l, hash: 2166136261, now: l.Start}
		if p.b, err = l.unpack(); err != nil {
			return r, err
		}
		r.Partial = r.Partial || l.Lost != 0
		ends[i] = p
	}
	for moved := true; moved; {
		moved = false
		for i, p := range ends {
			var peer *player
			if len(ends) == 2 {
				peer = ends[1-i]
			}
			for !p.over {
				ok, err := p.step(i, peer, &r, visit)
				if err != nil {
					return r, err
				}
				if !ok {
					break
				}
				moved = true
			}
		}
	}
	for i, p := range ends {
		r.Sent[i] = uint32(len(p.sent))
		if !p.over && !r.Partial {
			return r, p.diverged(i, "it received packet %d, which its peer does not send", p.wants(p.ahead))
		}
	}
	return r, nil
}

func (p *player) diverged(end int, format string, args ...any) error {
	return &Diverged{p.log.Name, end, p.events, uint32(len(p.sent)), fmt.Sprintf(format, args...)}
}

// wants is the number of the packet that an entry says arrived.
func (p *player) wants(e *entry) uint32 { return p.next + uint32(unzigzag(e.arg>>1)) }

// step does what the next entry says; false if it has to wait for the peer.
func (p *player) step(end int, peer *player, r *Result, visit func(*Step)) (bool, error) {
	e := p.ahead
	if e == nil {
		if len(p.b) == 0 && p.log.Lost != 0 {
			p.over = true
			return true, nil
		}
		v, rest, err := p.g.read(p.b)
		if err != nil {
			return false, p.diverged(end, "%v", err)
		}
		e, p.b = &v, rest
		p.ahead = e
	}
	s := Step{End: end, At: p.now + e.dt*frame.Microsecond, Kind: e.kind, Conn: p.conn}
	if e.kind == Receive || e.kind == Accept {
		s.ID = p.wants(e)
		if !p.log.Alone {
			if int(s.ID) >= len(peer.sent) {
				return false, nil
			}
			seg := peer.sent[s.ID]
			seg.CE = e.arg&1 != 0
			s.Seg = &seg
		} else {
			seg, rest, err := readSegment(p.b, &p.last)
			if err != nil {
				return false, p.diverged(end, "%v", err)
			}
			p.b, p.last, s.Seg = rest, seg, &seg
		}
		p.next, p.len = s.ID+1, s.Seg.Len
	}
	p.ahead = nil
	p.now = s.At
	p.events++
	r.Events++
	if err := p.do(end, e, &s, r); err != nil {
		return false, err
	}
	if visit != nil && e.kind < check {
		visit(&s)
	}
	return true, nil
}

var errOrder = errors.New("it is not open")

func (p *player) do(end int, e *entry, s *Step, r *Result) (err error) {
	if p.conn != nil {
		s.Before = p.conn.Stats
	} else if e.kind > Accept && e.kind < check {
		return p.diverged(end, "%s: %v", e.kind, errOrder)
	}
	now := s.At
	switch e.kind {
	case Dial:
		p.conn, err = tcp.Dial(now, p.config(), p.log.ISS)
	case Accept:
		p.conn, err = tcp.Accept(now, p.config(), p.log.ISS, s.Seg)
	case Receive:
		p.conn.Receive(now, s.Seg)
	case Advance:
		if p.conn.Due() > now {
			return p.diverged(end, "a timer ran out at %v, of which there is none", now.Duration())
		}
		p.conn.Advance(now)
	case Write:
		if s.N = int(min(e.arg, 1<<30)); p.conn.WriteLen(s.N) != s.N {
			return p.diverged(end, "the application wrote %d bytes, for which there is no room", s.N)
		}
	case Read:
		if s.N = p.len; e.arg > 0 {
			s.N = int(min(e.arg-1, 1<<30))
		}
		if p.conn.ReadLen(now, s.N) != s.N {
			return p.diverged(end, "the application read %d bytes, which are not there", s.N)
		}
	case Close:
		p.conn.CloseWrite()
	case Send:
		seg := new(tcp.Segment)
		if !p.conn.Next(now, seg) {
			return p.diverged(end, "a packet was sent, for which there is no reason")
		}
		s.ID, s.Seg = uint32(len(p.sent)), seg
		seg.Data = nil
		p.hash = digest(p.hash, seg)
		p.sent = append(p.sent, *seg)
	case Idle:
		var seg tcp.Segment
		if p.conn.Next(now, &seg) {
			return p.diverged(end, "a packet would be sent that was not")
		}
	case check:
		if r.Checks++; uint32(e.arg) != p.hash {
			return p.diverged(end, "the hash of what was sent is %08x, and was %08x", p.hash, uint32(e.arg))
		}
	case ended:
		p.over = true
	}
	if err != nil {
		return p.diverged(end, "%v", err)
	}
	s.Conn = p.conn
	return nil
}

// config is that of the end; no bytes are there to be kept.
func (p *player) config() tcp.Config {
	c := p.log.Config
	c.Lengths = true
	return c
}
