package host

import (
	"context"

	"connectrpc.com/connect"

	"gswitch/config"
	"gswitch/control/api"
	"gswitch/frame"
	"gswitch/hostnic"
	"gswitch/hostnic/agent"
	inband "gswitch/int"
)

func (s *server) ListFlows(_ context.Context, r *api.ListFlowsRequest) (*api.Flows, error) {
	units, err := s.d.hosts(r.Host)
	if err != nil {
		return nil, connect.NewError(connect.CodeNotFound, err)
	}
	out := &api.Flows{}
	for _, u := range units {
		h := u.conf.Load()
		err := u.worker.Do(func(now frame.Time) {
			for _, t := range u.agent.Transfers(nil) {
				out.Flows = append(out.Flows, transferFlow(now, h, u.agent.NIC(), t))
			}
			for _, t := range u.agent.Sessions(nil) {
				if !t.Closed {
					out.Flows = append(out.Flows, sessionFlow(now, h, u.agent.NIC(), &t))
				}
			}
		})
		if err != nil {
			return nil, connect.NewError(connect.CodeUnavailable, err)
		}
	}
	return out, nil
}

// operation returns the operation that a transfer was requested as.
func operation(t *agent.Transfer) string {
	switch {
	case t.Service == agent.Probe:
		return "ping"
	case t.Service == agent.Messages:
		return "send"
	case t.Verb == hostnic.Read:
		return "read"
	}
	return "write"
}

// transferFlow describes a transfer of this host: what it sends or, for Read, what it
// receives.
func transferFlow(now frame.Time, h *config.Host, n *hostnic.NIC, t *agent.Transfer) *api.Flow {
	f := &api.Flow{Host: h.Name, Direction: "tx", Source: h.Address.Addr().String(), Destination: t.To.String(), QueuePair: t.Local, Remote: t.Remote,
		Operation: operation(t), State: t.State.String(), Size: t.Size, Messages: uint64(len(t.Samples)), Count: uint64(t.Count), Total: uint64(t.Count) * t.Size,
		Started: uint64(t.Started), Congestion: t.CC}
	since := now
	if t.Opened > 0 {
		since = t.Opened
	}
	if v, err := n.QP(t.Local); err == nil {
		f.SourcePort, f.DestinationPort = uint32(v.SrcPort), uint32(v.DstPort)
		f.Rate, f.Window, f.InFlight, f.Retransmitted = v.Rate, v.Window, v.InFlight, v.Retransmitted
		f.Bytes = v.Acked
		if t.Service == agent.Memory {
			f.Bytes = uint64(len(t.Samples)) * t.Size
		}
	}
	if f.Operation == "read" {
		// The other end sends the data; its ports and pace are not known here.
		f.Direction, f.Source, f.Destination = "rx", f.Destination, f.Source
		f.SourcePort, f.Rate, f.Window, f.InFlight = 0, 0, 0, 0
	}
	f.Goodput = goodput(f.Bytes, now-since)
	w := &t.Watch
	f.Rtt, f.RttMin = uint64(w.LastRTT), uint64(w.MinRTT)
	if w.RTT.Total() > 0 {
		f.RttP50 = uint64(min(w.RTT.Quantile(0.5), w.MaxRTT))
	}
	if i := bottleneck(&w.Path); i >= 0 {
		f.Bottleneck, f.BottleneckHop = hop(h, &w.Path.Hops[i]), uint32(i+1)
	}
	return f
}

// sessionFlow describes what another host sends here.
func sessionFlow(now frame.Time, h *config.Host, n *hostnic.NIC, t *agent.Session) *api.Flow {
	f := &api.Flow{Host: h.Name, Direction: "rx", Source: t.Peer.String(), Destination: h.Address.Addr().String(), QueuePair: t.QPN, Remote: t.Remote,
		Operation: serviceNames[t.Service], State: "open", Size: t.Size, Messages: t.Messages, Bytes: t.Bytes, Started: uint64(t.Opened), Congestion: t.CC}
	if v, err := n.QP(t.QPN); err == nil {
		f.DestinationPort, f.Bytes = uint32(v.DstPort), max(f.Bytes, v.Stats.RxBytes)
	}
	f.Goodput = goodput(f.Bytes, now-t.Opened)
	return f
}

func goodput(bytes uint64, span frame.Time) float64 {
	if span <= 0 {
		return 0
	}
	return 8 * float64(bytes) / span.Seconds()
}

// bottleneck returns the hop with the longest queueing delay, -1 if there is none. If
// rates are unknown, they count as equal.
func bottleneck(p *inband.Path) int {
	worst, most := -1, -1.0
	for i := range p.N {
		wait := float64(p.Hops[i].Q)
		if r := p.Hops[i].Rate; r > 0 {
			wait /= float64(r)
		}
		if wait > most {
			worst, most = i, wait
		}
	}
	return worst
}
