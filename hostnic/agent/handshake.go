package agent

import (
	"fmt"
	"net/netip"

	"gswitch/cc"
	"gswitch/frame"
	"gswitch/hostnic"
	inband "gswitch/int"
	"gswitch/transport"
)

// handshake is the active end's state of the exchange that opens a queue pair at both
// ends (see the package comment), for transfers and for connections of programs.
type handshake struct {
	id     uint64
	cookie uint64 // that the other end wants to see
	psn    uint32 // of our first packet
	due    frame.Time
	tries  int // datagrams in a row that were not answered
}

// opening is the purpose and the configuration of a queue pair to be opened.
type opening struct {
	to       netip.Addr
	service  Service
	class    uint8
	cc       string
	newCC    func(*cc.Env) cc.Algorithm
	int      inband.Mode
	recovery *transport.Kind
	cap      uint32
	size     uint64
	verbs    *hostnic.VerbsConfig
	hint     string // what to check if there is no answer
}

const (
	retry     = 250 * frame.Millisecond // between datagrams that are not answered
	resolving = 10 * frame.Millisecond  // between looks at whether a neighbour has answered
	maxTries  = 12
)

// connect takes the next step towards a queue pair at both ends: the address of the other
// one, the queue pair here, whose number is written to local, then Request until takeAnswer
// has what it asks for. owner is whose the queue pair is.
func (a *Agent) connect(now frame.Time, h *handshake, o *opening, local *uint32, owner slot) error {
	if *local == 0 {
		mac, ok, err := a.nic.Resolve(now, o.to)
		if err != nil {
			return err
		}
		if !ok {
			h.due = now + resolving
			return nil
		}
		cfg := hostnic.QPConfig{RemoteAddr: o.to, RemoteMAC: mac, Class: o.class, Transport: *a.cfg.recovery(o.recovery, o.cap), CC: o.newCC,
			INT: o.int, INTProfile: a.cfg.INT, InitialPSN: uint32(a.draws.Next()) & 0xffffff, Verbs: o.verbs}
		if *local, err = a.nic.OpenQP(now, &cfg); err != nil {
			return err
		}
		h.psn, owner.qpn = cfg.InitialPSN, *local
		a.slots[*local&(maxQPs-1)] = owner
	}
	if h.tries++; h.tries > maxTries {
		return fmt.Errorf("%v does not answer on UDP port %d: %s", o.to, Port, o.hint)
	}
	a.sendRequest(now, h, o, *local)
	h.due = now + retry
	return nil
}

// sendRequest asks the other end for its queue pair, or whether it still has it.
func (a *Agent) sendRequest(now frame.Time, h *handshake, o *opening, local uint32) {
	a.send(now, o.to, &message{kind: request, service: o.service, recovery: a.cfg.recovery(o.recovery, 0).Kind().Code, telemetry: uint8(o.int), class: o.class,
		id: h.id, qpn: local, port: a.nic.SourcePort(local), psn: h.psn, payload: uint32(a.cfg.NIC.Payload), cap: o.cap, size: o.size, bytes: h.cookie, cc: o.cc})
}

// takeAnswer takes in an answer to Request and reports whether both queue pairs are connected
// now.
func (a *Agent) takeAnswer(now frame.Time, h *handshake, to netip.Addr, local uint32, m *message) (connected bool, err error) {
	switch {
	case m.kind == challenge && m.bytes != h.cookie:
		h.cookie, h.due = m.bytes, now
		a.wakeBy(now)
	case m.kind == reject:
		return false, fmt.Errorf("%v refuses: %v", to, m.reason)
	case m.kind == accept && local != 0:
		if err := a.nic.ConnectQP(now, local, m.qpn); err != nil {
			return false, err
		}
		a.nic.SetRemotePort(local, m.port)
		return true, nil
	}
	return false, nil
}
