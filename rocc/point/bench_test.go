package point

import (
	"fmt"
	"gswitch/vswitch"
	st "gswitch/vswitch/switchtest"
	"testing"

	"gswitch/frame"
	"gswitch/rocc"
	wt "gswitch/wire/wiretest"
)

// What a congestion point costs: the same frames through a port with one
// and without, updates and notices included. short: each vector leaves before
// the next comes. busy: frames of 1000 bytes at 100 Gb/s through a queue that
// stands beyond its reference, so that in each period all senders are notified.
func BenchmarkRoCC(b *testing.B) {
	on := Config{Queues: 0xff, Params: rocc.For(100_000_000_000)}
	for _, n := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("short/flows=%d", n), func(b *testing.B) {
			st.BenchBeside(b, roccPump(b, Config{}, n), roccPump(b, on, n))
		})
	}
	for _, n := range []int{1, 2, 10, 100} {
		b.Run(fmt.Sprintf("busy/flows=%d", n), func(b *testing.B) {
			without, with := roccPump(b, Config{}, n), roccPump(b, on, n)
			for _, p := range []*st.Pump{without, with} {
				stand(p, 400)
			}
			st.BenchBeside(b, without, with)
		})
	}
}

// What each table costs where the queue stands, with a hundred flows.
func BenchmarkCongestionTables(b *testing.B) {
	for kind := rocc.InQueue; kind <= rocc.Bubble; kind++ {
		b.Run(kind.String(), func(b *testing.B) {
			on := Config{Queues: 0xff, Params: rocc.For(100_000_000_000), Table: rocc.TableConfig{Kind: kind}}
			without, with := roccPump(b, Config{}, 100), roccPump(b, on, 100)
			stand(without, 400)
			stand(with, 400)
			st.BenchBeside(b, without, with)
		})
	}
}

func roccPump(b testing.TB, c Config, n int) *st.Pump {
	cfg := st.Base(2)
	cfg.FDB.Static = []vswitch.StaticMAC{{VLAN: 1, MAC: st.HostMAC(2), Port: 1}, {VLAN: 1, MAC: st.HostMAC(1), Port: 0}}
	cfg.Buffer.Size = 8 << 20
	cfg.Ports[1].Options = vswitch.Options{Name: c}
	var proto [][]byte
	for i := range n {
		proto = append(proto, wt.Frame(wt.Eth(st.HostMAC(2), st.HostMAC(1)), wt.IPv4("10.0.0.9", "10.0.0.2"), wt.UDP(uint16(1000+i), 2000)))
	}
	return st.NewPump(b, cfg, proto)
}

// stand leaves frames of 1000 bytes in the queue behind which all others wait,
// and has them come at 100 Gb/s.
func stand(p *st.Pump, frames int) {
	p.Wire, p.Gap = 1000, 64*80*frame.Nanosecond
	for i := range frames {
		r := p.Rig.Pools[0].New(p.Proto[i%len(p.Proto)])
		p.Rig.Arena.Meta(r).Wire = p.Wire
		p.Rig.Switch.Nodes[0].Receive(p.Rig.Now, 0, []frame.Ref{r})
	}
}
