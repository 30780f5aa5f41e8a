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

// Transfer is a sequence of messages to another host, and its results. It belongs to the
// agent from Start until State is Ended.
type Transfer struct {
	To       netip.Addr
	Service  Service
	Verb     hostnic.Verb      // of Memory: Write or Read
	Size     uint64            // bytes of a message
	Count    int               // messages
	Depth    int               // messages in progress at once
	Interval frame.Time        // least time between the posting of two messages
	Data     []byte            // Size bytes: what is sent, or where Read stores the result
	CC       string            // of both directions, as cc registers it
	Options  map[string]string // of CC, with which New was made
	New      func(*cc.Env) cc.Algorithm
	Limit    float64 // highest sending rate in bit/s, 0 for none
	Class    uint8
	INT      inband.Mode
	Trace    bool            // keep the path of each message
	Recovery *transport.Kind // nil: go-back-N
	Cap      uint32          // most packets in flight, 0 for none

	Number  uint64 // number of the transfer within the agent, from 1
	State   State
	Err     error
	Local   uint32 // queue pairs
	Remote  uint32
	Started frame.Time
	Asked   frame.Time // when Request was first sent
	Opened  frame.Time // when Accept arrived
	Over    frame.Time // when it ended
	Posted  int
	Samples []Sample      // of completed messages, in order
	Paths   []inband.Path // with Trace: of the acknowledgement that ended each message
	Watch   Watch
	// What the other end received: for Messages and Probe, and for Write as verified in its
	// memory.
	Received Received
	// Sent are the counters of the queue pair.
	Sent hostnic.QPStats
	Rtx  uint64 // frames sent again

	handshake
	nextPost frame.Time
	progress frame.Time
	rkey     uint32
	seen     uint64 // acknowledgements and frames so far
	abort    bool
}

// Sample is one message.
type Sample struct {
	Start, End frame.Time
	RTT        frame.Time // the last one measured by then
}

// Received is what the other end of a transfer reports as received.
type Received struct {
	Bytes, Messages, Corrupt uint64
}

// State of a transfer.
type State uint8

const (
	Connecting State = iota
	Running
	Closing
	Ended
)

// String returns the name of the state.
func (s State) String() string {
	return [...]string{"connecting", "running", "closing", "ended"}[s&3]
}

const (
	stall         = 10 * frame.Second // without progress
	look          = 100 * frame.Millisecond
	memoryRetries = 100 // timeouts in a row that end an RDMA connection
)

// Start starts a transfer. It returns an error, and does not start, if the parameters are
// invalid.
func (a *Agent) Start(now frame.Time, t *Transfer) error {
	switch {
	case a.closing:
		return ErrClosing
	case t.Count <= 0 || t.Depth <= 0:
		return fmt.Errorf("%d messages, %d at once: both must be positive", t.Count, t.Depth)
	case uint64(len(t.Data)) != t.Size:
		return fmt.Errorf("%d bytes of data for messages of %d", len(t.Data), t.Size)
	case len(t.CC) > ccLen:
		return fmt.Errorf("congestion control %q: the name is longer than %d letters", t.CC, ccLen)
	}
	if _, err := a.nic.NextHop(t.To); err != nil {
		return err
	}
	t.id, t.Started, t.due = a.draws.Next(), now, now
	t.Samples = slices.Grow(t.Samples, t.Count)
	a.started++
	t.Number = a.started
	a.transfers = append(a.transfers, t)
	a.wakeBy(now)
	return nil
}

// Abort ends a transfer early: work in progress is abandoned.
func (a *Agent) Abort(now frame.Time, t *Transfer) {
	if t.State != Ended && slices.Contains(a.transfers, t) {
		t.abort, t.due = true, now
		a.wakeBy(now)
	}
}

// Transfers appends the transfers that have not ended.
func (a *Agent) Transfers(out []*Transfer) []*Transfer { return append(out, a.transfers...) }

// stepTransfer does what is due for a transfer.
func (a *Agent) stepTransfer(now frame.Time, t *Transfer) {
	switch {
	case t.abort:
		t.abort = false
		a.fail(now, t, errors.New("it was ended before it was done"))
	case t.State == Connecting:
		a.connectTransfer(now, t)
	case t.State == Running:
		a.run(now, t)
	case t.State == Closing:
		a.disconnect(now, t)
	}
}

// connectTransfer opens the queue pairs.
func (a *Agent) connectTransfer(now frame.Time, t *Transfer) {
	o := opening{to: t.To, service: t.Service, class: t.Class, cc: t.CC, newCC: t.watched(a), int: t.INT, recovery: t.Recovery, cap: t.Cap, size: t.Size,
		hint: "is ghost running there?"}
	if t.Service == Memory {
		o.verbs = &hostnic.VerbsConfig{Retries: memoryRetries}
	}
	opened := t.Local != 0
	if err := a.connect(now, &t.handshake, &o, &t.Local, slot{t: t}); err != nil {
		a.fail(now, t, err)
		return
	}
	if !opened && t.Local != 0 {
		t.Asked = now
	}
}

