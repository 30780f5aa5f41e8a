package hostnic

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"gswitch/frame"
	"gswitch/transport"
	"gswitch/wire"
)

// rc3 adds the second loop to a queue pair of class 3.
func rc3(cross transport.Crossing) func(c *QPConfig) {
	return func(c *QPConfig) {
		c.Transport = transport.Config{Recovery: transport.TCP, RTOLow: frame.Millisecond, RTOHigh: frame.Millisecond,
			Recursive: &transport.Recursive{Levels: transport.DesignLevels, Cross: cross}}
		c.LowClasses = []uint8{2, 1, 0}
	}
}

// seenLow is a frame of the second loop as it left.
type seenLow struct {
	at    frame.Time
	from  int
	ack   bool
	level uint8
	dscp  uint8
	class uint8
	psn   uint32
}

func (p *pair) watchLow() *[]seenLow {
	var out []seenLow
	p.seen = func(from int, m *frame.Meta, b []byte) {
		bth := b[wire.EthernetLen+wire.IPv4Len+wire.UDPLen:]
		out = append(out, seenLow{m.Depart, from, bth[0] == wire.RCAcknowledge, bth[4] & levelMask, b[wire.EthernetLen+1] >> 2, m.Class, be.Uint32(bth[8:]) & 0xffffff})
		if wire.Checksum(b[wire.EthernetLen:wire.EthernetLen+wire.IPv4Len]) != 0 {
			p.t.Errorf("the checksum of a frame of level %d is wrong", bth[4]&levelMask)
		}
	}
	return &out
}

// The example of section 2.2: 66 packets, an initial window of 4 and 50 packets
// to a round trip. The first round sends 4 by the ordinary loop and 46 from the
// tail, 40 of them at level 1, and the receiver has all before the ordinary loop
// has opened its window.
func TestTailFirst(t *testing.T) {
	p := newPair(t, func(_ int, c *Config) { c.Rate, c.BaseRTT = 1e9, 50*8464 })
	p.delay = 25 * 8464 // of frames of 1058 bytes
	seen := p.watchLow()
	qa, _ := p.connect(func(c *QPConfig) {
		rc3(transport.Meet)(c)
		c.CC, c.Transport.RTOLow, c.Transport.RTOHigh = factory(t, "aimd", map[string]string{"initial": "4000B", "slow_start": "true"}), frame.Second, frame.Second
	})
	must(t, p.a.SendMessage(0, qa, 66_000, 7))
	p.run(frame.Second)
	var first []seenLow
	for _, f := range *seen {
		if f.from == 0 && f.at < 50*8464 {
			first = append(first, f)
		}
	}
	if len(first) != 50 {
		t.Fatalf("%d frames in the first round trip, want 50", len(first))
	}
	for i, f := range first {
		want := seenLow{at: frame.Time(i) * 8464, level: 0, dscp: 24, class: 3, psn: uint32(i)}
		if i >= 4 {
			want.psn, want.level, want.dscp, want.class = uint32(69-i), 1, 16, 2
		}
		if i >= 44 {
			want.level, want.dscp, want.class = 2, 8, 1
		}
		if f != want {
			t.Errorf("frame %d: %+v, want %+v", i, f, want)
		}
	}
	done := take(p.a)
	if len(done) != 1 || done[0].Status != StatusOK || done[0].ID != 7 || done[0].End > 3*50*8464 {
		t.Errorf("%+v", done)
	}
	if got := take(p.b); len(got) != 1 || got[0].Bytes != 66_000 || got[0].End > 2*50*8464 {
		t.Errorf("the receiver: %+v", got)
	}
	v, _ := p.a.QP(qa)
	if v.Stats.LowFrames < 46 || p.a.Counts().LowFrames != v.Stats.LowFrames || p.a.Counts().Timeouts != 0 {
		t.Errorf("%d frames of the second loop, %d timeouts", v.Stats.LowFrames, p.a.Counts().Timeouts)
	}
	for _, f := range *seen {
		if f.from == 1 && f.level != 0 && (!f.ack || f.dscp != f.class*8 || f.class != 3-f.level) {
			t.Fatalf("a reply: %+v", f)
		}
	}
	p.drained()
}

