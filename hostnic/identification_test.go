package hostnic

import (
	"testing"

	"gswitch/frame"
	"gswitch/wire"
)

// Whatever a host sends between one pair of addresses and ports, data, replies,
// read responses and congestion notifications, no identification comes twice
// within 65,536 frames: a loss detector that distinguishes packets by it must not
// take two acknowledgements for one.
func TestIdentificationsCount(t *testing.T) {
	for name, build := range map[string]func() *pair{
		"rdma": func() *pair {
			g := newRig(t, 4096, 2048)
			p := newPairOn(t, g, func(_ int, c *Config) { c.Virtual = false })
			qa, qb := p.connect(func(c *QPConfig) {
				c.SrcPort, c.Transport, c.Verbs = 50000, verbsTransport(verbsModes[1]), &VerbsConfig{}
			})
			for i, n := range []*NIC{p.a, p.b} {
				key, err := n.Memory().Register(memBase, make([]byte, 1<<20), RemoteWrite|RemoteRead)
				must(t, err)
				qp, peer, own := qb, p.b, qa
				if i == 1 {
					qp, peer, own = qa, p.a, qb
				}
				key, err = n.Grant(key, own)
				must(t, err)
				for k := range 20 {
					must(t, peer.Post(0, qp, &WorkRequest{ID: uint64(2 * k), Verb: Write, Local: make([]byte, 9000), RemoteVA: memBase, RKey: key}))
					must(t, peer.Post(0, qp, &WorkRequest{ID: uint64(2*k + 1), Verb: Read, Local: make([]byte, 9000), RemoteVA: memBase, RKey: key}))
				}
				must(t, peer.Post(0, qp, &WorkRequest{ID: 99, Verb: Send, Local: make([]byte, 10)})) // no receive is posted: a NAK
			}
			return p
		},
		"messages": func() *pair {
			p := newPair(t, func(_ int, c *Config) { c.CNP = CNPConfig{Frames: true, Interval: frame.Microsecond} })
			qa, qb := p.connect(func(c *QPConfig) { c.SrcPort = 50000 })
			for _, x := range []struct {
				n  *NIC
				qp uint32
			}{{p.a, qa}, {p.b, qb}} {
				must(t, x.n.SendMessage(0, x.qp, 500_000, 1))
			}
			return p
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := build()
			rng, frames := frame.NewRand(1), 0
			p.lose = func(m *frame.Meta, b []byte) bool {
				if ip := wire.IPv4(b[wire.EthernetLen:]); ip.TOS()&3 != 0 && rng.Uint32n(100) == 0 {
					ip.SetTOS(ip.TOS() | wire.CE)
					ip.UpdateChecksum()
				}
				return rng.Uint32n(100) == 0
			}
			type packet struct {
				from    int
				src, id uint16
				dst     uint16
			}
			seen, opcodes := map[packet]bool{}, map[byte]int{}
			p.seen = func(from int, m *frame.Meta, b []byte) {
				ip, udp := wire.IPv4(b[wire.EthernetLen:]), wire.UDP(b[wire.EthernetLen+wire.IPv4Len:])
				k := packet{from, udp.SrcPort(), ip.ID(), udp.DstPort()}
				if seen[k] {
					t.Fatalf("frame %d, opcode %#x: %+v came before", frames, b[42], k)
				}
				seen[k] = true
				opcodes[b[42]]++
				frames++
			}
			p.run(10 * frame.Millisecond)
			if frames < 500 || frames > 60_000 || len(opcodes) < 4 {
				t.Errorf("%d frames of opcodes %v", frames, opcodes)
			}
		})
	}
}
