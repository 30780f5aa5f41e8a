package host

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"gswitch/frame"
	"gswitch/hostnic"
	"gswitch/hostnic/agent"
	"gswitch/tcp"
	"gswitch/tcp/endpoint"
	"gswitch/tcp/stack"
)

// Here a host's TCP connection is a net.Conn. Its operations are commands to the host.
// Since the host notifies nobody, waiting means polling.

// Polling intervals: short at first, then longer.
const (
	soonest = 50 * time.Microsecond
	latest  = 10 * time.Millisecond
	// dialTime is how long to wait for the other end.
	dialTime = 10 * time.Second
)

// call makes the host carry out a call.
func (u *unit) call(c hostnic.Call) error {
	change := &hostnic.CallFeature{Feature: endpoint.Name, Call: c}
	return errors.Join(u.command(agent.OfNIC{Change: change}), change.Refused)
}

// look reads the state of the host's connections.
func (u *unit) look(f func(e *endpoint.Endpoint)) error {
	var off error
	err := u.worker.Do(func(frame.Time) {
		if e := endpoint.Of(u.agent.NIC()); e != nil {
			f(e)
		} else {
			off = fmt.Errorf("host %s has no connections of TCP: its document needs the section tcp", u.name)
		}
	})
	return errors.Join(err, off)
}

// patience waits with increasing intervals between polls.
type patience struct{ wait time.Duration }

// sleep waits until the next poll. It returns an error if the time is up or the host was
// removed.
func (p *patience) sleep(u *unit, until time.Time) error {
	p.wait = min(max(soonest, 2*p.wait), latest)
	wait := p.wait
	if !until.IsZero() {
		if wait = min(wait, time.Until(until)); wait <= 0 {
			return os.ErrDeadlineExceeded
		}
	}
	select {
	case <-u.gone:
		return fmt.Errorf("host %s was taken down: %w", u.name, net.ErrClosed)
	case <-time.After(wait):
		return nil
	}
}

// conn is a TCP connection of a host.
type conn struct {
	u      *unit
	number uint64
	local  netip.AddrPort
	remote netip.AddrPort

	mu            sync.Mutex
	closed        bool
	readBy, write time.Time // deadlines
}

// dial opens a connection.
func (u *unit) dial(to netip.AddrPort, given <-chan struct{}) (*conn, error) {
	call := &endpoint.Dial{To: to}
	var p patience
	until := time.Now().Add(dialTime)
	for {
		*call = endpoint.Dial{To: to}
		err := u.call(call)
		if err = errors.Join(err, call.Refused); err == nil {
			break
		}
		if !errors.Is(err, hostnic.ErrUnresolved) {
			return nil, err
		}
		if err := p.sleep(u, until); err != nil {
			return nil, fmt.Errorf("%v: %w", to, err)
		}
	}
	c := &conn{u: u, number: call.Number, remote: to}
	for p = (patience{}); ; {
		v, err := c.view()
		c.local = v.Local
		switch {
		case err != nil:
			return nil, err
		case v.Err != nil:
			_ = c.Close() // it has ended
			return nil, fmt.Errorf("%v: %w", to, v.Err)
		case v.State >= tcp.Established:
			return c, nil
		}
		select {
		case <-given:
			err = net.ErrClosed
		default:
			err = p.sleep(u, until)
		}
		if err != nil {
			_ = c.reset()
			return nil, fmt.Errorf("%v does not answer: %w", to, err)
		}
	}
}

func (c *conn) view() (v stack.StreamView, err error) {
	off := c.u.look(func(e *endpoint.Endpoint) { v, err = e.Stream(c.number) })
	return v, errors.Join(off, err)
}

// state returns the deadlines, and whether the connection was closed locally.
func (c *conn) state() (read, write time.Time, closed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.readBy, c.write, c.closed
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	for p := (patience{}); ; {
		until, _, closed := c.state()
		if closed {
			return 0, net.ErrClosed
		}
		v, err := c.view()
		switch {
		case err != nil:
			return 0, err
		case v.Readable > 0:
			call := &endpoint.Read{Number: c.number, To: b}
			if err := c.u.call(call); err != nil {
				return 0, err
			}
			return call.N, call.Refused
		case v.EOF:
			return 0, io.EOF
		case v.Err != nil:
			return 0, v.Err
		case v.State == tcp.Closed:
			return 0, io.EOF
		}
		if err := p.sleep(c.u, until); err != nil {
			return 0, err
		}
	}
}

