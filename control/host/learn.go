package host

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gswitch/cc"
	"gswitch/config"
	"gswitch/control/api"
	"gswitch/frame"
	"gswitch/hostnic/agent"
	"gswitch/units"
)

// measured is T if the configuration asks for it to be measured: slightly above the
// largest median round trip to the first peers of transfers.
type measured struct {
	auto atomic.Bool

	mu    sync.Mutex // one measurement at a time; guards peers
	peers []netip.Addr
	t     atomic.Int64 // 0: not yet measured
}

const (
	learnPeers  = 4
	learnProbes = 20
	learnSpace  = frame.Millisecond
	// As ghost calibrate has it.
	aboveRTT = 1.05
)

// in returns the configuration with the measured value, if it asks for it.
func (m *measured) in(h *config.Host) *config.Host {
	t := m.t.Load()
	if h.BaseRTT != config.AutoRTT || t == 0 {
		return h
	}
	with := *h
	with.BaseRTT = config.BaseRTT(t)
	with.Timeout = max(with.Timeout, units.Duration(20*t)) // as if T were configured
	return &with
}

// learn measures the round trip to the peer of a request, if T is to be measured and this
// is one of the first peers. Queue pairs opened after that use it. Errors are left for
// the transfer to report.
func (d *Daemon) learn(ctx context.Context, u *unit, r *api.TransferRequest) {
	m := &u.measured
	to, err := netip.ParseAddr(r.To)
	if !m.auto.Load() || err != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.peers) == learnPeers || slices.Contains(m.peers, to) {
		return
	}
	rtts := u.probe(ctx, to)
	if len(rtts) < learnProbes/2 {
		return
	}
	m.peers = append(m.peers, to)
	slices.Sort(rtts)
	t := frame.Time(aboveRTT * float64(rtts[len(rtts)/2]))
	if int64(t) <= m.t.Load() || t > frame.Second {
		return
	}
	d.mu.Lock() // no reload in the meantime
	defer d.mu.Unlock()
	m.t.Store(int64(t))
	h := *u.conf.Load()
	h.BaseRTT = config.AutoRTT
	// It fails only if the worker has ended.
	_ = u.configure(&h)
}

// probe measures round trips of full frames.
func (u *unit) probe(ctx context.Context, to netip.Addr) (rtts []frame.Time) {
	h := u.conf.Load()
	none, err := cc.Factory("none", nil)
	if err != nil {
		return nil
	}
	t := &agent.Transfer{To: to, Service: agent.Probe, Size: uint64(h.Payload), Count: learnProbes, Depth: 1, Interval: learnSpace,
		CC: "none", New: none, Class: uint8(h.Class)}
	t.Allocate()
	begin := &agent.StartTransfer{Transfer: t}
	if err := u.command(begin); err != nil || begin.Refused != nil {
		return nil
	}
	for over := false; !over; {
		select {
		case <-ctx.Done():
			_ = u.command(agent.EndTransfer{Number: t.Number})
			return nil
		case <-time.After(2 * time.Millisecond):
		}
		if u.worker.Do(func(frame.Time) { over = t.State == agent.Ended }) != nil {
			return nil
		}
	}
	for _, s := range t.Samples {
		if s.RTT > 0 {
			rtts = append(rtts, s.RTT)
		}
	}
	return rtts
}
