package agent

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"gswitch/cc"
	"gswitch/frame"
	"gswitch/hostnic"
	inband "gswitch/int"
	"gswitch/transport"
)

// Conn is one end of a connection of a program: a queue pair for RDMA operations that the
// connection managers of both ends opened. On the wire it has the service Memory, so that
// its other end may be a program, too, or anything else that serves memory.
type Conn struct {
	// Parameters of Dial or, if the other end opened the connection, of its request.
	To       netip.Addr
	Class    uint8
	CC       string
	New      func(*cc.Env) cc.Algorithm
	INT      inband.Mode
	Recovery *transport.Kind // nil: go-back-N
	Cap      uint32
	Verbs    hostnic.VerbsConfig // Retries 0: as in transfers
	Tag      uint64              // chosen by the caller

	// State of the connection, valid once News has returned it.
	State  State // Connecting, Running or Ended
	Err    error // if Ended: the reason; nil: one of the ends hung up
	Local  uint32
	Remote uint32
	RKey   uint32 // of the region that the passive end offers
	Size   uint64 // its bytes, 0 none

	handshake
	listed  bool     // among the News
	parting bool     // hung up: the other end has not answered Close yet
	session *session // of the passive end
	done    []hostnic.Completion
}

const (
	// The active end checks at this interval that the other end still exists, by
	// repeating its Request.
	keepAlive = 5 * frame.Second
	// Number of Requests without an answer after which the other end counts as gone.
	keepAlives = 4
)

// Listener accepts connections for a program.
type Listener struct {
	// Region is offered to peers that connect: memory that is registered under Key. It
	// may be nil.
	Region  []byte
	Bytes   uint64 // of memory without bytes, where Region is nil
	Key     uint32
	Backlog int                 // largest number that are open and not yet taken
	Verbs   hostnic.VerbsConfig // of their queue pairs

	region  Region
	waiting int
}

var errHungUp = errors.New("the other end has closed the connection: it was started again, or found this host unreachable")

// Size returns the number of bytes offered.
func (l *Listener) Size() uint64 { return max(uint64(len(l.Region)), l.Bytes) }

// Listen passes connections that other hosts open for memory to a program, in preference
// to Serve; nil: stop. Open connections stay.
func (a *Agent) Listen(l *Listener) {
	if l != nil {
		l.region = Region{Data: l.Region, bytes: int(l.Bytes), key: l.Key, registered: true}
	}
	a.listener = l
}

// Take says that a program has taken a connection of a listener, whose backlog then has
// room again.
func (a *Agent) Take(l *Listener) { l.waiting-- }

// Dial opens a connection. News reports when it is open or has failed.
func (a *Agent) Dial(now frame.Time, c *Conn) error {
	switch {
	case a.closing:
		return ErrClosing
	case len(c.CC) > ccLen:
		return fmt.Errorf("congestion control %q: the name is longer than %d letters", c.CC, ccLen)
	}
	if _, err := a.nic.NextHop(c.To); err != nil {
		return err
	}
	c.id, c.due, c.State = a.draws.Next(), now, Connecting
	a.conns = append(a.conns, c)
	a.wakeBy(now)
	return nil
}

// Hangup ends a connection. Work in progress is flushed. When Hangup returns no operation
// of the queue pair accesses memory any more.
func (a *Agent) Hangup(now frame.Time, c *Conn) {
	switch {
	case c.State == Ended:
	case c.session != nil:
		a.endSession(now, c.session)
	default:
		c.parting = c.Remote != 0
		a.endConn(now, c, nil)
	}
}

// Parting returns how many connections were hung up here whose other end has not yet
// answered Close.
func (a *Agent) Parting() (n int) {
	for _, c := range a.conns {
		if c.parting {
			n++
		}
	}
	return n
}

// News returns a connection that has something new: another State, or completions; nil if
// there is none.
func (a *Agent) News() *Conn {
	if a.newsHead == len(a.news) {
		a.news, a.newsHead = a.news[:0], 0
		return nil
	}
	c := a.news[a.newsHead]
	a.news[a.newsHead] = nil
	a.newsHead++
	c.listed = false
	return c
}

// Completions returns what has completed since the last call. The slice is valid until
// the next call of a method of the agent.
func (c *Conn) Completions() []hostnic.Completion {
	done := c.done
	c.done = c.done[:0]
	return done
}