func (t *Transfer) watched(a *Agent) func(*cc.Env) cc.Algorithm {
	return func(env *cc.Env) cc.Algorithm {
		return &watched{Algorithm: t.New(env), watch: &t.Watch, limit: t.Limit, link: &a.cfg.NIC}
	}
}

// transferAnswered handles a message of the passive end.
func (a *Agent) transferAnswered(now frame.Time, t *Transfer, m *message) {
	switch {
	case t.State == Connecting:
		connected, err := a.takeAnswer(now, &t.handshake, t.To, t.Local, m)
		if err != nil {
			a.fail(now, t, err)
			return
		}
		if connected {
			t.State, t.Remote, t.rkey, t.Opened, t.progress = Running, m.qpn, m.rkey, now, now
			a.run(now, t)
			a.wakeBy(t.due)
		}
	case t.State == Closing && m.kind == closed:
		t.Received = Received{m.bytes, m.messages, m.corrupt}
		a.endTransfer(now, t)
	}
}

// run posts the messages that may be posted, and checks that the other end answers.
func (a *Agent) run(now frame.Time, t *Transfer) {
	t.due = now + look
	for t.Posted < t.Count && t.Posted-len(t.Samples) < t.Depth {
		if now < t.nextPost {
			t.due = min(t.due, t.nextPost)
			break
		}
		if err := a.post(now, t); err != nil {
			a.fail(now, t, err)
			return
		}
		t.Posted++
		t.nextPost = max(t.nextPost, now) + t.Interval
	}
	v, err := a.nic.QP(t.Local)
	if err != nil {
		a.fail(now, t, err)
		return
	}
	if seen := v.Stats.Acks + v.Stats.RxFrames; seen != t.seen || t.Posted == len(t.Samples) {
		t.seen, t.progress = seen, now
	} else if now-t.progress >= stall {
		a.fail(now, t, fmt.Errorf("%v has not answered for %v: is it still there?", t.To, (now-t.progress).Duration().Round(1e8)))
	}
}

func (a *Agent) post(now frame.Time, t *Transfer) error {
	id := uint64(t.Posted)
	if t.Service == Memory {
		return a.nic.Post(now, t.Local, &hostnic.WorkRequest{ID: id, Verb: t.Verb, Local: t.Data, RKey: t.rkey})
	}
	return a.nic.SendBytes(now, t.Local, t.Data, id)
}

// messageDone handles the completion of a message of a transfer.
func (a *Agent) messageDone(now frame.Time, t *Transfer, c *hostnic.Completion) {
	if t.State != Running || c.Op == hostnic.RecvDone {
		// It belongs to a transfer that was aborted, or to a message of the other end.
		return
	}
	if c.Status != hostnic.StatusOK {
		a.fail(now, t, fmt.Errorf("message %d: %v", c.ID, statusText(c.Status)))
		return
	}
	s := Sample{Start: c.Start, End: c.End, RTT: t.Watch.LastRTT}
	t.Samples = append(t.Samples, s)
	if t.Trace {
		t.Paths = append(t.Paths, t.Watch.Path)
	}
	if len(t.Samples) < t.Count {
		t.due = now
		a.wakeBy(now)
		return
	}
	t.State, t.tries, t.due = Closing, 0, now
	a.wakeBy(now)
}

func statusText(s hostnic.Status) string {
	switch s {
	case hostnic.StatusRemote:
		return "the other end refused access to its memory"
	case hostnic.StatusInvalid:
		return "the other end refused the request as invalid"
	case hostnic.StatusRetries:
		return "no answer, too many times"
	case hostnic.StatusFlushed:
		return "given up, since the queue pair failed"
	}
	return fmt.Sprintf("status %d", s)
}

// disconnect requests from the other end what it received.
func (a *Agent) disconnect(now frame.Time, t *Transfer) {
	if t.tries++; t.tries > maxTries {
		t.Err = fmt.Errorf("%v does not say what it received", t.To)
		a.endTransfer(now, t)
		return
	}
	m := message{kind: closing, id: t.id}
	if t.Service == Memory && t.Verb == hostnic.Write {
		m.size = t.Size
	}
	a.send(now, t.To, &m)
	t.due = now + retry
}

// fail ends a transfer with an error. The other end gets one Close; if that is lost, its
// session times out.
func (a *Agent) fail(now frame.Time, t *Transfer, err error) {
	t.Err = err
	if t.Remote != 0 {
		a.send(now, t.To, &message{kind: closing, id: t.id})
	}
	a.endTransfer(now, t)
}

// endTransfer closes the queue pair and ends the transfer.
func (a *Agent) endTransfer(now frame.Time, t *Transfer) {
	if t.Local != 0 {
		if v, err := a.nic.QP(t.Local); err == nil {
			t.Sent, t.Rtx = v.Stats, v.Retransmitted
		}
		a.release(now, t.Local)
	}
	t.State, t.Over, t.due = Ended, now, now
	a.wakeBy(now)
}
