package point

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"gswitch/frame"
	st "gswitch/vswitch/switchtest"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// sample is a flow sample as collectors read it.
type sample struct {
	sequence, source, oneIn, pool, drops, input, output, length uint32
	header                                                      []byte
}

// datagram reads a datagram of sFlow in a frame.
func datagram(t *testing.T, b []byte) (sequence uint32, v []sample) {
	t.Helper()
	if u := wire.UDP(b[34:]); b[23] != wire.ProtoUDP || u.DstPort() != 6343 || !wire.IPv4(b[14:]).ChecksumOK() || len(b) != 34+int(binary.BigEndian.Uint16(b[38:])) {
		t.Fatalf("no datagram of sFlow: %x", b)
	}
	b = b[42:]
	word := func() uint32 {
		w := binary.BigEndian.Uint32(b)
		b = b[4:]
		return w
	}
	if word() != 5 || word() != 1 || word() != 0x0a0a000a || word() != 1<<16 {
		t.Fatal("version, address or sub-agent is wrong")
	}
	sequence = word()
	word() // uptime
	for range word() {
		if word() != 1 {
			t.Fatal("no flow sample")
		}
		size := int(word())
		rest := len(b) - size
		s := sample{sequence: word(), source: word(), oneIn: word(), pool: word(), drops: word(), input: word(), output: word()}
		records, format, size := word(), word(), int(word())
		if records != 1 || format != 1 || len(b)-size != rest || word() != 1 {
			t.Fatal("no header of an Ethernet packet")
		}
		length, stripped := word(), word()
		s.length = length - stripped
		n := word()
		s.header, b = b[:n], b[(n+3)&^3:]
		if len(b) != rest {
			t.Fatalf("%d bytes left, not %d", len(b), rest)
		}
		v = append(v, s)
	}
	if len(b) != 0 {
		t.Fatalf("%d bytes behind the samples", len(b))
	}
	return sequence, v
}

// Samples of one in 64 of known traffic of two ports estimate it, in frames and in
// bytes; every datagram and every sample is numbered and none is missing; headers
// are those of the frames.
func TestSamplesEstimateTraffic(t *testing.T) {
	cfg := router(t, "sessions: [{name: s, to: 10.0.2.9, format: sflow, one_in: 64}]")
	cfg.Ports[2].MTU = 1000
	r := st.New(t, cfg)
	small, large := packet(wire.TCPAck), append(packet(wire.TCPPsh), make([]byte, 900)...)
	wire.IPv4(large[14:]).SetTotalLen(uint16(len(large) - 14))
	wire.IPv4(large[14:]).UpdateChecksum()
	back := wt.Frame(wt.Eth(st.SelfMAC, st.HostMAC(2)), wt.IPv4("10.0.1.2", "10.0.0.1"), wt.UDP(1, 2), wt.Zeros(301))
	var next uint32
	var got []sample
	most := 0
	take := func() {
		r.Out(0)
		r.Out(1)
		for _, b := range r.Out(2) {
			sequence, v := datagram(t, b)
			if sequence != next || len(v) == 0 || len(b) > 14+1000 {
				t.Fatalf("datagram %d, not %d, of %d bytes with %d samples", sequence, next, len(b), len(v))
			}
			next++
			most = max(most, len(v))
			got = append(got, v...)
		}
	}
	var in [2]int
	for i := range 3000 {
		v := make([][]byte, 24)
		for k := range v {
			v[k] = [][]byte{small, small, large}[(i+k)%3]
		}
		r.In(0, v...)
		r.In(1, back, back, back, back)
		in[0] += 24
		in[1] += 4
		r.Advance(frame.Microsecond)
		take()
	}
	r.Advance(longestWait)
	take()

	frames, octets, last := [2]int{}, [2]float64{}, [2]sample{}
	for _, s := range got {
		port := s.source - 1
		if s.input != s.source || port > 1 || s.oneIn != 64 || s.drops != 0 || s.output != 0 || s.sequence != last[port].sequence+1 || s.pool <= last[port].pool {
			t.Fatalf("%+v after %+v", s, last[port])
		}
		want := back
		if port == 0 {
			if want = small; s.length != uint32(len(small)) {
				want = large
			}
		}
		if s.length != uint32(len(want)) || !bytes.Equal(s.header, want[:min(len(want), 128)]) {
			t.Fatalf("%d bytes: %x", s.length, s.header)
		}
		last[port] = s
		frames[port]++
		octets[port] += 64 * float64(s.length)
	}
	for port, bytesIn := range []float64{float64(in[0]) * float64(2*len(small)+len(large)) / 3, float64(in[1] * len(back))} {
		// The error that one in twenty estimates has at most, twice over.
		bound := 2 * 1.96 / math.Sqrt(float64(frames[port]))
		if e := float64(64*frames[port])/float64(in[port]) - 1; math.Abs(e) > bound {
			t.Errorf("port %d: %d samples of %d frames", port, frames[port], in[port])
		}
		if e := octets[port]/bytesIn - 1; math.Abs(e) > 1.6*bound { // lengths vary by 1.2 times their mean
			t.Errorf("port %d: %v bytes, not %v", port, octets[port], bytesIn)
		}
		if pool := int(last[port].pool); pool > in[port] || pool < in[port]-24*64*3 {
			t.Errorf("port %d: a pool of %d frames, not %d", port, pool, in[port])
		}
	}
	if copies := counted(r, "watch_copies_total")["s"]; int(copies) != len(got) || most < 4 {
		t.Errorf("%v samples are counted, %d came, %d at most in a datagram", copies, len(got), most)
	}
	if lost := counted(r, "watch_lost_copies_total"); len(lost) != 0 {
		t.Errorf("lost: %v", lost)
	}
}

