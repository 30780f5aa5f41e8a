package collect

import (
	"context"
	"errors"
	"fmt"

	"gswitch/telemetry"
)

// keeper puts the reports of one exporter start into the stream, each once.
type keeper struct {
	store   *Store
	network *Network
	hello   telemetry.Hello
	token   string
	most    int    // limit of a message in bytes
	had     uint64 // number of the last report in the stream when it started
	last    [Lanes]laneEnd
}

// laneEnd is the last report of an exporter in a lane.
type laneEnd struct {
	known  bool
	report uint64 // its number
	seq    uint64 // of the message; 0: it is no longer there
	missed uint64 // missed reports according to this message
}

// kept is the outcome of reports: how many were stored, how many had been stored before,
// and the number of the last one.
type kept struct{ Stored, Again, Last uint64 }

func newKeeper(s *Store, n *Network, h telemetry.Hello) *keeper {
	h.Missed = 0 // only a collector sets it
	return &keeper{store: s, network: n, hello: h, token: token(&h), most: int(s.nc.MaxPayload()) - maxHelloShare}
}

const (
	// maxHelloShare is the space for the hello and its headers in a message.
	maxHelloShare = 256 << 10
	// mostSwitches is the largest number of switches with reports in a message, so that
	// the hello fits, whatever their names.
	mostSwitches = 128
)

// begin returns the number of the last report of this exporter start in the stream, and
// takes over what was missed before this connection.
func (k *keeper) begin(ctx context.Context) (last uint64, err error) {
	for lane := range Lanes {
		e, err := k.end(ctx, lane)
		if err != nil {
			return 0, err
		}
		last, k.hello.Missed = max(last, e.report), max(k.hello.Missed, e.missed)
	}
	k.had = last
	return last, nil
}

// missed records that the reports up to a number that are not in the stream never will
// be. Their lanes are unknown, so the next message of each lane says so.
func (k *keeper) missed(upTo uint64) { k.hello.Missed = max(k.hello.Missed, upTo) }

// keep returns when all reports are in the stream. They are in the order of their
// numbers.
func (k *keeper) keep(ctx context.Context, reports []telemetry.Report) (done kept, err error) {
	var wire [Lanes][]byte
	var to [Lanes]uint64
	var from [Lanes]map[uint16]bool // switches
	var n [Lanes]uint64             // reports
	flush := func(lane int) error {
		if len(wire[lane]) == 0 {
			return nil
		}
		err := k.put(ctx, lane, wire[lane], to[lane], from[lane])
		if err == nil {
			done.Stored, done.Last = done.Stored+n[lane], max(done.Last, to[lane])
		}
		wire[lane], from[lane], n[lane] = wire[lane][:0], nil, 0
		return err
	}
	for i := range reports {
		r := &reports[i]
		if r.Kind == "" {
			k.missed(r.Sequence) // it was too large to be read
			continue
		}
		lane := k.network.laneOf(&k.hello, r)
		end, err := k.end(ctx, lane)
		if err != nil {
			return done, err
		}
		if r.Sequence <= max(end.report, to[lane]) {
			done.Again++
			continue
		}
		if len(wire[lane])+r.Size() > k.most || len(from[lane]) == mostSwitches && !from[lane][r.Node] {
			if err := flush(lane); err != nil {
				return done, err
			}
		}
		wire[lane], to[lane] = r.Append(wire[lane]), r.Sequence
		if from[lane] == nil {
			from[lane] = map[uint16]bool{}
		}
		from[lane][r.Node] = true
		n[lane]++
	}
	for lane := range wire {
		if err := flush(lane); err != nil {
			return done, err
		}
	}
	return done, nil
}

// of returns the hello for a message, with only the switches whose reports are in it:
// small reports must not take the space of all switches of an exporter.
func (k *keeper) of(from map[uint16]bool) *telemetry.Hello {
	h := k.hello
	h.Nodes = nil
	for _, n := range k.hello.Nodes {
		if from[n.ID] {
			h.Nodes = append(h.Nodes, n)
			delete(from, n.ID) // the first one with the number
		}
	}
	return &h
}

// end returns what a lane has.
func (k *keeper) end(ctx context.Context, lane int) (*laneEnd, error) {
	e := &k.last[lane]
	if !e.known {
		var err error
		if *e, err = k.store.lastOf(ctx, lane, k.token); err != nil {
			return nil, err
		}
		e.known = true
	}
	return e, nil
}

// put puts a message into the stream. If the last message of this exporter in the stream
// is not the expected one, either it has been analysed and deleted, or another collector
// has a connection of the same exporter, and this one must end.
func (k *keeper) put(ctx context.Context, lane int, wire []byte, to uint64, from map[uint16]bool) error {
	data, err := encode(k.of(from), wire)
	if err != nil {
		return err
	}
	e := &k.last[lane]
	seq, err := k.store.publish(ctx, reportSubject(lane, k.token), data, e.seq)
	if errors.Is(err, errConflict) {
		now, lerr := k.store.lastOf(ctx, lane, k.token)
		if lerr != nil {
			return lerr
		}
		if now.report != e.report || now.seq != 0 {
			return fmt.Errorf("lane %d: %w", lane, errConflict)
		}
		seq, err = k.store.publish(ctx, reportSubject(lane, k.token), data, 0)
	}
	if err != nil {
		return err
	}
	e.report, e.seq = to, seq
	return nil
}
