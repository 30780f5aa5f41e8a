package tcp

import (
	"bytes"
	"fmt"
	"testing"

	"gswitch/frame"
)

// vector is one end of a connection whose peer is the test.
type vector struct {
	t    *testing.T
	now  frame.Time
	c    *Conn
	mine uint32 // next sequence number of the test's end
	s    Segment
}

const vectorISS = 4999 // of the test's end: its first byte is 5000

// listen opens a connection of c, which takes a SYN with the options given.
func listen(t *testing.T, cfg Config, o Options) *vector {
	t.Helper()
	c, err := Accept(0, cfg, 1, &Segment{Flags: SYN, Seq: vectorISS, Window: 1000, Options: o})
	if err != nil {
		t.Fatal(err)
	}
	v := &vector{t: t, c: c, mine: vectorISS + 1}
	v.next()
	if v.s.Flags != SYN|ACK || v.s.Ack != v.mine {
		t.Fatalf("%v, acknowledgement %d, for a SYN", v.s.Flags, v.s.Ack)
	}
	return v
}

// open completes the handshake with an acknowledgement that names a window.
func (v *vector) open(window uint16, o Options) {
	v.t.Helper()
	if v.receive(Segment{Flags: ACK, Seq: v.mine, Window: window, Options: o}); v.c.State() != Established {
		v.t.Fatalf("%v after the handshake", v.c.State())
	}
	v.silent("the handshake's acknowledgement")
}

// receive gives a segment to the connection. What it acknowledges is all that was sent.
func (v *vector) receive(s Segment) {
	s.Ack = v.c.wire(v.c.nxt)
	v.c.Receive(v.now, &s)
}

// data is a segment of n bytes from a sequence number on.
func (v *vector) data(seq uint32, n int, o Options) {
	v.receive(Segment{Flags: ACK, Seq: seq, Window: 1000, Len: n, Data: make([]byte, n), Options: o})
}

// next takes the segment that the connection has to send.
func (v *vector) next() *Segment {
	v.t.Helper()
	if !v.c.Next(v.now, &v.s) {
		v.t.Fatal("nothing is sent")
	}
	return &v.s
}

func (v *vector) silent(after string) {
	v.t.Helper()
	var s Segment
	if v.c.Next(v.now, &s) {
		v.t.Fatalf("%v, acknowledgement %d, is sent after %s", s.Flags, s.Ack, after)
	}
}

func stamped(val, echo uint32) Options { return Options{HasStamp: true, Stamp: val, Echo: echo} }

// eager acknowledges each segment at once.
func eager() Config {
	c := quick()
	c.QuickACKs = 1000
	return c
}

// RFC 7323 section 2.2 and 2.3: the field of a SYN is never scaled; a shift above 14 is taken
// for 14; without the option in both SYNs no window is scaled, and later ones mean nothing.
func TestScaleVectors(t *testing.T) {
	for _, c := range []struct {
		name    string
		receive int // largest receive buffer
		syn     Options
		scale   int // in the answer; -1: no option
		window  int // that a field of 3 then means
	}{
		{"no option", 1 << 20, Options{}, -1, 3},
		{"shift 0", 1 << 20, Options{HasScale: true}, 5, 3},
		{"shift 7", 1 << 20, Options{HasScale: true, Scale: 7}, 5, 3 << 7},
		{"shift 14", 65535, Options{HasScale: true, Scale: 14}, 0, 3 << 14},
		{"shift 15", 1<<30 - 1, Options{HasScale: true, Scale: 15}, 14, 3 << 14},
		{"shift 255", 65535, Options{HasScale: true, Scale: 255}, 0, 3 << 14},
	} {
		t.Run(c.name, func(t *testing.T) {
			// What a SYN says goes through its bytes: it is there that 15 becomes 14.
			raw := c.syn.Append(nil)
			syn, ok := ParseOptions(raw)
			if !ok {
				t.Fatalf("%v is not read", raw)
			}
			cfg := eager()
			cfg.Stamps, cfg.ReceiveBuffer, cfg.MaxReceive = false, 65535, c.receive
			v := listen(t, cfg, syn)
			if got := v.s.Options; got.HasScale != (c.scale >= 0) || c.scale >= 0 && int(got.Scale) != c.scale {
				t.Errorf("the answer says %+v, want a shift of %d", got, c.scale)
			}
			if v.s.Window != 65535 {
				t.Errorf("a window of %d in a SYN, want all 65,535 bytes: it is not scaled", v.s.Window)
			}
			if v.c.PeerWindow() != 1000 {
				t.Errorf("1000 in a SYN is %d bytes", v.c.PeerWindow())
			}
			v.open(3, Options{HasScale: true, Scale: 2}) // outside of a SYN it means nothing
			if v.c.PeerWindow() != c.window {
				t.Errorf("a field of 3 is %d bytes, want %d", v.c.PeerWindow(), c.window)
			}
			v.data(v.mine, 1000, Options{})
			want := 65535 - 1000
			if got := int(v.next().Window) << max(c.scale, 0); got > 65535 || got < want-1<<max(c.scale, 0) {
				t.Errorf("%d bytes are offered behind 1000 that nobody read, want %d", got, want)
			}
		})
	}
}

