package verbs

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"testing"

	"gswitch/dataplane"
	"gswitch/hostnic/agent"
	"gswitch/wire"
)

// duo is two hosts, each on a worker of its own, joined by a link in memory:
// everything is as on an interface but the kernel, and no rights are needed.
type duo struct {
	t    testing.TB
	ctx  context.Context
	host [2]*Host
	conf [2]*agent.Config // what the agent of each was made from
}

func newDuo(t testing.TB, change func(i int, c *Config)) *duo {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	d := &duo{t: t, ctx: ctx}
	engine, err := dataplane.New(dataplane.Config{Chunks: 32768, Workers: make([]dataplane.WorkerConfig, 2)})
	if err != nil {
		t.Fatal(err)
	}
	for i := range d.host {
		c := Config{Interface: fmt.Sprintf("h%d", i), Address: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 9, 0, byte(i + 1)}), 24), Congestion: "none", Telemetry: "none"}
		if change != nil {
			change(i, &c)
		}
		if c, err = c.complete(); err != nil {
			t.Fatal(err)
		}
		d.conf[i] = c.agent(wire.MAC{2, 0, 0, 0, 9, byte(i + 1)})
		if d.host[i], err = join(engine, i, c, d.conf[i], dataplane.PortSpec{Kind: dataplane.Wire, Wire: "cable"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := engine.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		for _, h := range d.host {
			if err := h.Close(); err != nil {
				t.Errorf("closing %v: %v", h.Addr(), err)
			}
		}
		if err := engine.Stop(); err != nil { // it has a count of the frames that were lost
			t.Error(err)
		}
	})
	return d
}

// listen lets host 1 offer memory of so many bytes.
func (d *duo) listen(bytes int, cfg ListenConfig) (*Listener, *Memory) {
	d.t.Helper()
	m, err := d.host[1].Register(make([]byte, bytes), RemoteWrite|RemoteRead|RemoteAtomic)
	if err != nil {
		d.t.Fatal(err)
	}
	cfg.Offer = m
	l, err := d.host[1].Listen(cfg)
	if err != nil {
		d.t.Fatal(err)
	}
	return l, m
}

// connect returns both ends of a connection.
func (d *duo) connect(l *Listener, cfg QPConfig) (a, b *QueuePair) {
	d.t.Helper()
	var wg sync.WaitGroup
	var err error
	wg.Go(func() { b, err = l.Accept(d.ctx) })
	a, dialErr := d.host[0].Dial(d.ctx, d.host[1].Addr(), cfg)
	if dialErr != nil {
		d.t.Fatal(dialErr)
	}
	if wg.Wait(); err != nil {
		d.t.Fatal(err)
	}
	return a, b
}

// next waits for one completion.
func (d *duo) next(q *QueuePair) Completion {
	d.t.Helper()
	var c [1]Completion
	for q.Poll(c[:]) == 0 {
		if err := q.CQ().Wait(d.ctx); err != nil {
			d.t.Fatalf("waiting for a completion: %v", err)
		}
	}
	return c[0]
}

// want waits for one and compares.
func (d *duo) want(q *QueuePair, op Opcode, wrID uint64, status Status) Completion {
	d.t.Helper()
	c := d.next(q)
	if c.Opcode != op || c.WRID != wrID || c.Status != status || c.QP != q {
		d.t.Fatalf("completion of %v %d: %v; want %v %d: %v", c.Opcode, c.WRID, c.Status, op, wrID, status)
	}
	return c
}

func (d *duo) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

// pattern fills b so that bytes in a wrong place show.
func pattern(b []byte, seed int) []byte {
	x := uint64(seed)*0x9e3779b97f4a7c15 + 1
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte(x)
	}
	return b
}