// The second loop takes nothing from a higher class: its frames depart as they
// do alone, but for the one frame that is on the link when they come.
func TestSecondLoopHarmsNobody(t *testing.T) {
	const begin = 150_000
	departures := func(with bool) (out []frame.Time) {
		p := newPair(t, func(_ int, c *Config) { c.Rate = 1e9 })
		p.delay = 100_000
		qb, rb := p.connect(func(c *QPConfig) { c.Class = 4 })
		qa, _ := p.connect(func(c *QPConfig) {
			rc3(transport.Meet)(c)
			c.CC = factory(t, "aimd", map[string]string{"initial": "1000B"})
		})
		p.seen = func(from int, m *frame.Meta, b []byte) {
			if from == 0 && wire.BTH(b[wire.EthernetLen+wire.IPv4Len+wire.UDPLen:]).DestQP() == rb {
				out = append(out, m.Depart)
			}
		}
		if with {
			must(t, p.a.SendMessage(0, qa, 2_000_000, 0))
		}
		p.run(begin)
		must(t, p.a.SendMessage(begin, qb, 200_000, 0))
		before := p.a.Counts().LowFrames
		p.run(begin + 200*8464)
		if during := p.a.Counts().LowFrames - before; during > 1 {
			t.Errorf("%d frames of the second loop left beside a full class above", during)
		}
		p.run(5 * frame.Millisecond)
		if with && p.a.Counts().LowFrames < 50 {
			t.Errorf("the second loop used %d frames of the free link", p.a.Counts().LowFrames)
		}
		return out
	}
	alone, beside := departures(false), departures(true)
	if len(alone) != len(beside) || len(alone) != 200 {
		t.Fatalf("%d and %d frames", len(alone), len(beside))
	}
	for i := range alone {
		if late := beside[i] - alone[i]; late < 0 || late > 8464 {
			t.Fatalf("frame %d departs %d ns later", i, late)
		}
	}
}

// Data goes before what second loops send in the same class, also where those
// have more than one class.
func TestDataBeforeSecondLoopsOfItsClass(t *testing.T) {
	p := newPair(t, func(_ int, c *Config) { c.Rate = 1e9 })
	p.delay = 100_000
	qb, rb := p.connect(func(c *QPConfig) { c.Class = 2 })
	qa, _ := p.connect(func(c *QPConfig) {
		rc3(transport.Meet)(c)
		c.CC = factory(t, "aimd", map[string]string{"initial": "1000B"})
	})
	qc, _ := p.connect(func(c *QPConfig) {
		rc3(transport.Meet)(c)
		c.CC, c.Class, c.LowClasses = factory(t, "aimd", map[string]string{"initial": "1000B"}), 4, []uint8{1, 0, 0}
		c.Transport.Recursive = &transport.Recursive{Levels: []uint64{40, 440}}
		c.LowClasses = c.LowClasses[:2]
	})
	data, other := 0, 0
	p.seen = func(from int, m *frame.Meta, b []byte) {
		bth := b[wire.EthernetLen+wire.IPv4Len+wire.UDPLen:]
		switch {
		case from != 0:
		case wire.BTH(bth).DestQP() == rb:
			data++
		case data < 10 && bth[4]&levelMask != 0:
			other++
		}
	}
	must(t, p.a.SendMessage(0, qb, 10_000, 0))
	must(t, p.a.SendMessage(0, qa, 100_000, 0))
	must(t, p.a.SendMessage(0, qc, 100_000, 0))
	p.run(200_000)
	if data != 10 || other != 0 {
		t.Errorf("%d data frames, and %d of second loops before the last of them", data, other)
	}
}