// Write implements net.Conn: it waits until the connection has accepted all of b.
func (c *conn) Write(b []byte) (done int, err error) {
	for p := (patience{}); done < len(b); {
		_, until, closed := c.state()
		if closed {
			return done, net.ErrClosed
		}
		v, err := c.view()
		switch {
		case err != nil:
			return done, err
		case v.Err != nil:
			return done, v.Err
		case v.Room > 0:
			call := &endpoint.Write{Number: c.number, Data: b[done:]}
			if err := errors.Join(c.u.call(call), call.Refused); err != nil {
				return done, err
			}
			done, p = done+call.N, patience{}
			continue
		case v.State != tcp.Established && v.State != tcp.CloseWait:
			return done, syscall.EPIPE
		}
		if err := p.sleep(c.u, until); err != nil {
			return done, err
		}
	}
	return done, nil
}

// CloseWrite closes the sending direction.
func (c *conn) CloseWrite() error {
	call := &endpoint.Close{Number: c.number}
	return errors.Join(c.u.call(call), call.Refused)
}

// Close implements net.Conn. Data that was written is still sent.
func (c *conn) Close() error { return c.leave(false) }

func (c *conn) reset() error { return c.leave(true) }

func (c *conn) leave(reset bool) error {
	c.mu.Lock()
	closed := c.closed
	c.closed = true
	c.mu.Unlock()
	if closed {
		return net.ErrClosed
	}
	call := &endpoint.Close{Number: c.number, All: true, Reset: reset}
	return errors.Join(c.u.call(call), call.Refused)
}

// LocalAddr and RemoteAddr implement net.Conn.
func (c *conn) LocalAddr() net.Addr  { return net.TCPAddrFromAddrPort(c.local) }
func (c *conn) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.remote) }

// SetDeadline, SetReadDeadline and SetWriteDeadline implement net.Conn.
func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readBy = t
	return nil
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.write = t
	return nil
}

// listener is a port on which programs of a host listen.
type listener struct {
	u    *unit
	port uint16
	last uint64 // the last connection accepted
	stop chan struct{}
	once sync.Once
}

// listen accepts connections on a port.
func (u *unit) listen(port uint16) (*listener, error) {
	l := &listener{u: u, port: port, stop: make(chan struct{})}
	if err := u.look(func(e *endpoint.Endpoint) { // those of an earlier listener are not ours
		for _, v := range e.StreamList(nil) {
			l.last = max(l.last, v.Number)
		}
	}); err != nil {
		return nil, err
	}
	call := &endpoint.Listen{Port: port, On: true}
	if err := errors.Join(u.call(call), call.Refused); err != nil {
		return nil, err
	}
	return l, nil
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for p := (patience{}); ; {
		select {
		case <-l.stop:
			return nil, net.ErrClosed
		default:
		}
		var c *conn
		err := l.u.look(func(e *endpoint.Endpoint) {
			for _, v := range e.StreamList(nil) {
				if v.Accepted && v.Local.Port() == l.port && v.Number > l.last && v.State != tcp.SynReceived {
					c = &conn{u: l.u, number: v.Number, local: v.Local, remote: v.Remote}
					return
				}
			}
		})
		switch {
		case err != nil:
			return nil, errors.Join(err, net.ErrClosed)
		case c != nil:
			l.last = c.number
			return c, nil
		}
		if err := p.sleep(l.u, time.Time{}); err != nil {
			return nil, err
		}
	}
}

// Close implements net.Listener. Accepted connections stay open.
func (l *listener) Close() (err error) {
	l.once.Do(func() {
		close(l.stop)
		err = l.u.call(&endpoint.Listen{Port: l.port})
	})
	return err
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(l.u.conf.Load().Address.Addr(), l.port))
}
