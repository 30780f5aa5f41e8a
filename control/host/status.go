package host

import (
	"context"

	"connectrpc.com/connect"

	"gswitch/control/api"
	"gswitch/frame"
	"gswitch/hostnic"
	"gswitch/hostnic/agent"
	"gswitch/metrics"
)

// describe returns the status of one host.
func describe(u *unit, snap *metrics.Snapshot, h *metrics.Host) *api.HostStatus {
	c := u.conf.Load()
	out := &api.HostStatus{
		Name: c.Name, Interface: c.Interface, Netns: c.NetNS, Address: c.Address.String(), Mac: u.mac.String(), Rate: uint64(c.Rate), BaseRtt: uint64(c.T()),
		Payload: uint32(c.Payload), Congestion: c.Congestion, Telemetry: c.Telemetry.Format, Recovery: c.Recovery, Serving: h.Serving,
		Worker: uint32(u.worker.Index()), Queues: uint32(u.queues),
	}
	if c.Gateway.IsValid() {
		out.Gateway = c.Gateway.String()
	}
	for i := range h.Links {
		l := &h.Links[i]
		out.State, out.XdpMode, out.Warnings = l.State, l.Mode.String(), append(out.Warnings, l.Warnings...)
	}
	if text := blind(c.Congestion, &h.Counts); text != "" {
		out.Warnings = append(out.Warnings, text)
	}
	count(out, h, c.PFC.Classes)
	w := &snap.Engine.Workers[u.worker.Index()]
	out.Timing = &api.HostTiming{Poll: w.Poll.String(), Cpu: -1, BusyRatio: w.BusyShare(),
		FrameLateP50: uint64(h.Late.Quantile(0.5)), FrameLateP99: uint64(h.Late.Quantile(0.99)), FrameLateMax: uint64(h.Late.Quantile(1)),
		TimerLateP50: uint64(w.Lateness.Quantile(0.5)), TimerLateP99: uint64(w.Lateness.Quantile(0.99)), TimerLateMax: w.Lateness.Max}
	if w.Pin {
		out.Timing.Cpu = int32(w.CPU)
	}
	return out
}

// count writes the counters of a host. classes are the classes for which it pauses, if
// known.
func count(out *api.HostStatus, h *metrics.Host, classes []int) {
	n := &h.Counts
	out.RxFrames, out.RxBytes, out.TxFrames, out.TxBytes, out.Retransmissions, out.Timeouts = n.RxFrames, n.RxBytes, n.TxFrames, n.TxBytes, n.Retransmissions, n.Timeouts
	out.EcnMarkedFrames, out.SourceMarkedFrames, out.Quenches = n.CEMarked, n.SelfMarked, n.Quenches
	out.MessagesSent, out.MessagesReceived, out.QueuePairs = n.MessagesSent, n.MessagesReceived, uint32(n.QPsOpen)
	for reason, frames := range n.Drops {
		if frames > 0 {
			out.Drops = append(out.Drops, &api.HostDrop{Host: out.Name, Reason: frame.Reason(reason).String(), Frames: frames})
		}
	}
	configured := map[int]bool{}
	for _, class := range classes {
		configured[class] = true
	}
	for class := range 8 {
		f := &h.Flow
		if !configured[class] && f.RxXOFF[class]|f.RxXON[class]|f.TxXOFF[class]|f.TxXON[class] == 0 {
			continue
		}
		out.Pfc = append(out.Pfc, &api.HostPFCClass{Host: out.Name, Class: uint32(class), Paused: h.Paused>>class&1 != 0, Quenched: h.Quenched>>class&1 != 0, RxXoff: f.RxXOFF[class], RxXon: f.RxXON[class],
			TxXoff: f.TxXOFF[class], TxXon: f.TxXON[class], PausedSeconds: f.PausedTime[class].Seconds(), AskedSeconds: f.RequestTime[class].Seconds()})
	}
}

var serviceNames = [...]string{agent.Messages: "messages", agent.Memory: "memory", agent.Probe: "probe"}

func (s *server) ListQueuePairs(_ context.Context, r *api.ListQueuePairsRequest) (*api.QueuePairs, error) {
	units, err := s.d.hosts(r.Host)
	if err != nil {
		return nil, connect.NewError(connect.CodeNotFound, err)
	}
	out := &api.QueuePairs{}
	for _, u := range units {
		err := u.worker.Do(func(frame.Time) {
			a := u.agent
			for _, t := range a.Transfers(nil) {
				if v, err := a.NIC().QP(t.Local); err == nil {
					q := queuePair(&v)
					q.Host, q.Peer, q.Role, q.Service, q.Congestion = u.name, t.To.String(), "active", serviceNames[t.Service], t.CC
					out.QueuePairs = append(out.QueuePairs, q)
				}
			}
			for _, t := range a.Sessions(nil) {
				if v, err := a.NIC().QP(t.QPN); err == nil && !t.Closed {
					q := queuePair(&v)
					q.Host, q.Peer, q.Role, q.Service, q.Congestion = u.name, t.Peer.String(), "passive", serviceNames[t.Service], t.CC
					out.QueuePairs = append(out.QueuePairs, q)
				}
			}
		})
		if err != nil {
			return nil, connect.NewError(connect.CodeUnavailable, err)
		}
	}
	return out, nil
}

func queuePair(v *hostnic.QPView) *api.QueuePair {
	q := &api.QueuePair{Number: v.QPN, Remote: v.Remote, Class: uint32(v.Class), State: v.State, Rate: v.Rate, Window: v.Window, InFlight: v.InFlight, Acked: v.Acked,
		TxFrames: v.Stats.TxFrames, TxBytes: v.Stats.TxBytes, RxFrames: v.Stats.RxFrames, RxBytes: v.Stats.RxBytes, Retransmitted: v.Retransmitted,
		Naks: v.Stats.Naks, Timeouts: v.Stats.Timeouts, Cnps: v.Stats.CNPs, Marks: v.Stats.CEs}
	v.Inspect(func(name string, value float64) {
		q.Internals = append(q.Internals, &api.Internal{Name: name, Value: value})
	})
	return q
}
