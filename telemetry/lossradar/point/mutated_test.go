package point

import (
	"math/rand/v2"
	"testing"

	st "gswitch/vswitch/switchtest"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// 20,000 frames of which some bytes are anything, with tags and without: a link that
// loses nothing is never said to have lost or made one, whatever is in them.
func TestMutatedFrames(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	l := newLine(t, metered(1, 0, 1), metered(2, 0, 1))
	ends := wt.Eth(st.HostMAC(2), st.HostMAC(1))
	protos := [][]byte{
		datagram(1), tag(datagram(2)),
		wt.Frame(ends, wt.IPv4("10.0.0.1", "10.0.0.2"), wt.TCP(wire.TCPFields{SrcPort: 1000, DstPort: 80}), wt.Zeros(60)),
		tag(wt.Frame(ends, wt.IPv6("2001:db8::1", "2001:db8::2"), wt.UDP(1, 2), wt.Zeros(60))),
		wt.Frame(ends, wt.IPv4("10.0.0.1", "10.0.0.2"), wt.UDP(1000, 4791), wt.BTH(wire.RCSendOnly, 7, 9), wt.Zeros(60)),
	}
	left := 0
	for range 1250 {
		var v [][]byte
		for range 16 {
			b := append([]byte(nil), protos[r.IntN(len(protos))]...)
			for range r.IntN(5) {
				b[r.IntN(min(len(b), 80))] = byte(r.Uint32())
			}
			v = append(v, b[:len(b)-r.IntN(2)*r.IntN(len(b)-1)])
		}
		left += l.pass(nil, v...)
		for _, x := range []*st.Rig{l.a, l.b} {
			x.Out(0)
			x.Out(2)
		}
	}
	lost, extra, unknown, residual, sent := l.end()
	arrived := metersOf(l.b).ports[0].count.Arrived
	if len(lost)+extra+unknown+residual != 0 || uint64(sent) != arrived || sent < 5000 || left < 10_000 {
		t.Errorf("%d lost, %d extra, %d unknown batches, %d residual; %d frames counted at the entrance, %d at the exit, %d behind it", len(lost), extra, unknown, residual, sent, arrived, left)
	}
	if drops := l.b.Drops(); len(drops) != 0 {
		t.Errorf("the second switch drops what the first let through: %v", drops)
	}
}
