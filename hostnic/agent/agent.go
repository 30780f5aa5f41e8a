package agent

import (
	"fmt"
	"slices"

	"gswitch/cc"
	"gswitch/frame"
	"gswitch/histogram"
	"gswitch/hostnic"
	inband "gswitch/int"
	"gswitch/transport"
)

// Config of an agent. The NIC must have a stack on Port.
type Config struct {
	NIC       hostnic.Config
	INT       *inband.Profile // units of HPCC's telemetry; nil: the default ones
	Transport transport.Config
	Sessions  int // largest number of sessions for other hosts; 0 = 256

	// Algorithm makes the congestion control of queue pairs that other hosts open, by the
	// name that they ask for; nil: cc.Factory without options.
	Algorithm func(name string) (func(*cc.Env) cc.Algorithm, error)
}

// recovery is the transport of a queue pair with the given scheme, nil for go-back-N, and
// cap. The options of Config.Transport are those of its scheme; another one has its
// defaults.
func (c *Config) recovery(kind *transport.Kind, cap uint32) *transport.Config {
	t := c.Transport
	if kind == nil {
		kind = transport.GoBackN
	}
	if kind != t.Kind() {
		low, high := t.RTOLow, t.RTOHigh
		t = kind.Defaults()
		t.RTOLow, t.RTOHigh = low, high
	}
	t.Recovery, t.Cap = kind, cap
	return &t
}

// Agent is a host, a frame.Stepper. Like every node it is stepped by one goroutine, which
// also calls its other methods.
type Agent struct {
	cfg   Config
	nic   *hostnic.NIC
	arena *frame.Arena
	slots []slot        // by the low bits of the queue pair's number
	draws hostnic.Draws // numbers and keys that other hosts see

	secret hostnic.Secret // of cookies

	transfers []*Transfer
	sessions  []*session
	conns     []*Conn // opened by this host
	news      []*Conn
	newsHead  int
	listener  *Listener
	serving   *Region
	last      *Region   // most recently served
	started   uint64    // transfers
	retired   []*Region // no longer served, but in use by open sessions
	closing   bool      // after Shutdown
	due       frame.Time

	gram hostnic.Datagram
	done [64]hostnic.Completion
	out  [messageLen]byte

	// Late records how long after its time on the emulated link each frame left the NIC:
	// the effect of a late worker on pacing.
	Late histogram.Buckets
	// BadDatagrams counts datagrams that could not be decoded.
	BadDatagrams uint64
}

// slot is the owner of a queue pair.
type slot struct {
	qpn uint32
	t   *Transfer
	s   *session
	c   *Conn
}

// maxQPs of an agent: a power of two.
const maxQPs = 1024

// New returns an agent that serves nothing yet.
func New(cfg *Config, pool *frame.Pool) (*Agent, error) {
	c := cfg.complete()
	if c.NIC.Stack == nil || c.NIC.Stack.Port != Port {
		return nil, fmt.Errorf("agent %s: its NIC has no stack on port %d", c.NIC.Name, Port)
	}
	if err := c.Transport.Validate(); err != nil {
		return nil, fmt.Errorf("agent %s: %w", c.NIC.Name, err)
	}
	nic, err := hostnic.New(&c.NIC, pool)
	if err != nil {
		return nil, err
	}
	c.NIC = nic.Config()
	return &Agent{cfg: c, nic: nic, arena: pool.Arena, slots: make([]slot, maxQPs), draws: hostnic.NewDraws("numbers of the connection manager", c.NIC.Seed), secret: hostnic.NewSecret("cookies of the connection manager", c.NIC.Seed), due: frame.Never}, nil
}

// complete returns the configuration with defaults filled in.
func (c *Config) complete() Config {
	out := *c
	out.NIC.MaxQPs = maxQPs
	if out.Sessions == 0 {
		out.Sessions = 256
	}
	if out.Algorithm == nil {
		out.Algorithm = func(name string) (func(*cc.Env) cc.Algorithm, error) { return cc.Factory(name, nil) }
	}
	return out
}

// NIC returns the agent's NIC, to be read.
func (a *Agent) NIC() *hostnic.NIC { return a.nic }

// Receive implements frame.Node.
func (a *Agent) Receive(now frame.Time, port uint16, v []frame.Ref) {
	a.nic.Receive(now, port, v)
	a.collect(now)
}

// Transmit implements frame.Node.
func (a *Agent) Transmit(now frame.Time, port uint16, out []frame.Ref) int {
	n := a.nic.Transmit(now, port, out)
	for _, r := range out[:n] {
		a.Late.Observe(now - a.arena.Meta(r).Depart)
	}
	return n
}