// addNews puts c on the list of News.
func (a *Agent) addNews(c *Conn) {
	if !c.listed {
		c.listed = true
		a.news = append(a.news, c)
	}
}

// opening returns what the queue pair of c is opened with.
func (c *Conn) opening() *opening {
	return &opening{to: c.To, service: Memory, class: c.Class, cc: c.CC, newCC: c.New, int: c.INT, recovery: c.Recovery, cap: c.Cap,
		verbs: patient(c.Verbs), hint: "does a program listen there, or ghost serve?"}
}

// stepConn does what is due of a connection that was opened here.
func (a *Agent) stepConn(now frame.Time, c *Conn) {
	switch {
	case c.parting:
		if c.tries++; c.tries > maxTries {
			c.parting = false
			return
		}
		a.send(now, c.To, &message{kind: closing, id: c.id})
		c.due = now + retry
	case c.State == Connecting:
		if err := a.connect(now, &c.handshake, c.opening(), &c.Local, slot{c: c}); err != nil {
			a.endConn(now, c, err)
		}
	case c.State == Running:
		if c.tries++; c.tries > keepAlives {
			a.endConn(now, c, fmt.Errorf("%v has not answered for %v: is it still there?", c.To, (keepAlives*keepAlive).Duration()))
			return
		}
		a.sendRequest(now, &c.handshake, c.opening(), c.Local)
		c.due = now + keepAlive
	}
}

func (l *Listener) verbs() *hostnic.VerbsConfig { return patient(l.Verbs) }

// patient returns a configuration in which nothing that is left out ends a connection early.
func patient(v hostnic.VerbsConfig) *hostnic.VerbsConfig {
	if v.Retries == 0 {
		v.Retries = memoryRetries
	}
	return &v
}

// connAnswered takes in what the passive end sends.
func (a *Agent) connAnswered(now frame.Time, c *Conn, m *message) {
	switch {
	case c.parting:
		if m.kind == closed {
			c.parting, c.due = false, now
			a.wakeBy(now)
		}
	case c.State == Connecting:
		connected, err := a.takeAnswer(now, &c.handshake, c.To, c.Local, m)
		if err != nil {
			a.endConn(now, c, err)
			return
		}
		if connected {
			c.State, c.Remote, c.RKey, c.Size, c.tries, c.due = Running, m.qpn, m.rkey, m.size, 0, now+keepAlive
			a.wakeBy(c.due)
			a.addNews(c)
		}
	case c.State == Running && m.kind == accept && m.qpn == c.Remote:
		c.tries = 0
	case c.State == Running && m.kind == closed:
		a.endConn(now, c, nil)
	case c.State == Running:
		c.parting = m.kind == accept // of the session that it opened by mistake
		a.endConn(now, c, errHungUp)
	}
}

// endConn closes the queue pair of a connection.
func (a *Agent) endConn(now frame.Time, c *Conn, why error) {
	c.State, c.Err, c.tries, c.due = Ended, why, 0, now
	if c.Local != 0 {
		// It is open, and nothing else closes it.
		_ = a.nic.CloseQP(now, c.Local)
		a.completions(now) // of what was flushed, while it is known whose it is
		a.slots[c.Local&(maxQPs-1)] = slot{}
	}
	a.addNews(c)
	a.wakeBy(now)
}

// acceptConn makes the program's end of a session that another host opened.
func (a *Agent) acceptConn(s *session, m *message) {
	l := a.listener
	s.conn = &Conn{To: s.Peer, Class: m.class, CC: m.cc, INT: inband.Mode(m.telemetry), Recovery: transport.ByCode(m.recovery), Cap: m.cap,
		State: Running, Local: s.QPN, Remote: s.Remote, session: s}
	l.waiting++
	a.slots[s.QPN&(maxQPs-1)] = slot{qpn: s.QPN, c: s.conn}
	a.addNews(s.conn)
}

// advanceConns does what is due of the connections that were opened here.
func (a *Agent) advanceConns(now frame.Time) {
	for i := 0; i < len(a.conns); i++ {
		if c := a.conns[i]; c.due <= now {
			a.stepConn(now, c)
		}
	}
	a.conns = slices.DeleteFunc(a.conns, func(c *Conn) bool { return c.State == Ended && !c.parting })
	for _, c := range a.conns {
		a.due = min(a.due, c.due)
	}
}
