package e2e

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"gswitch/wire"
)

// EtherTypes by which tests distinguish their frames from others.
const (
	etherTest    = 0x88b5 // IEEE 802 local experimental
	etherControl = 0x8808 // MAC control
	etherAll     = unix.ETH_P_ALL
)

// raw sends and receives whole frames on a host's interface.
type raw struct {
	fd    int
	oob   []byte
	buf   []byte
	drops uint64
}

// raw opens a packet socket that receives frames of an EtherType.
func (h *host) raw(t testing.TB, etherType uint16) *raw {
	t.Helper()
	r := &raw{oob: make([]byte, 256), buf: make([]byte, 1<<16)}
	proto := int(etherType>>8 | etherType<<8) // network order
	link(t, h.ns, "eth0", func(l netlink.Link) (err error) {
		// Protocol 0 receives nothing before it is bound to the interface.
		if r.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
		return errors.Join(
			unix.SetsockoptInt(r.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20),
			unix.SetsockoptInt(r.fd, unix.SOL_PACKET, unix.PACKET_AUXDATA, 1),
			unix.SetsockoptInt(r.fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
			unix.SetsockoptInt(r.fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1),
			unix.Bind(r.fd, &unix.SockaddrLinklayer{Protocol: uint16(proto), Ifindex: l.Attrs().Index}))
	})
	t.Cleanup(func() { unix.Close(r.fd) })
	return r
}

// send hands a frame to the interface.
func (r *raw) send(b []byte) error {
	for {
		_, err := unix.Write(r.fd, b)
		if err != unix.EINTR {
			return err
		}
	}
}

// recv returns the next frame, with its VLAN tag in place, and when the
// kernel got it. It waits no longer than the time, and returns nil then.
func (r *raw) recv(wait time.Duration) (b []byte, at time.Time) {
	deadline := time.Now().Add(wait)
	for {
		n, oobn, _, _, err := unix.Recvmsg(r.fd, r.buf[4:], r.oob, unix.MSG_DONTWAIT)
		switch {
		case err == nil:
			return r.whole(n, r.oob[:oobn])
		case err == unix.EINTR || err == unix.ENETDOWN: // the interface was down in between
			continue
		case err != unix.EAGAIN:
			return nil, at
		}
		left := time.Until(deadline)
		if left <= 0 {
			return nil, at
		}
		unix.Poll([]unix.PollFd{{Fd: int32(r.fd), Events: unix.POLLIN}}, int(left/time.Millisecond)+1)
	}
}

// whole puts the tag back that the kernel took out (packet(7),
// PACKET_AUXDATA). The frame lies at buf[4:].
func (r *raw) whole(n int, oob []byte) ([]byte, time.Time) {
	var at time.Time
	b := r.buf[4 : 4+n]
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return b, at
	}
	for _, m := range msgs {
		switch {
		case m.Header.Level == unix.SOL_PACKET && m.Header.Type == unix.PACKET_AUXDATA && len(m.Data) >= 20:
			if binary.NativeEndian.Uint32(m.Data)&unix.TP_STATUS_VLAN_VALID == 0 {
				continue
			}
			b = r.buf[:4+n]
			copy(b, b[4:16])
			binary.BigEndian.PutUint16(b[12:], binary.NativeEndian.Uint16(m.Data[18:])) // TPID
			binary.BigEndian.PutUint16(b[14:], binary.NativeEndian.Uint16(m.Data[16:])) // TCI
		case m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SO_TIMESTAMPNS && len(m.Data) >= 16:
			at = time.Unix(int64(binary.NativeEndian.Uint64(m.Data)), int64(binary.NativeEndian.Uint64(m.Data[8:])))
		}
	}
	return b, at
}

// dropped is how many frames this socket was too slow for.
func (r *raw) dropped() uint64 {
	if s, err := unix.GetsockoptTpacketStats(r.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS); err == nil {
		r.drops += uint64(s.Drops) // reading sets it to zero
	}
	return r.drops
}

// testFrame is an Ethernet frame with a number, and a VLAN tag if tci is not
// negative.
func testFrame(dst, src wire.MAC, tci int, number uint64, size int) []byte {
	b := make([]byte, 0, size)
	b = append(append(b, dst[:]...), src[:]...)
	if tci >= 0 {
		b = binary.BigEndian.AppendUint16(b, 0x8100)
		b = binary.BigEndian.AppendUint16(b, uint16(tci))
	}
	b = binary.BigEndian.AppendUint16(b, etherTest)
	b = binary.BigEndian.AppendUint64(b, number)
	return b[:max(size, len(b))]
}

// numberOf returns the number in a test frame and the VLAN TCI, or -1.
func numberOf(b []byte) (number uint64, tci int) {
	tci = -1
	at := 12
	if binary.BigEndian.Uint16(b[at:]) == 0x8100 {
		tci = int(binary.BigEndian.Uint16(b[14:]))
		at += 4
	}
	return binary.BigEndian.Uint64(b[at+2:]), tci
}

// flow describes UDP datagrams over IPv4.
type flow struct {
	dst, src         wire.MAC
	dstIP, srcIP     [4]byte
	dstPort, srcPort uint16
	dscp             uint8
	size             int // of the frame
}

const udpHeaders = 14 + 20 + 8

