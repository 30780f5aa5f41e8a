package point

import (
	"fmt"
	"testing"
	"time"

	"gswitch/frame"
	st "gswitch/vswitch/switchtest"
	wt "gswitch/wire/wiretest"
)

// What Escape costs a frame. off: the same switch twice, without Escape, for
// what the measure itself is off by; there, all of it is a nil check. lossy:
// frames of a class that nothing pauses. unpaused: lossless frames while nothing is
// paused; they are noted, and their queue is one from which flows can be taken.
// asked: the same while the neighbour that they come from is asked to pause and
// rounds of tokens are due.
func BenchmarkEscape(b *testing.B) {
	b.Run("off", func(b *testing.B) {
		st.BenchBeside(b, escapePump(b, nil, 3, 16), escapePump(b, nil, 3, 16))
	})
	on := &Config{Queue: 6}
	b.Run("lossy", func(b *testing.B) {
		st.BenchBeside(b, escapePump(b, nil, 1, 16), escapePump(b, on, 1, 16))
	})
	for _, n := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("unpaused/flows=%d", n), func(b *testing.B) {
			st.BenchBeside(b, escapePump(b, nil, 3, n), escapePump(b, on, 3, n))
		})
	}
	for _, n := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("asked/flows=%d", n), func(b *testing.B) {
			without, with := escapePump(b, nil, 3, n), escapePump(b, on, 3, n)
			blockThird(b, without)
			blockThird(b, with)
			st.BenchBeside(b, without, with)
			if v := Views(with.Rig.Switch.Nodes[0], nil)[1]; v.Made == 0 {
				b.Fatalf("no token was made: %+v", v)
			}
		})
	}
}

// A frame that is released from a paused queue, the whole way, one at a time: it
// comes and waits behind three others of its flow, its token comes, and the
// first leaves with its mark. The median of runs of 64.
func BenchmarkEscapeFrame(b *testing.B) {
	for _, n := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("flows=%d", n), func(b *testing.B) {
			cfg := escapeConfig()
			cfg.Buffer.Size, cfg.Buffer.XOFF, cfg.Buffer.XONOffset = 8<<20, 1<<20, 1000
			change(cfg, func(e *Config) { e.Printed = true }) // no requests, which leave by the same port
			r := newRig(b, cfg)
			var data, tokens [][]byte
			for i := range n {
				data = append(data, st.RoCE(1, uint32(1+i), 100))
				tokens = append(tokens, token(data[i], 1))
			}
			r.In(1, wt.PFC(st.HostMAC(9), 1<<3, 0xffff))
			for range 3 {
				for _, d := range data {
					r.In(0, d)
				}
			}
			node, pool := r.Switch.Nodes[0], r.Pools[0]
			in := make([]frame.Ref, 1)
			var out [8]frame.Ref
			round := func(i int) {
				r.Now += 100
				in[0] = pool.New(data[i%n])
				node.Receive(r.Now, 0, in)
				in[0] = pool.New(tokens[i%n])
				node.Receive(r.Now, 1, in)
				k := node.Transmit(r.Now, 1, out[:])
				if k != 1 {
					b.Fatalf("%d frames left: %v", k, r.Drops())
				}
				pool.Free(out[0])
				if i%1024 == 0 { // the pause is renewed
					in[0] = pool.New(wt.PFC(st.HostMAC(9), 1<<3, 0xffff))
					node.Receive(r.Now, 1, in)
				}
			}
			var took []float64
			for i := 0; b.Loop(); {
				start := time.Now()
				for range 64 {
					round(i)
					i++
				}
				took = append(took, float64(time.Since(start).Nanoseconds())/64)
			}
			b.ReportMetric(st.Median(took), "ns/frame")
		})
	}
}

// escapePump is a switch of three ports, from port 0 to port 1 of which n flows
// of a class go.
func escapePump(b testing.TB, e *Config, class uint8, n int) *st.Pump {
	cfg := escapeConfig()
	if cfg.Options = nil; e != nil {
		with(cfg, *e)
	}
	cfg.Buffer.Size, cfg.Buffer.XOFF, cfg.Buffer.XONOffset = 8<<20, 64<<10, 1000
	for i := range cfg.Ports {
		cfg.Ports[i].DefaultClass = class
		takePart(&cfg.Ports[i], e != nil)
	}
	for i := range cfg.Ports {
		cfg.Ports[i].Scheduler.Rate = 0 // else one vector would take as long as its link does
	}
	cfg.Ports[2].Scheduler.Rate = 1_000_000 // what blockThird leaves there stays
	var proto [][]byte
	for i := range n {
		proto = append(proto, wt.Frame(wt.Eth(st.HostMAC(2), st.HostMAC(1)), wt.IPv4("10.0.0.9", "10.0.0.2"), wt.UDP(uint16(1000+i), 2000)))
	}
	return st.NewPump(b, cfg, proto)
}

// blockThird leaves frames of port 0 waiting for a slow port, until the
// neighbour at port 0 is asked to pause.
func blockThird(b testing.TB, p *st.Pump) {
	slow := wt.Frame(wt.Eth(st.HostMAC(3), st.HostMAC(1)), wt.IPv4("10.0.0.9", "10.0.0.3"), wt.UDP(1, 2000), wt.Zeros(1400))
	n := p.Rig.Switch.Nodes[0]
	for range 60 {
		p.Rig.In(0, slow)
		if n.PFC(0).XOFFSent() != 0 {
			return
		}
	}
	b.Fatal("no pause was asked for")
}