// A sample waits half a second for others, no more.
func TestSamplesLeaveInTime(t *testing.T) {
	r := st.New(t, router(t, "sessions: [{name: s, to: 10.0.2.9, format: sflow, one_in: 1}]"))
	r.In(0, packet(wire.TCPAck))
	r.Advance(longestWait / 2)
	r.In(0, packet(wire.TCPSyn))
	r.None(2)
	if at := r.Switch.Nodes[0].TimerWake(r.Now); at > r.Now+longestWait/2 {
		t.Errorf("the switch wants to be called in %v", at-r.Now)
	}
	r.Advance(longestWait / 2)
	if _, v := datagram(t, r.One(2)); len(v) != 2 || v[1].pool != 2 {
		t.Errorf("%+v", v)
	}
	// Another configuration sends what waits, and numbers go on.
	r.In(0, packet(wire.TCPAck))
	r.Apply(router(t, "sessions: [{name: s, to: 10.0.2.9, format: sflow, one_in: 1, snap: 200}]"))
	if n, v := datagram(t, r.One(2)); n != 1 || len(v) != 1 || v[0].sequence != 3 || v[0].pool != 3 {
		t.Errorf("datagram %d: %+v", n, v)
	}
	r.In(0, packet(wire.TCPAck))
	r.Advance(longestWait)
	if n, v := datagram(t, r.One(2)); n != 2 || len(v) != 1 || v[0].sequence != 4 || v[0].pool != 4 {
		t.Errorf("datagram %d: %+v", n, v)
	}
	r.Advance(10 * longestWait)
	r.None(2)
}

// Samples that do not arrive are counted, and later samples report them.
func TestLostSamples(t *testing.T) {
	r := st.New(t, router(t, "sessions: [{name: s, to: 10.99.0.1, format: sflow, one_in: 1}, {name: slow, to: 10.0.2.9, format: sflow, id: 1, one_in: 1, rate: 8Mbps, burst: 2000B}]"))
	for range 100 {
		r.In(0, packet(wire.TCPAck))
	}
	r.Advance(longestWait)
	copies, lost := counted(r, "watch_copies_total"), counted(r, "watch_lost_copies_total")
	if copies["s"] != 100 || lost["s dropped"] != 100 {
		t.Errorf("without a route: %v, %v", copies, lost)
	}
	slow := 0
	for _, b := range r.Out(2) {
		_, v := datagram(t, b)
		slow += len(v)
	}
	if slow == 0 || int(copies["slow"]) != slow || copies["slow"]+lost["slow rate"] != 100 {
		t.Errorf("over the rate: %d came, %v, %v", slow, copies, lost)
	}
	r.In(0, packet(wire.TCPAck))
	r.Advance(longestWait)
	if _, v := datagram(t, r.One(2)); len(v) != 1 || float64(v[0].drops) != lost["slow rate"] {
		t.Errorf("%+v, %v", v, lost)
	}
}