// Advance implements frame.Node.
func (a *Agent) Advance(now frame.Time) {
	a.nic.Advance(now)
	a.collect(now)
	if now < a.due {
		return
	}
	a.due = frame.Never
	for i := 0; i < len(a.transfers); i++ {
		if t := a.transfers[i]; t.due <= now {
			a.stepTransfer(now, t)
		}
	}
	for i := 0; i < len(a.sessions); i++ {
		if s := a.sessions[i]; s.due <= now {
			a.stepSession(now, s)
		}
	}
	a.advanceConns(now)
	a.transfers = slices.DeleteFunc(a.transfers, func(t *Transfer) bool { return t.State == Ended })
	a.sessions = slices.DeleteFunc(a.sessions, func(s *session) bool { return s.gone })
	a.retire()
	for _, t := range a.transfers {
		a.due = min(a.due, t.due)
	}
	for _, s := range a.sessions {
		a.due = min(a.due, s.due)
	}
}

// Wake implements frame.Node.
func (a *Agent) Wake(now frame.Time) frame.Time { return min(a.nic.Wake(now), a.due) }

// TimerWake implements frame.Stepper.
func (a *Agent) TimerWake(now frame.Time) frame.Time {
	return max(now, min(a.nic.TimerWake(now), a.due))
}

// PortWake implements frame.Stepper.
func (a *Agent) PortWake(now frame.Time, port uint16) frame.Time { return a.nic.PortWake(now, port) }

// Touched implements frame.Stepper.
func (a *Agent) Touched(out []uint16) int { return a.nic.Touched(out) }

// Verdicts returns the counters of the checks of payload.
func (a *Agent) Verdicts() *frame.Verdicts { return a.nic.Verdicts() }

// Extension is that of the NIC.
func (a *Agent) Extension(b []byte, bth int) int { return a.nic.Extension(b, bth) }

// SetLink implements frame.Node.
func (a *Agent) SetLink(now frame.Time, port uint16, up bool) { a.nic.SetLink(now, port, up) }

// TapDrops enables captures of what the NIC drops, as in dataplane.DropTap.
func (a *Agent) TapDrops(buf []frame.Ref) { a.nic.TapDrops(buf) }

// TakeDrops returns what was listed since the last call.
func (a *Agent) TakeDrops() []frame.Ref { return a.nic.TakeDrops() }

// collect processes what the NIC has for the agent.
func (a *Agent) collect(now frame.Time) {
	a.completions(now)
	// After the completions, since Close follows the last message.
	for a.nic.TakeDatagram(&a.gram) {
		a.datagram(now, &a.gram)
	}
}

func (a *Agent) completions(now frame.Time) {
	for a.nic.Completed() > 0 {
		for i := range a.done[:a.nic.TakeCompletions(a.done[:])] {
			c := &a.done[i]
			switch s := &a.slots[c.QPN&(maxQPs-1)]; {
			case s.qpn != c.QPN:
			case s.c != nil:
				s.c.done = append(s.c.done, *c)
				a.addNews(s.c)
			case s.t != nil:
				a.messageDone(now, s.t, c)
			case s.s != nil:
				s.s.completed(c)
			}
		}
	}
}

func (a *Agent) datagram(now frame.Time, d *hostnic.Datagram) {
	var m message
	if m.decode(d.Data[:d.Len]) != nil || d.Port != Port {
		a.BadDatagrams++
		return
	}
	switch m.kind {
	case request:
		a.requestArrived(now, d, &m)
	case closing:
		a.closeArrived(now, d, &m)
	default:
		for _, t := range a.transfers {
			if t.id == m.id && t.To == d.From {
				a.transferAnswered(now, t, &m)
				return
			}
		}
		for _, c := range a.conns {
			if c.id == m.id && c.To == d.From {
				a.connAnswered(now, c, &m)
				return
			}
		}
	}
}

// wakeBy makes Advance run at the given instant at the latest.
func (a *Agent) wakeBy(t frame.Time) { a.due = min(a.due, t) }

// Counts returns the numbers of open sessions of other hosts and of transfers.
func (a *Agent) Counts() (sessions, transfers int) { return len(a.sessions), len(a.transfers) }

// Limits returns the largest numbers of open sessions of other hosts, and of all queue
// pairs.
func (a *Agent) Limits() (sessions, queuePairs int) { return a.cfg.Sessions, maxQPs }