// RFC 7323 section 2.4: a window that is scaled down by rounding takes nothing back; what was
// offered is taken.
func TestWindowIsNotTakenBack(t *testing.T) {
	cfg := eager()
	cfg.Stamps, cfg.ReceiveBuffer, cfg.MaxReceive = false, 8<<10, 4<<20
	v := listen(t, cfg, Options{HasScale: true})
	v.open(1000, Options{})
	shift := v.s.Options.Scale
	edge, seq := v.mine+uint32(v.s.Window), v.mine
	for _, n := range []int{1, 2, 3, 700, 64, 65, 1} {
		v.data(seq, n, Options{})
		seq += uint32(n)
		s := v.next()
		if now := s.Ack + uint32(s.Window)<<shift; int32(now-edge) > 0 || int32(edge-now) >= 1<<shift {
			t.Fatalf("the window ends at %d after %d bytes, it ended at %d", now, n, edge)
		}
	}
	v.data(seq, int(edge-seq), Options{})
	if s := v.next(); s.Ack != edge || s.Window != 0 {
		t.Errorf("acknowledgement %d with a window of %d, want %d: all that the SYN offered", s.Ack, s.Window, edge)
	}
}

// RFC 7323 section 3.2 and appendix A: the bytes of the option, which begins a header at a
// multiple of four.
func TestStampBytes(t *testing.T) {
	o := stamped(0x01020304, 0x05060708)
	if got, want := o.Append(nil), []byte{1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8}; !bytes.Equal(got, want) {
		t.Errorf("% x, want % x", got, want)
	}
}

// RFC 7323 section 3.2: an end that has negotiated stamps puts them into every segment, and does not
// look at one without; a reset need not have them. An end that has not, sends none.
func TestStampsVectors(t *testing.T) {
	for _, both := range []bool{true, false} {
		v := listen(t, eager(), Options{HasStamp: both, Stamp: 7})
		if o := v.s.Options; o.HasStamp != both || both && o.Echo != 7 {
			t.Fatalf("stamps in the SYN: %v, in its answer %+v", both, o)
		}
		v.open(1000, Options{HasStamp: both, Stamp: 8})
		v.data(v.mine, 10, Options{HasStamp: both, Stamp: 9})
		if o := v.next().Options; o.HasStamp != both || both && o.Echo != 9 {
			t.Errorf("stamps: %v, an acknowledgement has %+v", both, o)
		}
		v.data(v.mine+10, 10, Options{HasStamp: !both, Stamp: 10})
		if both {
			v.silent("a segment without a stamp")
			if v.c.Stats.Unacceptable != 1 || v.c.Readable() != 10 {
				t.Errorf("%d bytes, %+v after a segment without a stamp", v.c.Readable(), v.c.Stats)
			}
		} else if v.next(); v.s.Options.HasStamp || v.c.Readable() != 20 {
			t.Errorf("%d bytes, %+v after a stamp that nobody asked for", v.c.Readable(), v.s.Options)
		}
		v.receive(Segment{Flags: RST, Seq: v.c.rcvWire(v.c.rcvNxt)})
		if v.c.Err() != ErrReset {
			t.Errorf("%v after a reset without a stamp", v.c.Err())
		}
	}
	c, err := Dial(0, quick(), 1)
	if err != nil {
		t.Fatal(err)
	}
	v := &vector{t: t, c: c}
	if o := v.next().Options; !o.HasStamp || o.Echo != 0 {
		t.Errorf("%+v in a SYN: without an acknowledgement there is nothing to echo", o)
	}
}

// RFC 7323 section 4.3: which stamp is echoed. Its two cases, segments of a byte.
func TestEchoVectors(t *testing.T) {
	t.Run("A, acknowledgements are held back", func(t *testing.T) {
		cfg := quick()
		cfg.QuickACKs = 0
		v := listen(t, cfg, stamped(0, 0))
		v.open(1000, stamped(0, 0))
		for i := range uint32(3) {
			v.data(v.mine+i, 1, stamped(1+i, 0))
			v.silent("a segment whose acknowledgement is held back")
		}
		v.now = v.c.Due()
		v.c.Advance(v.now)
		if s := v.next(); s.Ack != v.mine+3 || s.Options.Echo != 1 {
			t.Errorf("acknowledgement %d echoes %d, want that of the first of three", s.Ack-v.mine, s.Options.Echo)
		}
	})
	t.Run("B, a hole", func(t *testing.T) {
		v := listen(t, eager(), stamped(0, 0))
		v.open(1000, stamped(0, 0))
		const a, b, c, d, e = 0, 1, 2, 3, 4
		for _, s := range []struct{ seq, stamp, ack, echo uint32 }{
			{a, 1, b, 1}, {c, 3, b, 1}, {b, 2, d, 2}, {e, 5, d, 2}, {d, 4, e + 1, 4},
		} {
			v.data(v.mine+s.seq, 1, stamped(s.stamp, 0))
			if got := v.next(); got.Ack-v.mine != s.ack || got.Options.Echo != s.echo {
				t.Errorf("segment %c: acknowledgement %d echoes %d, want %d and %d", 'A'+s.seq, got.Ack-v.mine, got.Options.Echo, s.ack, s.echo)
			}
		}
	})
}

