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
	most    int // bytes of a message
	last    [Lanes]laneEnd
}

// laneEnd is the last of an exporter that a lane has.
type laneEnd struct {
	known  bool
	report uint64 // its number
	seq    uint64 // of the message, 0: none is there
}

// kept is what became of reports.
type kept struct{ Stored, Again uint64 }

func newKeeper(s *Store, n *Network, h telemetry.Hello) *keeper {
	return &keeper{store: s, network: n, hello: h, token: token(&h), most: int(s.nc.MaxPayload()) - maxHelloShare}
}

// maxHelloShare is room for the hello in a message, and for its headers.
const maxHelloShare = 256 << 10

// keep returns when all reports are in the stream, which come by their numbers.
func (k *keeper) keep(ctx context.Context, reports []telemetry.Report) (done kept, err error) {
	var wire [Lanes][]byte
	var to [Lanes]uint64
	flush := func(lane int) error {
		if len(wire[lane]) == 0 {
			return nil
		}
		err := k.put(ctx, lane, wire[lane], to[lane])
		wire[lane] = wire[lane][:0]
		return err
	}
	for i := range reports {
		r := &reports[i]
		if r.Kind == "" {
			continue // it was too large to be read
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
		if len(wire[lane])+r.Size() > k.most {
			if err := flush(lane); err != nil {
				return done, err
			}
		}
		wire[lane], to[lane] = r.Append(wire[lane]), r.Sequence
		done.Stored++
	}
	for lane := range wire {
		if err := flush(lane); err != nil {
			return done, err
		}
	}
	return done, nil
}

// end returns what a lane has.
func (k *keeper) end(ctx context.Context, lane int) (*laneEnd, error) {
	e := &k.last[lane]
	if !e.known {
		var err error
		if e.report, e.seq, err = k.store.lastOf(ctx, lane, k.token); err != nil {
			return nil, err
		}
		e.known = true
	}
	return e, nil
}

// put puts a message into the stream. Where the stream does not end for this
// exporter as it did, either what it had was analysed and is gone, or another
// collector has a connection of the same exporter, which must not go on.
func (k *keeper) put(ctx context.Context, lane int, wire []byte, to uint64) error {
	data, err := encode(&k.hello, wire)
	if err != nil {
		return err
	}
	e := &k.last[lane]
	seq, err := k.store.publish(ctx, reportSubject(lane, k.token), data, e.seq)
	if errors.Is(err, errConflict) {
		report, at, lerr := k.store.lastOf(ctx, lane, k.token)
		if lerr != nil {
			return lerr
		}
		if report != e.report || at != 0 {
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
