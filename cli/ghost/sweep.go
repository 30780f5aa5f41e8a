package ghost

import (
	"context"
	"fmt"

	"gswitch/control/api"
	"gswitch/control/cli"
	"gswitch/wire"
)

// The sweep goes up through these shares of the link's rate to the first that
// is not clean, and then halves the gap so often.
var sweepShares = []float64{1. / 8, 1. / 4, 1. / 2, 3. / 4, 1}

const (
	halvings = 3
	// Messages of one step: as many round trips are seen.
	sweepMessages = 400
	// A step that takes longer than this times what it should was held up.
	slower = 1.15
	// headerBytes of a data frame on the link, without telemetry: also preamble,
	// check sequence and gap (IEEE 802.3).
	headerBytes = 24 + 14 + wire.IPv4Len + wire.UDPLen + wire.BTHLen + wire.ICRCLen
)

// sweep looks for the highest clean rate towards a peer.
func (q *calibrating) sweep(ctx context.Context, r *calibration, peer string) error {
	low, high := 0.0, 0.0
	for _, share := range sweepShares {
		clean, err := q.twice(ctx, r, peer, share)
		if err != nil {
			return err
		}
		if !clean {
			high = share
			break
		}
		low = share
	}
	for i := 0; i < halvings && high > 0 && low > 0; i++ {
		middle := (low + high) / 2
		clean, err := q.twice(ctx, r, peer, middle)
		if err != nil {
			return err
		}
		if clean {
			low = middle
		} else {
			high = middle
		}
	}
	r.CleanRate = uint64(low * float64(r.LinkRate))
	return nil
}

// twice tries a rate, and again if it is not clean: that may have been the
// machine.
func (q *calibrating) twice(ctx context.Context, r *calibration, peer string, share float64) (bool, error) {
	for range 2 {
		p, err := q.try(ctx, r, peer, uint64(share*float64(r.LinkRate)))
		if err != nil {
			return false, err
		}
		r.Rates = append(r.Rates, p)
		if p.Clean {
			return true, nil
		}
	}
	return false, nil
}

// try sends at a rate for a step.
func (q *calibrating) try(ctx context.Context, r *calibration, peer string, rate uint64) (rateProbe, error) {
	fmt.Fprintf(q.say, "sending to %s at %s ...\n", peer, cli.Rate(float64(rate)))
	bytes := float64(rate) / 8 * q.step.Seconds()
	size := min(max(bytes/sweepMessages, 4*float64(r.Payload)), 1<<20)
	count := max(1, bytes/size)
	flight := float64(rate) / 8 * float64(r.Derived.T) / 1e9
	var rtts []uint64
	m, err := q.a.move(ctx, q.client, &api.TransferRequest{To: peer, Operation: "send", Size: uint64(size), Count: uint32(count), Depth: uint32(min(4096, 4+2*flight/size)),
		Congestion: "none", Telemetry: "none", Rate: rate, Class: -1}, func(s *api.TransferSample) { rtts = append(rtts, s.Rtt) })
	if err != nil {
		return rateProbe{}, err
	}
	res := m.Result
	p := rateProbe{Rate: rate, Goodput: res.Goodput, Retransmitted: res.Retransmitted, RTT: spreadOf(rtts).P50}
	t := float64(r.Derived.T)
	frames := float64(res.Bytes) / float64(r.Payload)
	due := 8e9*(float64(res.Bytes)+frames*headerBytes)/float64(rate) + t
	switch {
	case res.Corrupt > 0:
		p.Why = fmt.Sprintf("%d frames were not as sent", res.Corrupt)
	case res.Retransmitted > 0 || res.Timeouts > 0:
		p.Why = fmt.Sprintf("%d frames sent again, %d timeouts", res.Retransmitted, res.Timeouts)
	case float64(p.RTT) > t*(1+1./lateShare):
		p.Why = "round trips grow: queues, or late workers"
	case float64(res.Elapsed) > slower*due:
		p.Why = fmt.Sprintf("took %s in place of %s: the worker does not keep up", cli.Span(res.Elapsed), cli.Span(uint64(due)))
	default:
		p.Clean = true
	}
	return p, nil
}
