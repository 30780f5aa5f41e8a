package host

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"time"

	"connectrpc.com/connect"

	"gswitch/config"
	"gswitch/control"
	"gswitch/control/api"
	"gswitch/frame"
	"gswitch/hostnic/bump"
	"gswitch/metrics"
	"gswitch/wire"
)

// transparentUsage explains how to call the API.
const transparentUsage = `ghost: GET /metrics are the metrics of Prometheus. The API takes POST with JSON (or Connect, or gRPC):
  curl --unix-socket /run/ghost/NAME.sock -H 'Content-Type: application/json' -d '{}' http://ghost/gswitch.v1.Transparent/ListChannels`

// Handler serves the API, /metrics and /healthz.
func (t *Transparent) Handler() http.Handler {
	return control.Handler(transparentUsage, t.Snapshot, func(opts ...connect.HandlerOption) (string, http.Handler) {
		return api.NewTransparentHandler(&transparentServer{t}, opts...)
	})
}

// transparentServer implements the API over a Transparent.
type transparentServer struct{ t *Transparent }

// chosen returns the indices of the bumps that a call is about.
func (s *transparentServer) chosen(name string) ([]int, error) {
	var out []int
	for i := range s.t.units {
		if name == "" || s.t.units[i].Name == name {
			out = append(out, i)
		}
	}
	if len(out) == 0 {
		return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("there is no host %q", name))
	}
	return out, nil
}

func (s *transparentServer) ListBumps(_ context.Context, r *api.ListBumpsRequest) (*api.Bumps, error) {
	which, err := s.chosen(r.Host)
	if err != nil {
		return nil, err
	}
	t, snap, conf := s.t, s.t.Snapshot(), s.t.config()
	w := &snap.Engine.Workers[0]
	out := &api.Bumps{Version: t.opts.Version, Pid: int64(os.Getpid()), Socket: conf.Control.Socket, UptimeSeconds: time.Since(t.start).Seconds(),
		Poll: w.Poll.String(), BusyRatio: w.BusyShare(), TimerLateP99: uint64(w.Lateness.Quantile(0.99))}
	for _, i := range which {
		out.Bumps = append(out.Bumps, describeBump(&conf.Bumps[i], t.mtus[i], &snap.Bumps[i]))
	}
	return out, nil
}

func describeBump(conf *config.Bump, mtu int, b *metrics.Bump) *api.BumpStatus {
	c, n := &b.Counts, &b.NIC
	out := &api.BumpStatus{Name: conf.Name, Inner: conf.Inner, Outer: conf.Outer, Netns: conf.NetNS, Rate: uint64(conf.Rate), BaseRtt: uint64(conf.BaseRTT),
		Congestion: conf.Congestion, Telemetry: conf.Telemetry.Format, Recovery: conf.Recovery, Flows: conf.Flows, Mtu: uint32(mtu),
		Packet: uint32(b.Packet), Queue: uint64(b.Queue),
		FromKernelFrames: c.FromKernel.Frames, FromKernelBytes: c.FromKernel.Bytes, ToKernelFrames: c.ToKernel.Frames, ToKernelBytes: c.ToKernel.Bytes,
		FromFabricFrames: c.FromFabric.Frames, FromFabricBytes: c.FromFabric.Bytes, ToFabricFrames: n.TxFrames, ToFabricBytes: n.TxBytes,
		Carried: c.Carried, Delivered: c.Delivered, PassedOut: c.PassedOut, PassedIn: c.PassedIn, Retransmissions: n.Retransmissions, Timeouts: n.Timeouts,
		Clamped: c.Clamped, TooBigs: c.TooBigs, Marked: c.Marked, Overflows: c.Overflows, LostChannels: c.Lost, Refusals: c.Refusals, Stale: c.Stale,
		BadDatagrams: c.BadDatagrams, FrameLateP50: uint64(b.Late.Quantile(0.5)), FrameLateP99: uint64(b.Late.Quantile(0.99)), FrameLateMax: uint64(b.Late.Quantile(1))}
	if b.MAC != 0 {
		out.Mac = wire.MACFromUint64(b.MAC).String()
	}
	for j := range b.Outer {
		out.OuterState, out.OuterMode, out.Warnings = b.Outer[j].State, b.Outer[j].Mode.String(), append(out.Warnings, b.Outer[j].Warnings...)
	}
	for j := range b.Inner {
		out.InnerState, out.InnerMode, out.Warnings = b.Inner[j].State, b.Inner[j].Mode.String(), append(out.Warnings, b.Inner[j].Warnings...)
	}
	if text := blind(conf.Congestion, n); text != "" {
		out.Warnings = append(out.Warnings, text)
	}
	for j := range b.Channels {
		if b.Channels[j].Host {
			out.HostChannels++
		} else {
			out.TupleChannels++
		}
	}
	for reason := range c.Drops {
		if frames := c.Drops[reason] + n.Drops[reason]; frames > 0 {
			out.Drops = append(out.Drops, &api.HostDrop{Reason: frame.Reason(reason).String(), Frames: frames})
		}
	}
	for _, p := range b.Peers {
		out.Peers = append(out.Peers, &api.BumpPeer{Address: p.Addr.String(), State: p.State, Channels: uint32(p.Channels)})
	}
	return out
}

func (s *transparentServer) ListChannels(_ context.Context, r *api.ListChannelsRequest) (*api.Channels, error) {
	which, err := s.chosen(r.Host)
	if err != nil {
		return nil, err
	}
	out := &api.Channels{}
	for _, i := range which {
		u := &s.t.units[i]
		err := u.Worker.Do(func(frame.Time) {
			for _, c := range u.Bump.Channels(nil) {
				out.Channels = append(out.Channels, channelOf(u.Name, &c))
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

var protocolNames = map[uint8]string{wire.ProtoTCP: "tcp", wire.ProtoUDP: "udp", wire.ProtoICMP: "icmp", wire.ProtoICMPv6: "icmpv6"}

// channelOf describes a channel. The worker that steps the bump calls it, because it
// reads the state of congestion control.
func channelOf(host string, c *bump.Channel) *api.Channel {
	q := &c.QP
	out := &api.Channel{Host: host, Local: c.Local.String(), Remote: c.Remote.String(), LocalPort: uint32(c.LocalPort), RemotePort: uint32(c.RemotePort),
		Protocol: protocolNames[c.Proto], State: c.State, Active: c.Active, Congestion: c.CC, Class: uint32(q.Class), Rate: q.Rate, Window: q.Window,
		InFlight: q.InFlight, Queue: c.Queue, TxFrames: q.Stats.TxFrames, TxBytes: q.Stats.TxBytes, RxFrames: q.Stats.RxFrames, RxBytes: q.Stats.RxBytes,
		Retransmitted: q.Retransmitted, Timeouts: q.Stats.Timeouts, Drops: c.Drops, Marks: c.Marks, Packet: uint32(c.Packet), QueuePair: q.QPN, Acked: q.Acked}
	switch {
	case c.Host:
		out.Protocol = "host"
	case out.Protocol == "":
		out.Protocol = strconv.Itoa(int(c.Proto))
	}
	q.Inspect(func(name string, v float64) {
		out.Internals = append(out.Internals, &api.Internal{Name: name, Value: v})
	})
	return out
}