// On real frames, which lose, come twice and out of order, every byte arrives,
// with each crossing and both families of addresses.
func TestSecondLoopDeliversEveryByte(t *testing.T) {
	for seed := range uint64(12) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		p := newPairOn(t, newRig(t, 8192, 2048), func(_ int, c *Config) { c.Virtual, c.Rate = false, 1e9 })
		p.lose = func(*frame.Meta, []byte) bool { return rnd.IntN(10) == 0 }
		p.jitter = func() frame.Time { return frame.Time(rnd.IntN(30_000)) }
		p.twice = func() bool { return rnd.IntN(20) == 0 }
		data := make([]byte, 150_000)
		for i := range data {
			data[i] = byte(rnd.Uint32())
		}
		got := make([]byte, len(data))
		qa, _ := p.connect(func(c *QPConfig) {
			rc3(transport.Crossing(seed % 3))(c)
			c.CC, c.InitialPSN = factory(t, "aimd", nil), 0xfffff0
			c.Place = placeFunc(func(_ uint32, packet uint64, payload []byte) { copy(got[packet*1000:], payload) })
		})
		must(t, p.a.SendBytes(0, qa, data, 1))
		p.run(2 * frame.Second)
		if done := take(p.a); len(done) != 1 || done[0].Status != StatusOK {
			t.Fatalf("seed %d: %+v", seed, done)
		}
		if !bytes.Equal(got, data) {
			t.Errorf("seed %d: other bytes arrived", seed)
		}
		if p.a.Counts().LowFrames == 0 || p.a.Counts().LowAcks == 0 {
			t.Errorf("seed %d: nothing of the second loop", seed)
		}
		p.drained()
	}
}

// Frames of levels that were not agreed on, and replies with ranges that make no
// sense, are dropped and counted.
func TestHostileLevels(t *testing.T) {
	p := newPair(t, nil)
	qa, qb := p.connect(nil)
	q, _ := p.b.lookup(qb)
	p.run(1000)
	frames := 0
	p.seen = func(from int, m *frame.Meta, b []byte) {
		if from == 0 {
			b[wire.EthernetLen+wire.IPv4Len+wire.UDPLen+4] |= 2
			frames++
		}
	}
	must(t, p.a.SendMessage(p.now, qa, 1000, 0))
	p.run(p.now + 10_000)
	if frames != 1 || p.b.Counts().Drops[frame.QPOpcode] != 1 || q.stats.RxFrames != 0 {
		t.Errorf("%d frames, %d dropped", frames, p.b.Counts().Drops[frame.QPOpcode])
	}

	r := newPair(t, nil)
	ra, _ := r.connect(rc3(transport.Push))
	r.seen = func(from int, m *frame.Meta, b []byte) {
		bth := b[wire.EthernetLen+wire.IPv4Len+wire.UDPLen:]
		if from == 1 && bth[4]&levelMask != 0 {
			be.PutUint32(bth[20:], 5000) // the end of the run
		}
	}
	must(t, r.a.SendMessage(0, ra, 20_000, 0))
	r.run(100_000)
	if c := r.a.Counts(); c.Drops[frame.QPSequence] == 0 || c.LowAcks != 0 {
		t.Errorf("%d dropped, %d taken", c.Drops[frame.QPSequence], c.LowAcks)
	}
	if done := take(r.a); len(done) != 1 || done[0].Status != StatusOK {
		t.Errorf("%+v", done)
	}
}

func TestLowClassesAreChecked(t *testing.T) {
	for name, change := range map[string]func(c *QPConfig){
		"a class too few": func(c *QPConfig) { c.LowClasses = c.LowClasses[:2] },
		"the data's":      func(c *QPConfig) { c.LowClasses = []uint8{3, 1, 0} },
		"not falling":     func(c *QPConfig) { c.LowClasses = []uint8{1, 2, 0} },
		"lossless":        func(c *QPConfig) { c.LowClasses = []uint8{2, 1, 0}; c.Class = 4 },
		"verbs":           func(c *QPConfig) { c.Verbs = &VerbsConfig{} },
	} {
		p := newPair(t, func(_ int, c *Config) { c.PFC, c.PFCClasses = name == "lossless", 1<<2 })
		c := QPConfig{RemoteAddr: p.b.cfg.Addr, RemoteMAC: p.b.cfg.MAC, Class: 3}
		rc3(transport.Meet)(&c)
		change(&c)
		if _, err := p.a.OpenQP(0, &c); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
