package hostnic

import (
	"fmt"

	"gswitch/frame"
	"gswitch/wire"
)

// VerbsConfig makes a queue pair one for RDMA operations over registered
// memory (QPConfig.Verbs) instead of the message service. Both ends must have
// one.
type VerbsConfig struct {
	// MaxReads is how many reads and atomics are under way at most; those that
	// follow wait, and so does what was posted after them. 0 = 16.
	MaxReads uint32
	// Retries is how many timeouts in a row without progress end the
	// connection, RNRRetries how many answers that the receiver is not ready
	// for the same packet; 0 = for ever.
	Retries, RNRRetries uint8
	// RNRTimer is how long this end asks senders to wait for when there is no
	// receive request, rounded up to one of the times of IBTA table 45.
	// 0 = 10 us.
	RNRTimer frame.Time
	// SRQ is a receive queue shared with other queue pairs; nil: its own.
	SRQ *SharedReceive
}

const (
	defaultMaxReads = 16
	maxMaxReads     = 128
)

// verbs is what a queue pair has for RDMA operations. Requests run over the
// queue pair's own sender and receiver. Responses run over those of a second
// queue pair, which has no number on the wire: so they have a sequence space,
// cap, timer, pace and congestion control of their own (IRN section 5.4).
type verbs struct {
	cfg    VerbsConfig
	req    requester
	rsp    responder
	resp   *queuePair
	failed bool
	rnr    uint8  // answers in a row that the receiver is not ready
	rnrAt  uint64 // for this packet

	granted []uint32 // R_keys
}

// Memory returns the table of regions that remote ends may reach.
func (n *NIC) Memory() *Memory { return &n.memory }

// Post queues an RDMA operation on a queue pair that was opened with
// QPConfig.Verbs. Its end is reported by a completion; completions come in the
// order of posting.
func (n *NIC) Post(now frame.Time, qpn uint32, wr *WorkRequest) error {
	q, err := n.verbsOf(qpn)
	if err != nil {
		return err
	}
	if err := q.verbs.req.post(now, wr); err != nil {
		return fmt.Errorf("nic %s: queue pair %#x: %w", n.cfg.Name, qpn, err)
	}
	if q.verbs.failed {
		n.flushWork(now, q, StatusFlushed)
		return nil
	}
	n.issue(now, q)
	return nil
}

// PostRecv adds a receive request to the queue pair's own queue.
func (n *NIC) PostRecv(now frame.Time, qpn uint32, w RecvRequest) error {
	q, err := n.verbsOf(qpn)
	if err != nil {
		return err
	}
	rq := &q.verbs.rsp.rq
	if rq.shared != nil {
		return fmt.Errorf("nic %s: queue pair %#x draws from a shared receive queue: post there", n.cfg.Name, qpn)
	}
	rq.push(w)
	if q.verbs.failed {
		n.flushReceives(now, q)
	}
	return nil
}

func (n *NIC) verbsOf(qpn uint32) (*queuePair, error) {
	q, why := n.lookup(qpn)
	if why != frame.Keep {
		return nil, fmt.Errorf("nic %s: there is no queue pair %#x: %v", n.cfg.Name, qpn, why)
	}
	if q.service != &requestService {
		return nil, fmt.Errorf("nic %s: queue pair %#x is of the message service: open it with QPConfig.Verbs", n.cfg.Name, qpn)
	}
	return q, nil
}

// Grant returns an R_key that opens a region of Memory to the remote end of one queue
// pair, and to no other. It ends with the queue pair, with the region, or by
// Deregister.
func (n *NIC) Grant(key, qpn uint32) (rkey uint32, err error) {
	q, err := n.verbsOf(qpn)
	if err != nil {
		return 0, err
	}
	for _, g := range q.verbs.granted {
		if r := n.memory.lookup(g); r != nil && r.owner == qpn+1 && r.of == key {
			return g, nil
		}
	}
	if rkey, err = n.memory.grant(key, qpn); err == nil {
		q.verbs.granted = append(q.verbs.granted, rkey)
	}
	return rkey, err
}

