package vswitch

import (
	"testing"

	"gswitch/frame"
	"gswitch/pfc"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// tagged is a frame of a class, which the tag's priority sets.
func tagged(dst, src int, class uint8, size int) []byte {
	return wt.Frame(wt.Eth(hostMAC(dst), hostMAC(src)), wt.VLAN(5, class), wt.IPv4("10.0.0.1", "10.0.0.2"), wt.UDP(1000, 2000), wt.Zeros(size-46))
}

func pfcFrame(enable uint8, quanta uint16) []byte {
	f := wire.PFCFields{Src: hostMAC(9), Enable: enable}
	for i := range f.Quanta {
		f.Quanta[i] = quanta
	}
	b := make([]byte, wire.MinFrame)
	f.Encode(b)
	return b
}

func losslessConfig(n int) *Config {
	cfg := rated(baseConfig(n), 1e9)
	cfg.PFC = PFCConfig{Mode: pfc.PFC, Classes: 1 << 3}
	cfg.Buffer = BufferConfig{Size: 1 << 20, XOFF: 20_000, XONOffset: 5_000}
	for i := 0; i < n; i++ {
		cfg.FDB.Static = append(cfg.FDB.Static, StaticMAC{VLAN: 1, MAC: hostMAC(i), Port: uint16(i)})
	}
	return cfg
}

// A pause stops its class within one frame, the others go on, and it ends by
// XON or by itself.
func TestHonoursPFC(t *testing.T) {
	r := newRig(t, losslessConfig(2))
	r.in(1, pfcFrame(1<<3, 0xffff))
	if c := r.counts(1); c.Drops[frame.PauseConsumed] != 1 || c.Dropped() != 0 {
		t.Fatalf("the pause was counted as %v", r.drops())
	}
	r.in(0, tagged(1, 0, 3, 100), tagged(1, 0, 2, 100))
	if b := r.one(1); wire.VLAN(b[14:]).TCI()>>13 != 2 {
		t.Error("the wrong class stopped")
	}
	r.advance(frame.Millisecond)
	r.none(1)
	r.in(1, pfcFrame(1<<3, 0))
	r.one(1)

	r.in(1, pfcFrame(1<<3, 100)) // 100 quanta of 512 ns at 1 Gb/s
	r.in(0, tagged(1, 0, 3, 100))
	r.advance(51 * frame.Microsecond)
	r.none(1)
	if at := r.sw.Nodes[0].Wake(r.now); at > r.now+201*frame.Nanosecond {
		t.Errorf("the switch would wake %v too late", (at - r.now).Duration())
	}
	r.advance(200 * frame.Nanosecond)
	r.one(1)
}

func TestPauseFrameStopsTheLink(t *testing.T) {
	cfg := losslessConfig(2)
	cfg.PFC.Mode, cfg.PFC.Classes = pfc.Pause, 0xff
	r := newRig(t, cfg)
	b := make([]byte, wire.MinFrame)
	(&wire.PauseFields{Src: hostMAC(9), Quanta: 10}).Encode(b)
	r.in(1, b)
	r.in(0, tagged(1, 0, 0, 100), tagged(1, 0, 7, 100))
	r.none(1)
	r.advance(6 * frame.Microsecond)
	if got := r.out(1); len(got) == 0 {
		t.Error("the pause did not expire")
	}
	r.advance(frame.Millisecond)
	r.out(1)
}

// A congested port asks its senders to pause before anything is lost, ahead
// of the data it sends itself, and lets them go on when it has drained.
func TestRequestsPause(t *testing.T) {
	r := newRig(t, losslessConfig(3))
	r.in(0, tagged(1, 0, 3, 1000)) // data for port 0 must not delay the pause
	r.in(2, tagged(0, 2, 3, 1000), tagged(0, 2, 3, 1000))
	for range 20 {
		r.in(0, tagged(1, 0, 3, 1000))
	}
	first := r.out(0)[0]
	c := wire.MACControl(first)
	if c.Opcode() != wire.OpPFC || c.Enabled() != 1<<3 || c.Quanta(3) != 0xffff || wire.Ethernet(first).Src() != selfMAC {
		t.Fatalf("port 0 sends %x first, want a PFC frame for class 3", first)
	}
	var resumed bool
	for range 400 {
		r.advance(frame.Microsecond)
		r.out(1)
		for _, b := range r.out(0) {
			if wire.Ethernet(b).EtherType() == wire.EtherTypeMACControl {
				resumed = wire.MACControl(b).Quanta(3) == 0
			}
		}
	}
	if !resumed {
		t.Error("no XON after the queue drained")
	}
	if d := r.counts(0); d.Dropped() != 0 {
		t.Errorf("lossless frames were dropped: %v", r.drops())
	}
}

// Senders that pause within the headroom never lose a frame, whatever the
// pattern; the same senders against a headroom that is too small do, so the
// test can fail.
func TestLosslessUnderIncast(t *testing.T) {
	if lost := incast(t, losslessConfig(5)); lost != 0 {
		t.Errorf("%d lossless frames were lost", lost)
	}
	cfg := losslessConfig(5)
	cfg.Buffer.Headroom, cfg.Buffer.AllowLoss = 1, true
	cfg.Buffer.Size = 60_000
	if lost := incast(t, cfg); lost == 0 {
		t.Error("no loss without headroom: this test proves nothing")
	}
}

// incast lets four hosts send to the fifth at line rate, honouring pauses one
// frame and a cable late, and returns the frames that the switch dropped.
func incast(t *testing.T, cfg *Config) (lost uint64) {
	const cable = frame.Microsecond
	for i := range cfg.Ports {
		cfg.Ports[i].CableDelay = cable
	}
	r := newRig(t, cfg)
	rnd := frame.NewRand(3)
	type host struct {
		next   frame.Time   // when its link is free
		paused frame.Time   // until when it pauses
		due    []frame.Time // when a pause arrives
		quanta []uint16
		sent   int
	}
	hosts := make([]host, 4)
	end := r.now + 3*frame.Millisecond
	for r.now < end || r.busy() {
		if r.now > end+frame.Second {
			t.Fatal("no rest")
		}
		r.advance(200 * frame.Nanosecond)
		for i := range hosts {
			h := &hosts[i]
			for len(h.due) > 0 && h.due[0] <= r.now {
				h.paused = r.now + frame.Time(h.quanta[0])*512
				h.due, h.quanta = h.due[1:], h.quanta[1:]
			}
			if r.now >= h.next && r.now >= h.paused && r.now < end {
				size := 100 + int(rnd.Uint32n(1400))
				r.in(uint16(i), tagged(4, i, 3, size))
				h.next = r.now + frame.Time(size+24)*8
				h.sent++
			}
			for _, b := range r.out(uint16(i)) {
				if wire.Ethernet(b).EtherType() == wire.EtherTypeMACControl {
					h.due = append(h.due, r.now+cable)
					h.quanta = append(h.quanta, wire.MACControl(b).Quanta(3))
				}
			}
		}
		r.out(4)
	}
	total := uint64(0)
	for i := range hosts {
		c := r.counts(uint16(i))
		lost += c.Dropped()
		total += c.Rx.Frames
	}
	if c := r.counts(4); c.Tx.Frames+lost != total {
		t.Errorf("%d frames came in, %d left, %d dropped", total, c.Tx.Frames, lost)
	}
	return lost
}

// busy reports whether a data frame waits anywhere.
func (r *rig) busy() bool {
	for p := range r.sw.Program().ports {
		if n, _ := r.sw.Nodes[0].Scheduler(uint16(p)).Backlog(); n > 0 {
			return true
		}
	}
	return false
}

func TestWatchdogDrainsAStormAndRestores(t *testing.T) {
	cfg := losslessConfig(2)
	cfg.PFC.Watchdog = pfc.Watchdog{Detect: 10 * frame.Millisecond, Action: pfc.Drop}
	r := newRig(t, cfg)
	r.in(0, tagged(1, 0, 3, 100))
	for range 30 {
		r.in(1, pfcFrame(1<<3, 0xffff))
		r.advance(frame.Millisecond)
	}
	if c := r.counts(0); c.Drops[frame.PFCWatchdog] != 1 {
		t.Fatalf("the storm was not broken: %v", r.drops())
	}
	r.in(0, tagged(1, 0, 3, 100))
	if c := r.counts(0); c.Drops[frame.PFCWatchdog] != 2 {
		t.Errorf("a frame for a stormy queue was kept: %v", r.drops())
	}
	for range 200 {
		r.advance(frame.Millisecond)
	}
	r.in(0, tagged(1, 0, 3, 100))
	r.one(1)
}

// The clock gives the port its speed: 1000-byte frames with overhead at
// 1 Gb/s leave 8192 ns apart, to the nanosecond.
func TestPortRate(t *testing.T) {
	r := newRig(t, losslessConfig(2))
	for range 10 {
		r.in(0, tagged(1, 0, 0, 1000))
	}
	n := r.sw.Nodes[0]
	var v [1]frame.Ref
	start := r.now
	for i := range 10 {
		r.now = n.Wake(r.now)
		if want := start + frame.Time(i)*8192; r.now != want {
			t.Fatalf("frame %d leaves at %d, want %d", i, r.now-start, want-start)
		}
		if n.Transmit(r.now, 1, v[:]) != 1 {
			t.Fatal("nothing left at its time")
		}
		if m := r.arena.Meta(v[0]); m.Depart != r.now || int(m.QFrames) != 9-i {
			t.Errorf("frame %d is stamped %d with %d behind it", i, m.Depart, m.QFrames)
		}
		r.pools[0].Free(v[0])
	}
}

// The smallest frames use up chunks long before their bytes reach a threshold:
// lossless ones are paused in time all the same, and lossy ones cause no
// pauses.
func TestLosslessWithSmallFrames(t *testing.T) {
	for _, workers := range []int{1, 2} {
		cfg := losslessConfig(3)
		cfg.Buffer = BufferConfig{}
		cfg.Ports[2].Worker = workers - 1
		r := newRigOf(t, cfg, workers, 4096)
		paused := [2]int{}
		for i := range 3000 { // more than may wait
			for p := range uint16(2) {
				if paused[p] < 20 { // a sender acts some frames late
					r.in(p, tagged(2, int(p), 3, 60))
				}
				for _, b := range r.out(p) {
					if wire.MACControl(b).Quanta(3) != 0 {
						paused[p]++
					}
				}
				if paused[p] > 0 {
					paused[p]++
				}
				if i%4 == 0 {
					r.in(p, tagged(2, int(p), 0, 60))
				}
			}
		}
		if paused[0] == 0 || paused[1] == 0 {
			t.Errorf("%d workers: nobody was paused", workers)
		}
		for p := range uint16(2) {
			if c := r.counts(p); c.Drops[frame.ArenaExhausted] > 750 || c.Drops[frame.HeadroomFull] != 0 {
				t.Errorf("%d workers: port %d dropped %v", workers, p, c.Drops)
			}
		}
		if lost := r.counts(2).QueueDrops[3]; lost != 0 {
			t.Errorf("%d workers: %d lossless frames were lost", workers, lost)
		}
		resumed := [2]bool{}
		for range 2000 {
			r.advance(frame.Microsecond)
			r.out(2)
			for p := range uint16(2) {
				for _, b := range r.out(p) {
					resumed[p] = wire.MACControl(b).Quanta(3) == 0
				}
			}
		}
		if resumed != [2]bool{true, true} {
			t.Errorf("%d workers: not all may go on: %v", workers, resumed)
		}
	}

	cfg := losslessConfig(2)
	cfg.Buffer = BufferConfig{Alpha: 16}
	r := newRig(t, cfg)
	for range 3000 {
		r.in(0, tagged(1, 0, 0, 60))
	}
	r.none(0)
	if r.counts(0).Drops[frame.ArenaExhausted] == 0 {
		t.Error("the test does not fill the switch")
	}
}

// Set to forward, the watchdog ignores the storm: what waited leaves, and
// nothing is dropped. Set to alert, it only reports it.
func TestWatchdogForwardsOrAlerts(t *testing.T) {
	for _, action := range []pfc.Action{pfc.Forward, pfc.Alert} {
		cfg := losslessConfig(2)
		cfg.PFC.Watchdog = pfc.Watchdog{Detect: 10 * frame.Millisecond, Action: action}
		r := newRig(t, cfg)
		r.in(0, tagged(1, 0, 3, 100))
		left := 0
		for range 30 {
			r.in(1, pfcFrame(1<<3, 0xffff))
			r.advance(frame.Millisecond)
			left += len(r.out(1))
		}
		if want := map[pfc.Action]int{pfc.Forward: 1, pfc.Alert: 0}[action]; left != want {
			t.Errorf("%v: %d frames left during the storm, want %d", action, left, want)
		}
		if storms := r.sw.Nodes[0].PFC(1).Storms(); storms != 1<<3 {
			t.Errorf("%v: storms %08b, want class 3", action, storms)
		}
		if c := r.counts(0); c.Dropped() != 0 {
			t.Errorf("%v: dropped %v", action, r.drops())
		}
	}
}
