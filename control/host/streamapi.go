package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"connectrpc.com/connect"

	"gswitch/control/api"
	"gswitch/frame"
	"gswitch/tcp"
	"gswitch/tcp/endpoint"
	"gswitch/tcp/stack"
)

func (s *server) ListStreams(_ context.Context, r *api.ListHostsRequest) (*api.TCPStreams, error) {
	units, err := s.d.hosts(r.Host)
	if err != nil {
		return nil, connect.NewError(connect.CodeNotFound, err)
	}
	out := &api.TCPStreams{}
	for _, u := range units {
		err := u.worker.Do(func(frame.Time) {
			e := endpoint.Of(u.agent.NIC())
			if e == nil {
				return
			}
			for _, v := range e.StreamList(nil) {
				out.Streams = append(out.Streams, describeStream(u.name, &v))
			}
		})
		if err != nil {
			return nil, connect.NewError(connect.CodeUnavailable, err)
		}
	}
	return out, nil
}

func describeStream(host string, v *stack.StreamView) *api.TCPStream {
	m := &api.TCPStream{Host: host, Number: v.Number, Local: v.Local.String(), Remote: v.Remote.String(), Accepted: v.Accepted, State: v.State.String(),
		Acked: v.Stats.BytesAcked, Unacked: uint64(v.Unacked), InFlight: uint64(v.InFlight), Window: uint64(v.Window), PeerWindow: uint64(max(v.PeerWindow, 0)), Readable: uint64(v.Readable),
		Rtt: uint64(v.RTT), Rto: uint64(v.RTO), Sent: v.Stats.Sent, Received: v.Stats.Received, Retransmitted: v.Stats.Retransmitted, Timeouts: v.Stats.Timeouts, ZeroWindows: v.Stats.ZeroWindows}
	if v.Err != nil {
		m.Error = v.Err.Error()
	}
	return m
}

// carried is a TCP connection of a caller of Stream.
type carried struct {
	*conn
	ended chan struct{} // closed after the last write
	over  bool
}

func (s *server) Stream(ctx context.Context, r *api.StreamRequest, out *connect.ServerStream[api.StreamReport]) error {
	u, err := s.d.host(r.Host)
	if err != nil {
		return connect.NewError(connect.CodeNotFound, err)
	}
	c, err := u.begin(ctx, r)
	if err != nil {
		return err
	}
	x := &carried{conn: c, ended: make(chan struct{})}
	u.mu.Lock()
	if u.carried == nil {
		u.carried = map[uint64]*carried{}
	}
	u.carried[c.number] = x
	u.mu.Unlock()
	defer func() {
		u.mu.Lock()
		delete(u.carried, c.number)
		u.mu.Unlock()
		_ = c.Close() // it may have ended
	}()
	defer context.AfterFunc(ctx, func() { _ = c.SetReadDeadline(time.Unix(1, 0)) })()
	v, err := c.view()
	if err != nil {
		return connect.NewError(connect.CodeUnavailable, err)
	}
	if err := out.Send(&api.StreamReport{Stream: describeStream(u.name, &v)}); err != nil {
		return err
	}
	received, err := x.pass(out)
	if err == nil {
		err = x.last(ctx)
	}
	v, gone := c.view()
	if gone != nil {
		return connect.NewError(connect.CodeUnavailable, gone)
	}
	m := &api.StreamReport{Stream: describeStream(u.name, &v), Done: true, Received: received}
	if err != nil && m.Stream.Error == "" {
		m.Stream.Error = err.Error()
	}
	return out.Send(m)
}

// begin opens the connection that a caller asks for.
func (u *unit) begin(ctx context.Context, r *api.StreamRequest) (*conn, error) {
	if r.To != "" {
		to, err := netip.ParseAddrPort(r.To)
		if err != nil || to.Port() == 0 {
			return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("%q is not an address and a port; write 10.0.0.2:80", r.To))
		}
		c, err := u.dial(to, ctx.Done())
		if err != nil {
			return nil, connect.NewError(connect.CodeUnavailable, err)
		}
		return c, nil
	}
	if r.Listen == 0 || r.Listen > 65535 {
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("port %d is not between 1 and 65535", r.Listen))
	}
	l, err := u.listen(uint16(r.Listen))
	if err != nil {
		return nil, connect.NewError(connect.CodeFailedPrecondition, err)
	}
	defer l.Close()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	c, err := l.Accept()
	if err != nil {
		return nil, connect.NewError(connect.CodeCanceled, err)
	}
	return c.(*conn), nil
}

// pass sends the caller what arrives until the other end has closed its direction.
func (x *carried) pass(out *connect.ServerStream[api.StreamReport]) (received uint64, err error) {
	b := make([]byte, piece)
	for {
		n, err := x.Read(b)
		if n > 0 {
			received += uint64(n)
			if err := out.Send(&api.StreamReport{Data: b[:n]}); err != nil {
				return received, err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return received, out.Send(&api.StreamReport{Eof: true})
		case err != nil:
			return received, err
		}
	}
}

// last waits until the caller has written everything and the other end has acknowledged
// it.
func (x *carried) last(ctx context.Context) error {
	select {
	case <-x.ended:
	case <-ctx.Done():
		return ctx.Err()
	case <-x.u.gone:
		return nil
	}
	for p := (patience{}); ; {
		v, err := x.view()
		if err != nil || v.Err != nil || v.State == tcp.Closed || v.State == tcp.TimeWait || v.Unacked == 0 && v.State != tcp.LastACK && v.State != tcp.Closing && v.State != tcp.FinWait1 {
			return err
		}
		if err := p.sleep(x.u, time.Time{}); err != nil || ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

func (s *server) WriteStream(_ context.Context, r *api.WriteStreamRequest) (*api.WriteStreamResponse, error) {
	u, err := s.d.host(r.Host)
	if err != nil {
		return nil, connect.NewError(connect.CodeNotFound, err)
	}
	u.mu.Lock()
	x := u.carried[r.Number]
	over := x != nil && x.over
	if x != nil && r.End {
		x.over = true
	}
	u.mu.Unlock()
	if x == nil || over {
		return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("there is no writer to connection %d: its Stream has ended, or it was closed", r.Number))
	}
	if _, err := x.Write(r.Data); err != nil {
		return nil, connect.NewError(connect.CodeUnavailable, err)
	}
	if r.End {
		err = x.CloseWrite()
		close(x.ended)
		if err != nil {
			return nil, connect.NewError(connect.CodeUnavailable, err)
		}
	}
	return &api.WriteStreamResponse{}, nil
}