// openVerbs makes q one for RDMA operations.
func (n *NIC) openVerbs(now frame.Time, q *queuePair, cfg *QPConfig) error {
	c := cfg.Verbs
	if n.cfg.Sizes.Data != 0 {
		return fmt.Errorf("nic %s: RDMA operations need the real sizes of data frames", n.cfg.Name)
	}
	if c.MaxReads > maxMaxReads {
		return fmt.Errorf("nic %s: MaxReads %d is above %d", n.cfg.Name, c.MaxReads, maxMaxReads)
	}
	need := int(q.data.n) + maxExtensionAlone + wire.ICRCLen
	if !n.cfg.Virtual {
		need = max(need, int(n.dataWire(q, uint32(n.cfg.Payload)))+maxExtension)
	}
	if need > n.pool.Room() {
		return fmt.Errorf("nic %s: RDMA frames of %d bytes do not fit into chunks with room for %d%s", n.cfg.Name, need, n.pool.Room(), n.lower(need))
	}
	sub := *cfg
	sub.Verbs = nil
	sub.SrcPort = q.dataUDP().SrcPort() // all that the other end gets of q comes from one port
	qpn, err := n.OpenQP(now, &sub)
	if err != nil {
		return err
	}
	n.count.QPsOpen--
	resp, _ := n.lookup(qpn)
	resp.serve(&responseService)
	resp.owner, resp.ackOp = q, readAck
	v := n.takeVerbs()
	v.cfg, v.resp = *c, resp
	if v.cfg.MaxReads == 0 {
		v.cfg.MaxReads = defaultMaxReads
	}
	mtu := uint64(n.cfg.Payload)
	v.req.reset(mtu, v.cfg.MaxReads)
	v.rsp.reset(mtu, !cfg.Transport.Kind().Keeps, &n.memory, q.qpn, c.SRQ)
	v.failed, v.rnr, v.rnrAt = false, 0, 0
	q.serve(&requestService)
	q.verbs = v
	return nil
}

func (n *NIC) takeVerbs() *verbs {
	if k := len(n.spareVerbs); k > 0 {
		v := n.spareVerbs[k-1]
		n.spareVerbs = n.spareVerbs[:k-1]
		return v
	}
	return new(verbs)
}

func (q *queuePair) extensionOfVerbs(op byte) int {
	if operationOf(op).family == noFamily {
		return 0
	}
	return wire.BTHLen + headersLen(op, q.verbs.rsp.inOrder) - wire.RoCEHeaderLen(op)
}

// connectVerbs connects the second queue pair: it addresses the first of the
// other end, which knows responses by their opcode.
func (n *NIC) connectVerbs(q *queuePair) {
	resp := q.verbs.resp
	resp.remote, resp.linked = q.remote, true
	resp.data.setQP(q.remote)
	resp.reply.setQP(q.remote)
	n.issueBefore(q)
}

// closeVerbs ends the operations of q.
func (n *NIC) closeVerbs(now frame.Time, q *queuePair) {
	n.halt(q)
	n.flushWork(now, q, StatusFlushed)
	n.flushReceives(now, q)
	v := q.verbs
	for _, g := range v.granted {
		n.memory.revoke(g, q.qpn)
	}
	v.granted = v.granted[:0]
	v.resp.owner = nil
	n.CloseQP(now, v.resp.qpn)
	n.count.QPsOpen++
	v.resp, q.verbs = nil, nil
	n.spareVerbs = append(n.spareVerbs, v)
}

// halt stops both sequence spaces of q.
func (n *NIC) halt(q *queuePair) {
	for _, p := range [...]*queuePair{q, q.verbs.resp} {
		n.withdraw(p)
		p.msgs.reset()
		p.seg.reset(p.seg.size, 0)
		p.tx.Init(&p.transport)
		p.posted, p.linked = 0, false
	}
}

