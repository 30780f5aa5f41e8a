package host

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"slices"

	"connectrpc.com/connect"

	"gswitch/control"
	"gswitch/control/api"
	"gswitch/frame"
	"gswitch/hostnic"
	"gswitch/metrics"
	"gswitch/tcp/endpoint"
	"gswitch/tcp/stack"
	"gswitch/wire"
)

// Shown is a host of a replayed run. The caller steps it.
type Shown struct {
	Name, Version string
	NIC           *hostnic.NIC
	Address       netip.Prefix
	MAC           wire.MAC
	Rate          float64    // of its link, in bit/s
	BaseRTT       frame.Time // T
	Payload       int        // of a full packet, bytes
	Congestion    string     // the default of flows
	Now           frame.Time // the instant that is shown
	Flows         []ShownFlow
}

// ShownFlow is a flow of queue pairs from or to a host.
type ShownFlow struct {
	QPN, Remote uint32 // queue pairs here and at the other host
	Sends       bool
	Peer        netip.Addr
	Congestion  string
	Bytes       uint64 // of all its messages so far
}

// Handler serves what a daemon's API lists about a host: the host itself, its flows,
// queue pairs and TCP connections. The host must not be stepped meanwhile.
func (h *Shown) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle(api.NewHostHandler(&shown{h: h}))
	return control.ReadOnly(mux)
}

type shown struct {
	api.UnimplementedHostHandler
	h *Shown
}

func (s *shown) status() *api.HostStatus {
	h := s.h
	out := &api.HostStatus{Name: h.Name, Interface: h.Name, Address: h.Address.String(), Mac: h.MAC.String(), Rate: uint64(h.Rate), BaseRtt: uint64(h.BaseRTT),
		Payload: uint32(h.Payload), Congestion: h.Congestion, State: "up", Version: h.Version, Timing: &api.HostTiming{Poll: "replayed", Cpu: -1}, UptimeSeconds: h.Now.Seconds()}
	count(out, &metrics.Host{Name: h.Name, Counts: *h.NIC.Counts(), Flow: h.NIC.Flow(h.Now), Paused: h.NIC.Paused(), Quenched: h.NIC.Quenched()}, nil)
	return out
}

// known rejects the name of another host.
func (s *shown) known(name string) error {
	if name != "" && name != s.h.Name {
		return connect.NewError(connect.CodeNotFound, errors.New("this shows "+s.h.Name+" of a run: choose another host with --node"))
	}
	return nil
}

func (s *shown) GetHost(_ context.Context, r *api.GetHostRequest) (*api.HostStatus, error) {
	return s.status(), s.known(r.Host)
}

func (s *shown) ListHosts(_ context.Context, r *api.ListHostsRequest) (*api.HostList, error) {
	return &api.HostList{Hosts: []*api.HostStatus{s.status()}}, s.known(r.Host)
}

func (s *shown) ListQueuePairs(_ context.Context, r *api.ListQueuePairsRequest) (*api.QueuePairs, error) {
	out := &api.QueuePairs{}
	for qpn := range s.h.NIC.QPs {
		v, err := s.h.NIC.QP(qpn)
		if err != nil {
			return nil, connect.NewError(connect.CodeInternal, err)
		}
		q := queuePair(&v)
		q.Host, q.Congestion = s.h.Name, s.h.Congestion
		if i := slices.IndexFunc(s.h.Flows, func(f ShownFlow) bool { return f.QPN == qpn }); i >= 0 {
			f := &s.h.Flows[i]
			q.Peer, q.Congestion, q.Role, q.Service = f.Peer.String(), f.Congestion, "passive", "messages"
			if f.Sends {
				q.Role = "active"
			}
		}
		out.QueuePairs = append(out.QueuePairs, q)
	}
	return out, s.known(r.Host)
}

func (s *shown) ListFlows(_ context.Context, r *api.ListFlowsRequest) (*api.Flows, error) {
	out := &api.Flows{}
	for i := range s.h.Flows {
		f := &s.h.Flows[i]
		v, err := s.h.NIC.QP(f.QPN)
		if err != nil {
			continue // it has just ended
		}
		m := &api.Flow{Host: s.h.Name, Direction: "rx", Source: f.Peer.String(), Destination: s.h.Address.Addr().String(), QueuePair: f.QPN, Remote: f.Remote,
			Operation: "messages", State: "open", DestinationPort: uint32(v.DstPort), Congestion: f.Congestion, Total: f.Bytes, Bytes: v.Stats.RxBytes}
		if f.Sends {
			m.Direction, m.Source, m.Destination, m.Operation = "tx", m.Destination, m.Source, "send"
			m.SourcePort, m.Rate, m.Window, m.InFlight, m.Retransmitted, m.Bytes = uint32(v.SrcPort), v.Rate, v.Window, v.InFlight, v.Retransmitted, v.Acked
		}
		out.Flows = append(out.Flows, m)
	}
	return out, s.known(r.Host)
}

func (s *shown) ListStreams(_ context.Context, r *api.ListHostsRequest) (*api.TCPStreams, error) {
	out := &api.TCPStreams{}
	if e := endpoint.Of(s.h.NIC); e != nil {
		e.Connections(func(v *stack.StreamView) { out.Streams = append(out.Streams, describeStream(s.h.Name, v)) })
	}
	return out, s.known(r.Host)
}

func (s *shown) ListLimits(context.Context, *api.ListHostsRequest) (*api.Limits, error) {
	return nil, connect.NewError(connect.CodeNotFound, errors.New("limits are of a daemon, and the hosts of a run have none"))
}

func (s *shown) GetConfig(context.Context, *api.GetConfigRequest) (*api.ConfigDocument, error) {
	return nil, connect.NewError(connect.CodeNotFound, errors.New("the hosts of a run have no document of their own: the scenario has their settings"))
}
