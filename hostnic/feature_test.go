package hostnic

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"gswitch/feature"
	"gswitch/frame"
	"gswitch/wire"
)

// beat is a feature for tests: it sends a frame of its own EtherType at each
// period, writes the instant of the departure into it, and notes when those of
// others left and came.
type beat struct {
	n        *NIC
	c        beatConfig
	next     frame.Time
	times    []frame.Time // departure and arrival of each
	datagram int          // to its UDP port
	arrived  int
	links    []bool
}

type beatConfig struct {
	period frame.Time
	watch  bool
}

const (
	beatType = 0x88b6
	beatPort = 7007
)

func init() {
	Register(Feature{Name: "beat", Takes: []Protocol{{EtherType: beatType}, {IP: wire.ProtoUDP, Port: beatPort}},
		Check: func(c *Config) error {
			if c.Options["beat"].(beatConfig).period < 0 {
				return errors.New("the period is negative")
			}
			return nil
		},
		Counters: []feature.Counter{{Name: "beats_total", Help: "Beats that arrived."}, {Name: "beat_frames_total", Help: "Frames, by direction.", Labels: []string{"direction"}, Values: []string{"rx"}}},
		New: func(n *NIC) Instance {
			b := &beat{n: n}
			return Instance{State: b, Adopt: b.adopt, Receive: b.receive, Arrives: b.arrives, Departs: b.departs, Advance: b.advance,
				Link: func(_ frame.Time, up bool) { b.links = append(b.links, up) },
				Read: func(emit func(int, float64, ...string)) {
					emit(0, float64(len(b.times)/2))
					emit(1, float64(b.arrived), "rx")
				}}
		}})
}

func (b *beat) adopt(options any) Stages {
	c, on := options.(beatConfig)
	if b.c = c; !on {
		return 0
	}
	if c.watch {
		return AtArrives | AtDeparts
	}
	return AtDeparts
}

func (b *beat) receive(now frame.Time, v []frame.Ref) {
	for _, r := range v {
		if m := b.n.Arena().Meta(r); m.EtherType == beatType {
			b.times = append(b.times, frame.Time(binary.BigEndian.Uint64(b.n.Arena().Bytes(r)[wire.EthernetLen:])), now)
		} else {
			b.datagram++
		}
		b.n.Pool().Free(r)
	}
}

func (b *beat) arrives(_ frame.Time, v []frame.Ref) { b.arrived += len(v) }

func (b *beat) departs(_ frame.Time, v []frame.Ref) {
	for _, r := range v {
		if m, to := b.n.Arena().Meta(r), b.n.Arena().Bytes(r); wire.Ethernet(to).EtherType() == beatType {
			binary.BigEndian.PutUint64(to[wire.EthernetLen:], uint64(m.Depart))
		}
	}
}

func (b *beat) advance(now frame.Time) frame.Time {
	if b.c.period == 0 {
		return frame.Never
	}
	for ; b.next <= now; b.next += b.c.period {
		r := b.n.Pool().Alloc()
		m := b.n.Arena().Reset(r)
		m.Len, m.Wire, m.Class = wire.MinFrame, wire.MinFrame, 7
		to := b.n.Arena().Bytes(r)
		clear(to)
		e := wire.EthernetFields{Dst: wire.MAC{1, 0, 0, 0, 0, 7}, Src: b.n.Config().MAC, EtherType: beatType}
		e.Encode(to)
		b.n.QueueFrame(now, r, true, 0)
	}
	return b.next
}

// A feature sends at its instants, in the middle of data at line rate, stamps
// what leaves, gets what is its own and nothing else, and is off again when its
// options are gone.
func TestFeature(t *testing.T) {
	p := newPair(t, func(i int, c *Config) {
		c.Options = c.Options.With("beat", beatConfig{period: frame.Time(1-i) * 10 * frame.Microsecond, watch: i == 1})
	})
	qa, _ := p.connect(nil)
	must(t, p.a.SendMessage(0, qa, 1_000_000, 0))
	p.run(95 * frame.Microsecond)
	b := p.b.Feature("beat").(*beat)
	if len(b.times) != 20 {
		t.Fatalf("%d beats came in 95 us at one in 10 us", len(b.times)/2)
	}
	for i := 0; i < len(b.times); i += 2 {
		// Of 60 bytes, behind at most one frame of 1058, on a link of 100 Gb/s and 1 us.
		due := frame.Time(i/2) * 10 * frame.Microsecond
		if left, came := b.times[i], b.times[i+1]; left < due || left > due+85 || came-left < 1004 || came-left > 1005 {
			t.Errorf("the beat of %d ns left at %d and came at %d", due, left, came)
		}
	}
	if rx := p.b.Counts().RxFrames; uint64(b.arrived) != rx || rx < 1000 {
		t.Errorf("it was shown %d of %d frames", b.arrived, rx)
	}
	if a := p.a.Feature("beat").(*beat); a.arrived != 0 || len(a.times) != 0 {
		t.Errorf("who did not ask to be shown frames was shown %d", a.arrived)
	}
	var read []string
	p.b.ReadFeatures(func(f *Feature, i int, v float64, labels ...string) {
		if v > 0 {
			read = append(read, f.Counters[i].Key(strings.Join(labels, "")))
		}
	})
	if !slices.Equal(read, []string{"beats_total", "beat_frames_rx_total"}) {
		t.Errorf("counted were %v", read)
	}
	c := p.a.Config()
	c.Options = nil
	must(t, p.a.Reconfigure(p.now, &c))
	k := len(b.times)
	p.run(200 * frame.Microsecond)
	if len(b.times) > k {
		t.Error("it beats without options")
	}
	p.a.SetLink(p.now, 0, false)
	if a := p.a.Feature("beat").(*beat); !slices.Equal(a.links, []bool{true, false}[2-len(a.links):]) || len(a.links) == 0 {
		t.Errorf("Link was called with %v", a.links)
	}
	p.drained()
}

