package hostnic

import (
	"bytes"
	"testing"

	"gswitch/frame"
	"gswitch/transport"
	"gswitch/wire"
)

// Messages as RDMA Writes say in their first packet, and there alone, how long they
// are, and arrive whole under loss, also with lengths of another simulator.
func TestMessagesAsWrites(t *testing.T) {
	for _, sizes := range []Sizes{{}, {Data: 42, Ack: 54}} {
		for _, mode := range []*transport.Kind{transport.GoBackN, transport.IRN, transport.TCP} {
			p := newPair(t, func(_ int, c *Config) { c.Sizes = sizes })
			rng, announced, frames := frame.NewRand(1), map[uint32]int{}, 0
			p.lose = func(*frame.Meta, []byte) bool { return rng.Uint32n(100) < 4 }
			p.seen = func(from int, m *frame.Meta, b []byte) {
				if from != 0 {
					return
				}
				frames++
				bth := b[wire.EthernetLen+wire.IPv4Len+wire.UDPLen:]
				switch bth[0] {
				case wire.RCWriteFirst, wire.RCWriteOnly:
					var reth wire.RETHFields
					reth.Decode(bth[wire.BTHLen:])
					announced[reth.Length]++
				case wire.RCWriteMiddle, wire.RCWriteLast:
				default:
					t.Fatalf("opcode %#x", bth[0])
				}
				if want := uint32(len(b)); sizes.Data != 0 && m.Wire < want {
					t.Fatalf("a frame of %d bytes holds %d", m.Wire, want)
				}
			}
			qa, qb := p.connect(func(c *QPConfig) {
				c.Writes = true
				c.Transport = transport.Config{Recovery: mode, RTOHigh: 50 * frame.Microsecond}
			})
			lengths := []uint64{0, 1, 7, 999, 1000, 1001, 2000, 12345, 300_000}
			total := uint64(0)
			for i, n := range lengths {
				must(t, p.a.SendMessage(p.now, qa, n, uint64(i)))
				total += n
			}
			p.run(frame.Second)
			tx, rx := take(p.a), take(p.b)
			if len(tx) != len(lengths) || len(rx) != len(lengths) {
				t.Fatalf("%v: %d and %d of %d messages complete", mode, len(tx), len(rx), len(lengths))
			}
			for i, n := range lengths {
				if rx[i].Bytes != n || announced[uint32(n)] == 0 {
					t.Fatalf("%v: a message of %d bytes: %+v, announced %d times", mode, n, rx[i], announced[uint32(n)])
				}
			}
			if len(announced) != len(lengths) || frames == 0 {
				t.Fatalf("%v: lengths %v", mode, announced)
			}
			if v, _ := p.b.QP(qb); v.Stats.RxBytes != total {
				t.Fatalf("%v: %d bytes delivered, not %d", mode, v.Stats.RxBytes, total)
			}
			p.drained()
		}
	}
}

// On real frames the payload is behind the RETH, byte for byte, and a queue pair for
// Sends takes no Writes.
func TestWritesOnRealFrames(t *testing.T) {
	g := newRig(t, 256, 2048)
	p := newPairOn(t, g, func(_ int, c *Config) { c.Virtual = false })
	data := make([]byte, 2500)
	for i := range data {
		data[i] = byte(i * 7)
	}
	got := make([]byte, 0, len(data))
	qa, _ := p.connect(func(c *QPConfig) {
		c.Writes = true
		c.Place = placeFunc(func(_ uint32, _ uint64, b []byte) { got = append(got, b...) })
	})
	must(t, p.a.SendBytes(0, qa, data, 1))
	p.run(frame.Millisecond)
	if !bytes.Equal(got, data) || len(take(p.b)) != 1 {
		t.Fatalf("%d bytes arrived", len(got))
	}
	if p.a.SendMessage(p.now, qa, 1<<31+1, 2) == nil {
		t.Error("a Write of more than 2 GiB is taken")
	}

	sends := false
	open := func(c *QPConfig) { c.Writes, sends = !sends, true }
	qa, _ = p.connect(open) // Writes at one end alone
	must(t, p.a.SendMessage(p.now, qa, 100, 3))
	p.run(p.now + frame.Millisecond)
	if p.b.Counts().Drops[frame.QPOpcode] == 0 || len(take(p.b)) != 0 {
		t.Error("a queue pair for Sends takes a Write")
	}
}
