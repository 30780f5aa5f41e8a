package agent

import (
	"net/netip"
	"slices"

	"gswitch/frame"
	"gswitch/hostnic"
	inband "gswitch/int"
	"gswitch/transport"
)

// Region is memory that an agent serves to other hosts.
type Region struct {
	Data       []byte
	bytes      int    // of one that was decoded and has no Data
	key        uint32 // that it is registered under
	registered bool
}

// Session describes a session.
type Session struct {
	ID                       uint64
	Peer                     netip.Addr
	QPN, Remote              uint32
	Service                  Service
	Size                     uint64 // bytes of a message
	CC                       string
	Opened, First, Last      frame.Time // when it was opened; when payload first and last arrived, 0 never
	Bytes, Messages, Corrupt uint64     // payload received; frames that differ from what was sent
	Closed                   bool
}

// session is the passive end of a connection.
type session struct {
	Session
	answer  message // Accept, then Closed
	region  *Region // of Memory
	key     uint32  // by which the other end reaches it; 0: none
	conn    *Conn   // whose end is a program's
	written uint64  // bytes of the region that the other end says it wrote
	checked uint64  // of them, compared with the pattern
	seen    uint64  // frames when it was last looked at
	since   frame.Time
	due     frame.Time
	gone    bool

	// Place compares payload with these: the bytes of a packet, and the packets of a
	// message.
	agent            *Agent
	payload, packets uint64
}

const (
	// A session without a message from its other end for this long is closed.
	sessionIdle = 60 * frame.Second
	// The same for a session on which nothing was ever received: its active end has
	// stopped, too, or a forged Request opened it.
	sessionUnused = stall
	sessionLook   = frame.Second
	// A session is kept after its end, to answer Close again.
	sessionAfter = 10 * frame.Second
	// checkAtOnce is the part of the region that is compared in one step.
	checkAtOnce = 256 << 10
)

// Serve allows other hosts to open queue pairs here; nil: no longer. Open ones stay, with
// the region on which they were opened. The agent then owns the region, which may be
// served again as long as no other region has been.
func (a *Agent) Serve(r *Region) error {
	if r != nil && !r.registered {
		key, err := a.nic.Memory().Register(0, r.Data, hostnic.RemoteRead|hostnic.RemoteWrite|hostnic.RemoteAtomic)
		if err != nil {
			return err
		}
		r.key, r.registered = key, true
	}
	if old := a.serving; old != nil && r != nil && old != r {
		a.retired = append(a.retired, old)
	}
	if a.serving = r; r != nil {
		a.last = r
	}
	a.retire()
	return nil
}

// Serving reports whether other hosts may open queue pairs.
func (a *Agent) Serving() bool { return a.serving != nil }

// Sessions appends the sessions, including those that ended in the last seconds.
func (a *Agent) Sessions(out []Session) []Session {
	for _, s := range a.sessions {
		out = append(out, s.Session)
	}
	return out
}

func (a *Agent) find(from netip.Addr, id uint64) *session {
	for _, s := range a.sessions {
		if s.Peer == from && s.ID == id {
			return s
		}
	}
	return nil
}

// requestArrived answers a Request.
func (a *Agent) requestArrived(now frame.Time, d *hostnic.Datagram, m *message) {
	s := a.find(d.From, m.id)
	if s == nil && !a.proved(now, d.From, m) {
		a.send(now, d.From, &message{kind: challenge, id: m.id, bytes: a.cookie(now, d.From, m.id)})
		return
	}
	if s == nil {
		var why reason
		if s, why = a.openSession(now, d, m); why != 0 {
			a.send(now, d.From, &message{kind: reject, id: m.id, reason: why})
			return
		}
	}
	s.since = now
	a.send(now, d.From, &s.answer)
}

// send sends a datagram of the connection manager.
func (a *Agent) send(now frame.Time, to netip.Addr, m *message) {
	m.encode(&a.out)
	// If there is no answer the active end sends again.
	_ = a.nic.SendDatagram(now, to, Port, a.out[:])
}

// openSession makes a session, or returns why not.
func (a *Agent) openSession(now frame.Time, d *hostnic.Datagram, m *message) (*session, reason) {
	l := a.listener
	if m.service != Memory {
		l = nil
	}
	serving := a.serving
	if l != nil {
		serving = &l.region
	}
	switch {
	case a.closing:
		return nil, notServing
	case serving == nil && m.service != Probe:
		return nil, notServing
	case int(m.payload) != a.cfg.NIC.Payload:
		return nil, otherPayload
	case !a.mayOpen(d.From) || len(a.sessions) >= a.cfg.Sessions && !a.forgetClosed():
		return nil, noRoom
	case l != nil && l.waiting >= l.Backlog:
		return nil, noRoom
	case m.service == Memory && m.size > uint64(serving.size()):
		return nil, smallRegion
	case m.telemetry > uint8(inband.INTMD):
		return nil, unknownTelemetry
	case transport.ByCode(m.recovery) == nil:
		return nil, unknownRecovery
	}
	mac, ok, err := a.nic.Resolve(now, d.From)
	if err != nil || !ok {
		return nil, noRoom
	}
	algorithm, err := a.cfg.Algorithm(m.cc)
	if err != nil {
		return nil, unknownCC
	}
	s := &session{Session: Session{ID: m.id, Peer: d.From, Remote: m.qpn, Service: m.service, Size: m.size, CC: m.cc, Opened: now}, since: now, due: now + sessionLook}
	cfg := hostnic.QPConfig{RemoteAddr: d.From, RemoteMAC: mac, Class: m.class, Transport: *a.cfg.recovery(transport.ByCode(m.recovery), m.cap), CC: algorithm,
		INT: inband.Mode(m.telemetry), INTProfile: a.cfg.INT, InitialPSN: m.psn}
	if m.service == Memory {
		cfg.Verbs = &hostnic.VerbsConfig{Retries: memoryRetries}
		if l != nil {
			cfg.Verbs = l.verbs()
		}
		s.region = serving
	} else {
		s.agent, s.payload = a, uint64(a.cfg.NIC.Payload)
		s.packets = max(1, (s.Size+s.payload-1)/s.payload)
		cfg.Place = s
	}
	if s.QPN, err = a.nic.OpenQP(now, &cfg); err != nil {
		return nil, noRoom
	}
	if err = a.nic.ConnectQP(now, s.QPN, m.qpn); err == nil && m.service == Memory && serving.key != 0 {
		s.key, err = a.nic.Grant(serving.key, s.QPN)
	}
	if err != nil {
		_ = a.nic.CloseQP(now, s.QPN)
		return nil, noRoom
	}
	a.nic.SetRemotePort(s.QPN, m.port)
	if l != nil {
		a.acceptConn(s, m)
	} else {
		a.slots[s.QPN&(maxQPs-1)] = slot{qpn: s.QPN, s: s}
	}
	s.answer = message{kind: accept, service: m.service, id: m.id, qpn: s.QPN, port: a.nic.SourcePort(s.QPN), psn: m.psn, payload: m.payload, class: m.class}
	if m.service == Memory {
		s.answer.rkey, s.answer.size = s.key, uint64(serving.size())
	}
	a.sessions = append(a.sessions, s)
	a.wakeBy(s.due)
	return s, 0
}