// RFC 7323 section 5.3 and 5.5: a segment with an older stamp is acknowledged and not taken (R1),
// by arithmetic that wraps; one outside of the window sets no stamp (R2, R3); a reset is not
// asked for its stamp; a stamp of more than 24 days ago is none, and the next one takes its place.
func TestPAWSVectors(t *testing.T) {
	const day = 24 * 3600 * frame.Second
	for _, c := range []struct {
		name        string
		last, stamp uint32
		idle        frame.Time
		taken       bool
	}{
		{"equal", 100, 100, 0, true},
		{"later", 100, 101, 0, true},
		{"older", 100, 99, 0, false},
		{"wrapped", 0xffffffff, 0, 0, true},
		{"older over the wrap", 0, 0xffffffff, 0, false},
		{"half of the circle later", 100, 100 + 1<<31 - 1, 0, true},
		{"half of the circle older", 100, 100 + 1<<31, 0, false},
		{"older after 23 days", 100, 99, 23 * day, false},
		{"older after 25 days", 100, 99, 25 * day, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := listen(t, eager(), stamped(c.last, 0))
			v.open(1000, stamped(c.last, 0))
			v.now += c.idle
			v.data(v.mine, 10, stamped(c.stamp, 0))
			s, want, echo := v.next(), uint32(0), c.last
			if c.taken {
				want, echo = 10, c.stamp
			}
			if s.Ack-v.mine != want || s.Options.Echo != echo {
				t.Errorf("%d of 10 bytes are acknowledged and %d echoed, want %d and %d", s.Ack-v.mine, s.Options.Echo, want, echo)
			}
			// What is kept is as old as the segment that it came in.
			v.data(v.mine+want, 10, stamped(echo-1, 0))
			if s := v.next(); s.Ack-v.mine != want || s.Options.Echo != echo {
				t.Errorf("an older stamp behind it: %d bytes are acknowledged and %d echoed", s.Ack-v.mine, s.Options.Echo)
			}
		})
	}
	v := listen(t, eager(), stamped(100, 0))
	v.open(1000, stamped(100, 0))
	v.data(v.mine-2000, 10, stamped(200, 0)) // an old duplicate
	if s := v.next(); s.Options.Echo != 100 {
		t.Errorf("a segment before the window: %d is echoed", s.Options.Echo)
	}
	v.data(v.mine+1<<30, 10, stamped(300, 0))
	if s := v.next(); s.Options.Echo != 100 || s.Ack != v.mine {
		t.Errorf("a segment behind the window: %d is echoed", s.Options.Echo)
	}
	v.receive(Segment{Flags: RST, Seq: v.mine, Options: stamped(1, 0)})
	if v.c.Err() != ErrReset {
		t.Errorf("%v after a reset with an old stamp", v.c.Err())
	}
}

// RFC 2018 section 4: eight segments of 500 bytes from 5000 on, and what is acknowledged.
func TestSACKVectors(t *testing.T) {
	for _, c := range []struct {
		name  string
		steps [][]uint32 // the segment, the acknowledgement, blocks
	}{
		{"the last four are lost", [][]uint32{{5000, 5500}, {5500, 6000}, {6000, 6500}, {6500, 7000}}},
		{"the first is lost", [][]uint32{
			{5500, 5000, 5500, 6000}, {6000, 5000, 5500, 6500}, {6500, 5000, 5500, 7000}, {7000, 5000, 5500, 7500},
			{7500, 5000, 5500, 8000}, {8000, 5000, 5500, 8500}, {8500, 5000, 5500, 9000},
		}},
		{"every second is lost, then the fourth and the second come", [][]uint32{
			{5000, 5500}, {6000, 5500, 6000, 6500}, {7000, 5500, 7000, 7500, 6000, 6500},
			{8000, 5500, 8000, 8500, 7000, 7500, 6000, 6500},
			{6500, 5500, 6000, 7500, 8000, 8500},
			{5500, 7500, 8000, 8500},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := eager()
			cfg.Stamps = false
			v := listen(t, cfg, Options{SACKPermitted: true})
			v.open(1000, Options{})
			for _, x := range c.steps {
				v.data(x[0], 500, Options{})
				s := v.next()
				got := []uint32{s.Ack}
				for _, b := range s.Options.SACK[:s.Options.SACKs] {
					got = append(got, b[:]...)
				}
				if fmt.Sprint(got) != fmt.Sprint(x[1:]) {
					t.Errorf("segment %d: %v, want %v", x[0], got, x[1:])
				}
			}
		})
	}
}