// Frames of a feature's protocols are its own where they are for this host.
func TestTakes(t *testing.T) {
	beatFrame := func(dst wire.MAC) []byte {
		b := make([]byte, wire.MinFrame)
		e := wire.EthernetFields{Dst: dst, Src: testMAC(9), EtherType: beatType}
		e.Encode(b)
		return b
	}
	p := newPair(t, func(i int, c *Config) {
		if i == 0 {
			c.Options = c.Options.With("beat", beatConfig{})
		}
	})
	for _, c := range []struct {
		b    []byte
		ours bool
	}{
		{beatFrame(testMAC(1)), true},
		{beatFrame(wire.MAC{1, 0, 0, 0, 0, 9}), true},
		{beatFrame(testMAC(5)), false},
		{datagramTo(testMAC(1), [4]byte{10, 0, 0, 1}, beatPort), true},
		{datagramTo(testMAC(1), [4]byte{10, 0, 0, 1}, beatPort+1), false},
		{datagramTo(testMAC(1), [4]byte{10, 0, 0, 9}, beatPort), false},
		{datagramTo(testMAC(5), [4]byte{10, 0, 0, 1}, beatPort), false},
	} {
		b := p.a.Feature("beat").(*beat)
		before, drops := len(b.times)/2+b.datagram, sum(p.a.Counts().Drops[:])
		p.inject(c.b)
		if got := len(b.times)/2+b.datagram > before; got != c.ours || sum(p.a.Counts().Drops[:])-drops != map[bool]uint64{true: 0, false: 1}[c.ours] {
			t.Errorf("%x: taken %v, dropped %d", c.b[:42], got, sum(p.a.Counts().Drops[:])-drops)
		}
	}
	if p.b.Feature("beat") != nil {
		t.Error("a NIC without options has it")
	}
	p.drained()
}

func sum(v []uint64) (s uint64) {
	for _, k := range v {
		s += k
	}
	return s
}

// datagramTo is an empty datagram.
func datagramTo(dst wire.MAC, to [4]byte, port uint16) []byte {
	b := make([]byte, wire.MinFrame)
	e := wire.EthernetFields{Dst: dst, Src: testMAC(9), EtherType: wire.EtherTypeIPv4}
	e.Encode(b)
	ip := wire.IPv4(b[wire.EthernetLen:])
	ip[0], ip[8], ip[9] = 0x45, 64, wire.ProtoUDP
	binary.BigEndian.PutUint16(ip[2:], wire.IPv4Len+wire.UDPLen)
	copy(ip[12:], []byte{10, 0, 0, 9})
	copy(ip[16:], to[:])
	ip.UpdateChecksum()
	binary.BigEndian.PutUint16(b[wire.EthernetLen+wire.IPv4Len+2:], port)
	binary.BigEndian.PutUint16(b[wire.EthernetLen+wire.IPv4Len+4:], wire.UDPLen)
	return b
}

// What cannot be is refused.
func TestFeatureRefusals(t *testing.T) {
	for want, o := range map[string]Options{
		"not part of this program": {"nonesuch": 1},
		"beat: the period":         {"beat": beatConfig{period: -1}},
	} {
		c := testConfig(1)
		c.Options = o
		if _, err := New(&c, frame.NewPool(frame.MustArena(64, 256, 32))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
	for want, f := range map[string]Feature{
		"two features are named beat": {Name: "beat"},
		"takes frames of beat":        {Name: "other", Takes: []Protocol{{IP: wire.ProtoUDP}}},
	} {
		func() {
			defer func() {
				if got, _ := recover().(string); !strings.Contains(got, want) {
					t.Errorf("want %q: %q", want, got)
				}
			}()
			Register(f)
		}()
	}
}
