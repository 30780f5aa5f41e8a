package stack

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"net/netip"
	"testing"

	"gswitch/frame"
	"gswitch/tcp"
)

// streamPair is two hosts whose programs use streams, on a link that loses.
func streamPair(t testing.TB, lose, most int) *two {
	a, err := frame.NewArena(make([]byte, 4096*2048), 2048, 0)
	if err != nil {
		t.Fatal(err)
	}
	x := &two{t: t, pool: frame.NewPool(a), lose: lose}
	for i := range x.stacks {
		c := tcp.Default()
		c.TimeWait = frame.Second
		s := &Streams{TCP: c, Most: most, ISS: func(frame.Time, tcp.Flow) uint32 { return uint32(1000 * i) }}
		if x.stacks[i], err = New(Config{Name: "h", Addr: addrs[i], MAC: macs[i], Verdicts: new(frame.Verdicts), Streams: s}, x.pool); err != nil {
			t.Fatal(err)
		}
	}
	return x
}

// Bytes of programs arrive as they were written, both ways, over a link that loses; when
// both have closed, nothing is left.
func TestStreams(t *testing.T) {
	for _, lose := range []int{0, 19} {
		x := streamPair(t, lose, 8)
		free := x.pool.Available()
		if err := x.stacks[1].ListenOn(80, true); err != nil {
			t.Fatal(err)
		}
		n, err := x.stacks[0].DialStream(0, netip.AddrPortFrom(addrs[1], 80), macs[1])
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(1, 1))
		data := make([]byte, 600_000)
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		var sent, echoed int
		var there, back []byte
		b := make([]byte, 10_000)
		for step := 0; len(back) < len(data); step++ {
			if step > 1_000_000 {
				t.Fatalf("%d of %d bytes came back", len(back), len(data))
			}
			x.run(x.now + 200*frame.Microsecond)
			if k, err := x.stacks[0].WriteStream(x.now, n, data[sent:], 0); err == nil && sent < len(data) {
				sent += k
			}
			if v := x.stacks[1].StreamList(nil); len(v) == 1 && v[0].Accepted && v[0].State >= tcp.Established {
				k, _ := x.stacks[1].ReadStream(x.now, v[0].Number, b, 0)
				there = append(there, b[:k]...)
				k, _ = x.stacks[1].WriteStream(x.now, v[0].Number, there[echoed:], 0)
				echoed += k
			}
			k, err := x.stacks[0].ReadStream(x.now, n, b, 0)
			if err != nil {
				t.Fatal(err)
			}
			back = append(back, b[:k]...)
		}
		if !bytes.Equal(back, data) || !bytes.Equal(there, data) {
			t.Errorf("the bytes are others than those that were sent")
		}
		other := x.stacks[1].StreamList(nil)[0].Number
		if err := errors.Join(x.stacks[0].CloseStream(x.now, n, true, false), x.stacks[1].CloseStream(x.now, other, true, false)); err != nil {
			t.Fatal(err)
		}
		x.run(x.now + 200*frame.Second)
		for i, s := range x.stacks {
			if v := s.StreamList(nil); len(v) != 0 || s.table.n != 0 || s.streams.open != 0 || s.Ready() != 0 || s.Due() != frame.Never {
				t.Errorf("stack %d still has %+v", i, v)
			}
		}
		if x.pool.Available() != free {
			t.Errorf("%d frames were kept", free-x.pool.Available())
		}
		if _, err := x.stacks[0].WriteStream(x.now, n, data, 0); !errors.Is(err, ErrNoStream) {
			t.Errorf("written to a stream that is gone: %v", err)
		}
	}
}

// A port without a listener refuses, more connections than there may be are not answered,
// SYNs that are not followed up are forgotten, and a closing end does not wait for ever.
func TestStreamBounds(t *testing.T) {
	x := streamPair(t, 0, 3)
	free := x.pool.Available()
	n, err := x.stacks[0].DialStream(0, netip.AddrPortFrom(addrs[1], 81), macs[1])
	if err != nil {
		t.Fatal(err)
	}
	x.run(frame.Second)
	if v, err := x.stacks[0].Stream(n); err != nil || !errors.Is(v.Err, tcp.ErrRefused) {
		t.Errorf("a port where nobody listens: %+v, %v", v, err)
	}
	if err := x.stacks[0].CloseStream(x.now, n, true, false); err != nil {
		t.Error(err)
	}
	if err := errors.Join(x.stacks[1].ListenOn(80, true)); err != nil {
		t.Fatal(err)
	}
	if x.stacks[1].ListenOn(80, true) == nil {
		t.Error("two listen on a port")
	}
	// SYNs that no end follows up.
	for port := range uint16(6) {
		syn := tcp.Segment{Flags: tcp.SYN, Window: 1000}
		b := append(append(append([]byte{}, macs[1][:]...), macs[0][:]...), 8, 0)
		r := x.pool.New(syn.AppendPacket(b, tcp.Flow{Src: [4]byte{10, 0, 0, 9}, Dst: addrs[1].As4(), SrcPort: 5000 + port, DstPort: 80}, 1))
		x.pool.Meta(r).L3 = 14
		x.stacks[1].Receive(x.now, r)
	}
	if open, refused := len(x.stacks[1].StreamList(nil)), x.stacks[1].Counts().Refused; open != 3 || refused != 3 {
		t.Errorf("%d connections are open, %d SYNs found no room", open, refused)
	}
	x.lose = 1 // nothing arrives
	x.run(x.now + 30*frame.Second)
	if v := x.stacks[1].StreamList(nil); len(v) != 0 {
		t.Errorf("half a minute later there are %+v", v)
	}
	x.lose = 0
	// One end leaves, the other one never closes.
	if n, err = x.stacks[0].DialStream(x.now, netip.AddrPortFrom(addrs[1], 80), macs[1]); err != nil {
		t.Fatal(err)
	}
	x.run(x.now + frame.Second)
	if err := x.stacks[0].CloseStream(x.now, n, true, false); err != nil {
		t.Fatal(err)
	}
	x.run(x.now + 100*frame.Second)
	if v := x.stacks[0].StreamList(nil); len(v) != 0 {
		t.Errorf("the end that left still has %+v", v)
	}
	v := x.stacks[1].StreamList(nil)
	if len(v) != 1 || !errors.Is(v[0].Err, tcp.ErrReset) {
		t.Fatalf("the other end has %+v", v)
	}
	if err := x.stacks[1].CloseStream(x.now, v[0].Number, true, true); err != nil {
		t.Error(err)
	}
	x.run(x.now + frame.Second)
	x.stacks[1].SetStreams(nil)
	if x.pool.Available() != free || x.stacks[1].streams.open != 0 {
		t.Errorf("%d frames were kept, %d streams", free-x.pool.Available(), x.stacks[1].streams.open)
	}
}