// mayOpen reports whether a peer may open another session: it may have at most as many as
// are left to all others.
func (a *Agent) mayOpen(peer netip.Addr) bool {
	open, its := 0, 0
	for _, s := range a.sessions {
		if !s.Closed {
			open++
			if s.Peer == peer {
				its++
			}
		}
	}
	return its < a.cfg.Sessions-open
}

// forgetClosed makes room for a session by removing the closed one that would be removed
// next, if there is one.
func (a *Agent) forgetClosed() bool {
	oldest := -1
	for i, s := range a.sessions {
		if s.Closed && (oldest < 0 || s.due < a.sessions[oldest].due) {
			oldest = i
		}
	}
	if oldest < 0 {
		return false
	}
	a.sessions = slices.Delete(a.sessions, oldest, oldest+1)
	return true
}

// Place implements hostnic.Placer: it compares arriving payload with the pattern, which
// starts again with each message.
func (s *session) Place(_ uint32, packet uint64, payload []byte) {
	s.Bytes += uint64(len(payload))
	if !s.agent.matches(payload, packet%s.packets*s.payload) {
		s.Corrupt++
	}
}

// matches is Matches, as records have it.
func (a *Agent) matches(b []byte, at uint64) bool {
	v := a.nic.Verdicts()
	if v.Scripted() {
		return v.Next()
	}
	return v.Note(Matches(b, at))
}

func (s *session) completed(c *hostnic.Completion) {
	if c.Op != hostnic.RecvDone || c.Status != hostnic.StatusOK {
		return
	}
	if s.First == 0 {
		s.First = c.Start
	}
	s.Messages, s.Last = s.Messages+1, c.End
}

// closeArrived answers Close. A session that is not known was closed long ago.
func (a *Agent) closeArrived(now frame.Time, d *hostnic.Datagram, m *message) {
	s := a.find(d.From, m.id)
	switch {
	case s == nil:
		a.send(now, d.From, &message{kind: closed, id: m.id})
	case s.Closed:
		a.send(now, d.From, &s.answer)
	case s.written > 0: // being compared
	case s.region != nil && min(m.size, s.Size) > 0:
		// Compare what it wrote, a piece at a time, before the answer.
		s.written = min(m.size, s.Size)
		s.due = now
		a.wakeBy(now)
	default:
		a.endSession(now, s)
	}
}

// checkRegion compares a piece of the region with the pattern.
func (a *Agent) checkRegion(now frame.Time, s *session) {
	end := min(s.written, s.checked+checkAtOnce)
	if !a.matches(s.region.Data[s.checked:end], s.checked) {
		s.Corrupt++
	}
	if s.checked = end; end == s.written {
		s.Bytes = s.written
		a.endSession(now, s)
	}
}

// endSession closes a session and reports to the other end what was received.
func (a *Agent) endSession(now frame.Time, s *session) {
	if !s.Closed {
		s.Closed = true
		if s.conn != nil {
			a.endConn(now, s.conn, nil)
		} else {
			a.release(now, s.QPN)
		}
	}
	s.answer = message{kind: closed, id: s.ID, bytes: s.Bytes, messages: s.Messages, corrupt: s.Corrupt}
	s.due = now + sessionAfter
	a.wakeBy(s.due)
	a.send(now, s.Peer, &s.answer)
}

// release closes the queue pair of a transfer or a session.
func (a *Agent) release(now frame.Time, qpn uint32) {
	a.slots[qpn&(maxQPs-1)] = slot{} // what is flushed is no session's
	// It is open, and nothing else closes it.
	_ = a.nic.CloseQP(now, qpn)
}

// stepSession looks after a session.
func (a *Agent) stepSession(now frame.Time, s *session) {
	switch {
	case s.Closed:
		s.gone = true
		return
	case s.written > 0:
		s.due = now
		a.checkRegion(now, s)
		return
	}
	s.due = now + sessionLook
	if v, err := a.nic.QP(s.QPN); err == nil {
		if f := v.Stats.RxFrames + v.Stats.Acks; f != s.seen {
			s.seen, s.since = f, now
		}
	}
	if idle := now - s.since; idle >= sessionIdle || s.seen == 0 && idle >= sessionUnused {
		a.endSession(now, s)
	}
}
