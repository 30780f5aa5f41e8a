package collect

import (
	"context"
	"errors"
	"fmt"

	"gswitch/telemetry"
)

// keeper puts the reports of one start of an exporter into the stream, each once.
type keeper struct {
	store   *Store
	network *Network
	hello   telemetry.Hello
	token   string
	most    int    // bytes of a message
	had     uint64 // the number of the last report that the stream had when it began
	last    [Lanes]laneEnd
}

// laneEnd is the last of an exporter that a lane has.
type laneEnd struct {
	known  bool
	report uint64 // its number
	seq    uint64 // of the message, 0: none is there
	missed uint64 // that this message says
}

// kept is what became of reports: how many are in the stream, or were, and the number of the
// last that is.
type kept struct{ Stored, Again, Last uint64 }

func newKeeper(s *Store, n *Network, h telemetry.Hello) *keeper {
	h.Missed = 0 // only a collector sets it
	return &keeper{store: s, network: n, hello: h, token: token(&h), most: int(s.nc.MaxPayload()) - maxHelloShare}
}

const (
	// maxHelloShare is room for the hello in a message, and for its headers.
	maxHelloShare = 256 << 10
	// mostSwitches is of how many switches a message has reports, so that the hello fits,
	// whatever their names.
	mostSwitches = 128
)

// begin returns the number of the last report that the stream has of this start, and goes
// on with what was missed before this connection.
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

// missed notes that the reports up to a number that are not in the stream never will be. Of
// which lanes they would be is not known: the next message of each says so.
func (k *keeper) missed(upTo uint64) { k.hello.Missed = max(k.hello.Missed, upTo) }

// keep returns when all reports are in the stream, which come by their numbers.
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

// of is the hello of a message, with the switches alone whose reports are in it: a few
// bytes of reports must not take the disk that all switches of an exporter take.
func (k *keeper) of(from map[uint16]bool) *telemetry.Hello {
	h := k.hello
	h.Nodes = nil
	for _, n := range k.hello.Nodes {
		if from[n.ID] {
			h.Nodes = append(h.Nodes, n)
			delete(from, n.ID) // the first that has the number
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

// put puts a message into the stream. Where the stream does not end for this
// exporter as it did, either what it had was analysed and is gone, or another
// collector has a connection of the same exporter, which must not go on.
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