// frame builds a frame of a flow, with a number in its payload.
func (f *flow) frame(number uint64) []byte {
	b := make([]byte, max(f.size, udpHeaders+8))
	copy(b, f.dst[:])
	copy(b[6:], f.src[:])
	binary.BigEndian.PutUint16(b[12:], 0x0800)
	ip := b[14:]
	ip[0], ip[1], ip[8], ip[9] = 0x45, f.dscp<<2, 64, unix.IPPROTO_UDP
	binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
	copy(ip[12:], f.srcIP[:])
	copy(ip[16:], f.dstIP[:])
	binary.BigEndian.PutUint16(ip[10:], wire.Checksum(ip[:20]))
	binary.BigEndian.PutUint16(ip[20:], f.srcPort)
	binary.BigEndian.PutUint16(ip[22:], f.dstPort)
	binary.BigEndian.PutUint16(ip[24:], uint16(len(ip)-20))
	f.renumber(b, number)
	return b
}

// renumber changes the number in a frame. There is no UDP checksum.
func (f *flow) renumber(b []byte, number uint64) { binary.BigEndian.PutUint64(b[udpHeaders:], number) }

// flowNumber returns the number in a received frame of any flow to a port.
func flowNumber(b []byte, dstPort uint16) (uint64, bool) {
	if len(b) < udpHeaders+8 || binary.BigEndian.Uint16(b[12:]) != 0x0800 || b[23] != unix.IPPROTO_UDP || binary.BigEndian.Uint16(b[36:]) != dstPort {
		return 0, false
	}
	return binary.BigEndian.Uint64(b[udpHeaders:]), true
}

// stream sends frames of a flow at a steady rate and looks at what arrives.
type stream struct {
	t        testing.TB
	from, to *raw
	flow     flow

	sent, refused           atomic.Uint64 // by the interface, while it is down
	received                atomic.Uint64
	reordered, duplicate    atomic.Uint64
	quit, quitReceiver      chan struct{}
	senderDone, receiveDone chan struct{}
}

// most is how many frames a stream sends at once when it was late.
const most = 64

// startStream sends f from one host to another.
func startStream(t testing.TB, from, to *host, f flow, perSecond int) *stream {
	t.Helper()
	if f.dst.IsZero() {
		f.dst = to.mac
	}
	if f.src.IsZero() {
		f.src = from.mac
	}
	s := &stream{t: t, from: from.raw(t, etherTest), to: to.raw(t, 0x0800), flow: f, quit: make(chan struct{}), quitReceiver: make(chan struct{}),
		senderDone: make(chan struct{}), receiveDone: make(chan struct{})}
	go s.receive()
	go s.send(perSecond)
	t.Cleanup(func() {
		select {
		case <-s.receiveDone:
		default: // losses are not read
			close(s.quit)
			close(s.quitReceiver)
			<-s.senderDone
			<-s.receiveDone
		}
	})
	return s
}

func (s *stream) send(perSecond int) {
	defer close(s.senderDone)
	b := s.flow.frame(0)
	start, due := time.Now(), 0
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-s.quit:
			return
		case <-tick.C:
		}
		now := int(time.Since(start).Seconds() * float64(perSecond))
		n := min(now-due, most)
		due = now
		for range n {
			s.flow.renumber(b, s.sent.Load())
			if s.from.send(b) != nil {
				s.refused.Add(1)
				continue
			}
			s.sent.Add(1)
		}
	}
}

func (s *stream) receive() {
	defer close(s.receiveDone)
	var next uint64
	for {
		b, _ := s.to.recv(20 * time.Millisecond)
		if b == nil {
			select {
			case <-s.quitReceiver:
				return
			default:
				continue
			}
		}
		n, ours := flowNumber(b, s.flow.dstPort)
		if !ours {
			continue
		}
		s.received.Add(1)
		switch {
		case n+1 == next:
			s.duplicate.Add(1)
		case n < next:
			s.reordered.Add(1)
		}
		next = max(next, n+1)
	}
}

// flowing waits until more frames have arrived.
func (s *stream) flowing(more uint64) {
	s.t.Helper()
	before := s.received.Load()
	eventually(s.t, "frames arrive", func() error {
		if n := s.received.Load() - before; n < more {
			return fmt.Errorf("%d of %d", n, more)
		}
		return nil
	})
}

// stop ends the sender, waits until nothing arrives any more, and returns how
// many frames are missing.
func (s *stream) stop() (lost int64) {
	close(s.quit)
	<-s.senderDone
	// All frames have arrived, or none does any more for long.
	last, quiet := s.received.Load(), time.Now()
	for s.received.Load() < s.sent.Load() && time.Since(quiet) < 2*time.Second {
		time.Sleep(5 * time.Millisecond)
		if n := s.received.Load(); n != last {
			last, quiet = n, time.Now()
		}
	}
	close(s.quitReceiver)
	<-s.receiveDone
	return int64(s.sent.Load()) - int64(s.received.Load()) - int64(s.to.dropped())
}

// perfect ends the stream, which must have arrived wholly and in order.
func (s *stream) perfect(d *daemon) {
	s.t.Helper()
	lost := s.stop()
	s.t.Logf("%d frames sent, %d received", s.sent.Load(), s.received.Load())
	if lost != 0 || s.reordered.Load() != 0 || s.duplicate.Load() != 0 || s.refused.Load() != 0 || s.sent.Load() == 0 {
		s.t.Errorf("of %d frames %d are lost, %d reordered, %d duplicated, %d were refused by the interface; drops: %v\n%s",
			s.sent.Load(), lost, s.reordered.Load(), s.duplicate.Load(), s.refused.Load(), d.drops(), d.do("show", "ports", "--json"))
	}
}