// fail ends a connection: the oldest operation that is not acknowledged gets
// the status, what else is not done is flushed (IBTA 9.9.2).
func (n *NIC) fail(now frame.Time, q *queuePair, status Status) {
	if q.owner != nil {
		q = q.owner
	}
	n.halt(q)
	q.verbs.failed = true
	n.flushWork(now, q, status)
	n.flushReceives(now, q)
}

// flushWork completes every work request that is left.
func (n *NIC) flushWork(now frame.Time, q *queuePair, status Status) {
	r := &q.verbs.req
	culprit := r.acked
	for {
		number := r.base
		w := r.pop()
		if w == nil {
			break
		}
		s := StatusFlushed
		if number == culprit && number < r.issued {
			s = status
		}
		if w.acked && w.answered {
			s = StatusOK
		}
		n.workDone(now, q, w, s)
	}
}

func (n *NIC) flushReceives(now frame.Time, q *queuePair) {
	rq := &q.verbs.rsp.rq
	for rq.n > 0 {
		w := rq.pop()
		rq.base++
		n.done = append(n.done, Completion{Op: RecvDone, QPN: q.qpn, ID: w.ID, Start: now, End: now, Status: StatusFlushed})
	}
}

// workOps are the operations of completions.
var workOps = [numVerbs]Op{Send: SendDone, SendImmediate: SendDone, Write: WriteDone, WriteImmediate: WriteDone, Read: ReadDone, FetchAdd: AtomicDone, CompareSwap: AtomicDone}

func (n *NIC) workDone(now frame.Time, q *queuePair, w *work, s Status) {
	n.done = append(n.done, Completion{Op: workOps[w.Verb], QPN: q.qpn, ID: w.ID, Bytes: w.bytes, Start: w.start, End: now, Retransmitted: w.rtx, Status: s})
	if s == StatusOK {
		n.count.MessagesSent++
	}
	w.Local = nil
}

// issueBefore gives packets to work posted before the connection; the caller
// schedules q.
func (n *NIC) issueBefore(q *queuePair) {
	r := &q.verbs.req
	for w := r.issue(); w != nil; w = r.issue() {
		m := q.msgs.push()
		*m = message{id: r.issued - 1, bytes: w.bytes, first: w.first, end: w.first + w.packets, lastLen: r.lastLen(w), start: w.start}
		q.posted = m.end
	}
}

// issue gives packets to the work that may go.
func (n *NIC) issue(now frame.Time, q *queuePair) {
	if q.linked {
		n.issueBefore(q)
		n.schedule(now, q)
	}
}

// finish reports the work that is done, and issues what waited for it.
func (n *NIC) finish(now frame.Time, q *queuePair) {
	for w := q.verbs.req.complete(); w != nil; w = q.verbs.req.complete() {
		n.workDone(now, q, w, StatusOK)
	}
	n.issueBefore(q)
}

// retireRequests takes in cumulative progress of requests.
func (n *NIC) retireRequests(now frame.Time, q *queuePair) {
	cum := q.tx.Cum()
	for ; q.msgs.n > 0 && q.msgs.at(0).end <= cum; q.msgs.pop() {
		m := q.msgs.at(0)
		q.verbs.req.at(m.id).rtx = m.rtx
	}
	q.verbs.req.acknowledged(cum)
	n.finish(now, q)
}

// retireResponses takes in that of responses.
func (n *NIC) retireResponses(_ frame.Time, q *queuePair) {
	cum := q.tx.Cum()
	for q.msgs.n > 0 && q.msgs.at(0).end <= cum {
		q.msgs.pop()
	}
	q.owner.verbs.rsp.acknowledged(cum)
}

// exhaustedVerbs ends a connection with too many timeouts in a row. It reports
// whether it did.
func (n *NIC) exhaustedVerbs(now frame.Time, q *queuePair) bool {
	owner := q
	if q.owner != nil {
		owner = q.owner
	}
	if limit := owner.verbs.cfg.Retries; limit == 0 || q.tx.Retries() <= limit {
		return false
	}
	n.fail(now, owner, StatusRetries)
	return true
}
