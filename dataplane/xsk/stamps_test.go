package xsk

import (
	"errors"
	"testing"

	"gswitch/bpf"
	"gswitch/frame"
)

// Frames of PTP bear the instant at which the driver handed them over, with and without a
// program that asks it for stamps of the hardware: a veth has none. Where the port ends up
// in generic mode, which such a program does not run in, it has the other one.
func TestStampsOfHardware(t *testing.T) {
	l := newLab(t)
	l.pair("h0", "s0", 1500, 1)
	bound := false
	l.do(func() error {
		p, err := bpf.LoadHardware(bpf.Filter{}, l.ifindex("s0"))
		if errors.Is(err, bpf.ErrNotSupported) {
			t.Logf("this kernel has no such programs: %v", err)
			return nil
		}
		if bound = err == nil; bound {
			err = p.Close()
		}
		return err
	})
	in, out := l.wire("h0"), make([]frame.Ref, 64)
	for _, c := range []struct {
		mode             Mode
		hardware, runsIn bool
	}{{Native, false, false}, {Native, true, true}, {Auto, true, true}, {Generic, true, false}} {
		g := newGroup(t, 1024, 2048)
		p := g.openPort(PortConfig{Interface: "s0", Stamp: true, Hardware: c.hardware, Socket: inLab(l, Config{Mode: c.mode, FillSize: 256})})
		if got := p.Hardware(); got != (c.runsIn && bound) {
			t.Errorf("%v, asked for %t: program for the hardware's stamps %t", c.mode, c.hardware, got)
		}
		ptp := testFrame(60, 1)
		ptp[12], ptp[13] = 0x88, 0xf7
		for _, b := range [][]byte{ptp, testFrame(60, 2)} {
			in.send(b)
			for p.Sockets()[0].Receive(g.a, out) == 0 {
			}
			monotonic, hardware := bpf.Stamp(g.a.Before(out[0], bpf.StampLen))
			if isPTP := b[13] == 0xf7; (monotonic != 0) != isPTP || hardware != 0 {
				t.Errorf("%v, asked for %t: stamps %d and %d, of a frame of PTP %t", c.mode, c.hardware, monotonic, hardware, isPTP)
			}
			g.p.Free(out[0])
		}
		g.closeAll()
	}
	// loopback has no native XDP: the ladder ends with a program that runs there.
	l.do(func() error { return setUp("lo", true) })
	g := newGroup(t, 512, 4096)
	p := g.openPort(PortConfig{Interface: "lo", Stamp: true, Hardware: true, Socket: inLab(l, Config{FillSize: 64, Multibuffer: true})})
	if p.Mode() != Generic || p.Hardware() {
		t.Errorf("lo: %v, program for the hardware's stamps %t", p.Mode(), p.Hardware())
	}
	g.closeAll()
}
