package host

import (
	"context"

	"connectrpc.com/connect"

	"gswitch/control"
	"gswitch/control/api"
	"gswitch/frame"
	"gswitch/hostnic/bump"
	"gswitch/metrics"
	"gswitch/tcp/endpoint"
)

// ListLimits returns the limits, how much of each is in use, and how often something was
// refused.
func (s *server) ListLimits(_ context.Context, r *api.ListHostsRequest) (*api.Limits, error) {
	d := s.d
	units, err := d.hosts(r.Host)
	if err != nil {
		return nil, connect.NewError(connect.CodeNotFound, err)
	}
	out := &api.Limits{}
	if r.Host == "" {
		d.memory.Lock()
		held, refused := d.held, d.unheld
		d.memory.Unlock()
		out.Limits = append(control.ProcessLimits(d.engine, &d.clients, d.log.Handler()),
			&api.Limit{Kind: "memory", Name: "messages of transfers", Unit: "bytes", Used: held, Limit: maxHeld, Refused: refused})
		d.mu.RLock()
		if x := d.exporting; x != nil {
			c := x.Counts()
			out.Limits = append(out.Limits, &api.Limit{Kind: "memory", Name: "reports that wait for the collector", Unit: "bytes", Used: c.Bytes, Limit: uint64(d.doc.Export.Memory), Refused: c.Lost, Key: "export.memory"})
		}
		d.mu.RUnlock()
	}
	for _, u := range units {
		if err := u.worker.Do(func(frame.Time) { out.Limits = append(out.Limits, u.limits()...) }); err != nil {
			return nil, connect.NewError(connect.CodeUnavailable, err)
		}
	}
	return out, nil
}

// limits returns the limits of a host. It runs on the host's worker.
func (u *unit) limits() []*api.Limit {
	n := u.agent.NIC()
	sessions, _ := u.agent.Counts()
	mostSessions, mostQPs := u.agent.Limits()
	known, mostNeighbors := n.Neighbors()
	regions, mostRegions := n.Memory().Regions()
	v := []*api.Limit{
		{Kind: "table", Name: "sessions that others opened", Unit: "sessions", Used: uint64(sessions), Limit: uint64(mostSessions)},
		{Kind: "table", Name: "queue pairs", Unit: "queue pairs", Used: uint64(n.Counts().QPsOpen), Limit: uint64(mostQPs)},
		{Kind: "table", Name: "regions of memory that others may reach", Unit: "regions", Used: uint64(regions), Limit: uint64(mostRegions)},
		{Kind: "table", Name: "neighbours", Unit: "entries", Used: uint64(known), Limit: uint64(mostNeighbors), Refused: n.Stack().UnsolicitedRefused},
	}
	if e := endpoint.Of(n); e != nil {
		open, most := e.Open()
		v = append(v, &api.Limit{Kind: "table", Name: "connections of TCP", Unit: "connections", Used: uint64(open), Limit: uint64(most), Key: "tcp.connections"})
	}
	for _, l := range v {
		l.Switch = u.name
	}
	return v
}

// ListLimits returns the limits of the transparent mode.
func (s *transparentServer) ListLimits(_ context.Context, r *api.ListBumpsRequest) (*api.Limits, error) {
	which, err := s.chosen(r.Host)
	if err != nil {
		return nil, err
	}
	t, snap, conf, out := s.t, s.t.Snapshot(), s.t.config(), &api.Limits{}
	if r.Host == "" {
		out.Limits = control.ProcessLimits(t.engine, &t.clients, t.opts.Logger.Handler())
	}
	for _, i := range which {
		out.Limits = append(out.Limits, bumpLimits(uint64(conf.Bumps[i].Channels), &snap.Bumps[i])...)
	}
	return out, nil
}

// bumpLimits returns the limits of a bump with up to that many channels for 5-tuples, and
// the same number for hosts.
func bumpLimits(channels uint64, b *metrics.Bump) []*api.Limit {
	var waiting, tuples, hosts uint64
	for i := range b.Channels {
		waiting += b.Channels[i].Queue
		if b.Channels[i].Host {
			hosts++
		} else {
			tuples++
		}
	}
	return []*api.Limit{
		{Kind: "memory", Name: "packets that wait in channels", Switch: b.Name, Unit: "bytes", Used: waiting, Limit: 2 * channels * uint64(b.Queue), Key: "queue, channels"},
		{Kind: "table", Name: "channels of five-tuples", Switch: b.Name, Unit: "channels", Used: tuples, Limit: channels, Refused: b.Counts.Overflows, Key: "channels"},
		{Kind: "table", Name: "channels of hosts", Switch: b.Name, Unit: "channels", Used: hosts, Limit: channels, Key: "channels"},
		{Kind: "table", Name: "peers", Switch: b.Name, Unit: "hosts", Used: uint64(len(b.Peers)), Limit: bump.MaxPeers},
	}
}
