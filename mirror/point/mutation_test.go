package point

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"gswitch/frame"
	"gswitch/mirror"
	st "gswitch/vswitch/switchtest"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// Damaged frames of all kinds, copies among them, meet a switch that copies what it
// can: each copy that it says it made came, or is counted as lost, and no frame is
// forgotten (the rig counts them).
func TestDamagedFrames(t *testing.T) {
	r := st.New(t, router(t, "sessions: [{name: e, to: 10.0.2.9, everflow: {sample: 2}, drops: [all]}, {name: span, port: c, one_in: 7, snap: 128}, {name: slow, to: 10.0.2.9, format: gre, one_in: 3, rate: 1Mbps}]\nprobes: {from: [10.0.0.0/24]}"))
	inner := []wt.Layer{wt.IPv4("10.0.0.1", "10.0.1.2"), wt.TCP(wire.TCPFields{SrcPort: 1, DstPort: 179, Flags: wire.TCPSyn}), wt.Zeros(20)}
	plain := wt.Frame(append([]wt.Layer{eth}, inner...)...)
	kinds := [][]byte{plain, wt.Frame(append([]wt.Layer{eth, wt.IPv4("10.0.0.1", "10.0.1.2")}, inner...)...), wt.PFC(st.HostMAC(1), 8, 9),
		wt.Frame(eth, wt.IPv4("10.0.0.1", "10.0.1.2"), wt.UDP(9, wire.RoCEv2Port), wt.BTH(wire.RCAcknowledge, 1, 2), wt.Payload([]byte{0x60, 0, 0, 0}), wt.Zeros(8)),
		wt.Frame(eth, wt.ARP(wire.ARPFields{Op: wire.ARPRequest}))}
	kinds = append(kinds, guidedBy("10.0.0.7", "10.0.0.7", "10.0.1.2", "10.10.0.10"), guidedBy("10.0.0.7", "10.0.0.7", "10.0.1.2", "10.10.0.10", "10.10.0.10"))
	b := make([]byte, 300)
	for _, f := range []mirror.Format{mirror.ERSPAN3, mirror.ERSPAN2, mirror.GRE} {
		s := router(t, everflow).Options[Name].(Config).Sessions[0].Wrap
		s.Format, s.Dst = f, netip.MustParseAddr("10.0.1.2")
		n, _ := s.Copy(b, plain, uint32(len(plain)), mirror.Info{})
		c := append([]byte(nil), b[:n]...)
		copy(c, plain[:12])
		kinds = append(kinds, c)
	}
	rng := rand.New(rand.NewPCG(3, 17))
	came := 0
	for range 20_000 {
		v := make([][]byte, 1+rng.IntN(8))
		for i := range v {
			f := append([]byte(nil), kinds[rng.IntN(len(kinds))]...)
			for range rng.IntN(4) {
				f[rng.IntN(len(f))] ^= 1 << rng.IntN(8)
			}
			v[i] = f[:len(f)-rng.IntN(2)*rng.IntN(len(f)-14)]
		}
		r.In(0, v...)
		r.Out(0)
		r.Out(1)
		came += len(r.Out(2))
		r.Now += frame.Microsecond
	}
	copies, lost := 0.0, 0.0
	for _, n := range counted(r, "watch_copies_total") {
		copies += n
	}
	for why, n := range counted(r, "watch_lost_copies_total") {
		if why == "e dropped" || why == "span dropped" || why == "slow dropped" {
			lost += n
		}
	}
	if copies < 10_000 || float64(came) != copies-lost {
		t.Errorf("%d frames came to the collector of %v copies, of which %v were dropped", came, copies, lost)
	}
}
