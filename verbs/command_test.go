package verbs

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"gswitch/frame"
	"gswitch/hostnic/agent"
	"gswitch/wire"
)

// twin is interposed at a host: it gives everything that the host gets, and the commands
// as they are decoded from what they are encoded to, to a second host as well, which must
// send the same frames.
type twin struct {
	frame.Node
	cfg   Config
	arena *frame.Arena // of the host
	own   *frame.Arena
	pool  *frame.Pool
	copy  *node
	kinds map[byte]int
	sent  int
	wrong []string
}

func (w *twin) fail(format string, args ...any) {
	if len(w.wrong) < 10 {
		w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
	}
}

func (w *twin) Receive(now frame.Time, port uint16, v []frame.Ref) {
	var same []frame.Ref
	for _, r := range v {
		c := w.pool.New(w.arena.Bytes(r))
		w.own.Meta(c).Wire = w.arena.Meta(r).Wire
		same = append(same, c)
	}
	w.Node.Receive(now, port, v)
	w.copy.Receive(now, port, same)
}

func (w *twin) Advance(now frame.Time) {
	w.Node.Advance(now)
	w.copy.Advance(now)
}

func (w *twin) SetLink(now frame.Time, port uint16, up bool) {
	w.Node.SetLink(now, port, up)
	w.copy.SetLink(now, port, up)
}

// headers are what is compared: the copy has not the bytes that requests carry.
const headers = wire.EthernetLen + wire.IPv4Len + wire.UDPLen + wire.BTHLen

func (w *twin) Transmit(now frame.Time, port uint16, out []frame.Ref) int {
	n := w.Node.Transmit(now, port, out)
	same := make([]frame.Ref, n)
	if got := w.copy.Transmit(now, port, same); got != n {
		w.fail("at %v the host sends %d frames, and %d by what was encoded", now, n, got)
		same = same[:got]
	}
	for i, c := range same {
		a, b := w.arena.Bytes(out[i]), w.own.Bytes(c)
		if k := min(len(a), len(b), headers); !bytes.Equal(a[:k], b[:k]) || w.arena.Meta(out[i]).Depart != w.own.Meta(c).Depart {
			w.fail("at %v the host sends %x, and %x by what was encoded", now, a[:k], b[:k])
		}
		w.pool.Free(c)
		w.sent++
	}
	return n
}

// Command implements dataplane.Commanded.
func (w *twin) Command(now frame.Time, c frame.Command) {
	b := c.Encode(nil)
	w.kinds[b[0]]++
	d, err := decode(b, &w.cfg)
	if err != nil {
		w.fail("a command %x: %v", b, err)
	} else if again := d.Encode(nil); !bytes.Equal(b, again) {
		w.fail("a command %x is %x when it was decoded", b, again)
	}
	c.Do(now)
	if err == nil {
		bound{d, w.copy}.Do(now)
	}
}

// shadow interposes a twin at a host, to which nothing has happened yet.
func (d *duo) shadow(i int) *twin {
	d.t.Helper()
	h := d.host[i]
	own, err := frame.NewArena(make([]byte, 16384*2048), 2048, 0)
	d.must(err)
	w := &twin{cfg: h.cfg, arena: h.engine.Arena(), own: own, pool: frame.NewPool(own), kinds: map[byte]int{}}
	conf := *d.conf[i] // with the seed of the host's numbers
	a, err := agent.New(&conf, w.pool)
	if err != nil {
		d.t.Fatal(err)
	}
	w.copy = newNode(a)
	d.must(h.engine.Interpose(i, h.node, func(now frame.Time, n frame.Node) (frame.Node, error) {
		w.Node = n
		return w, nil
	}))
	return w
}

// What programs do to a host is commands: a second host that gets what these are encoded
// to, and the same frames, sends the same. Every kind of command occurs.
func TestHostsAreDrivenByCommands(t *testing.T) {
	d := newDuo(t, nil)
	twins := []*twin{d.shadow(0), d.shadow(1)}
	defer func() {
		for i, w := range twins {
			for _, s := range w.wrong {
				t.Errorf("host %d: %s", i, s)
			}
		}
	}()
	l, m := d.listen(4096, ListenConfig{})
	a, b := d.connect(l, QPConfig{})
	buf, word := make([]byte, 3000), make([]byte, 8)
	d.must(b.PostRecv(1, make([]byte, 4000)))
	d.must(a.SendImm(1, buf, 7))
	d.want(a, OpSend, 1, Success)
	d.want(b, OpRecv, 1, Success)
	own, err := m.Remote(b)
	d.must(err)
	d.must(a.Write(2, buf, own, 10))
	d.must(a.Read(3, buf, a.Remote(), 0))
	d.must(a.FetchAdd(4, word, a.Remote(), 8, 5))
	d.want(a, OpWrite, 2, Success)
	d.want(a, OpRead, 3, Success)
	d.want(a, OpAtomic, 4, Success)
	var burst []WorkRequest
	for i := range uint64(50) {
		burst = append(burst, WorkRequest{WRID: 10 + i, Verb: Write, Local: buf, RKey: own.RKey, Fence: i%7 == 0})
	}
	n, err := a.PostSend(burst)
	d.must(err)
	for i := range uint64(n) {
		d.want(a, OpWrite, 10+i, Success)
	}
	d.must(a.Close())
	// One without a listener.
	c, err := d.host[0].Dial(d.ctx, d.host[1].Addr(), QPConfig{})
	d.must(err)
	d.must(l.Close())
	<-c.Done()
	d.must(m.Close())
	for _, h := range d.host {
		d.must(h.Close())
	}
	kinds := map[byte]bool{}
	for i, w := range twins {
		if w.sent < 20 {
			t.Errorf("host %d sent %d frames", i, w.sent)
		}
		for k := range w.kinds {
			kinds[k] = true
		}
	}
	for k := byte(dialKind); k <= postedKind; k++ {
		if !kinds[k] {
			t.Errorf("no command of kind %d", k)
		}
	}
}

// What is cut short, too long, or of no kind is refused.
func TestBadCommands(t *testing.T) {
	cfg, err := Config{Interface: "h", Address: netip.MustParsePrefix("10.9.0.1/24"), Congestion: "none"}.complete()
	if err != nil {
		t.Fatal(err)
	}
	good := [][]byte{
		(&dial{conn: &agent.Conn{To: cfg.Address.Addr(), CC: "none", Tag: 3}}).Encode(nil),
		(&listen{listener: &Listener{}}).Encode(nil),
		unlisten{}.Encode(nil), (&take{offer: 1, tag: 2}).Encode(nil), refuse{300}.Encode(nil), hangup{1}.Encode(nil),
		(&register{size: 1 << 20, access: RemoteRead}).Encode(nil), (&grant{memory: 1 << 31, qpn: 5}).Encode(nil), (&deregister{key: 9}).Encode(nil), shutdown{}.Encode(nil),
		(&posted{tag: 1, posts: []post{{recv: true}, {}}}).Encode(nil),
	}
	for _, b := range good {
		c, err := decode(b, &cfg)
		if err != nil {
			t.Errorf("%x: %v", b, err)
			continue
		}
		if again := c.Encode(nil); !bytes.Equal(again, b) {
			t.Errorf("%x is %x when it was decoded", b, again)
		}
		for n := range b {
			if _, err := decode(b[:n], &cfg); err == nil {
				t.Errorf("%x: the first %d bytes are taken", b, n)
			}
		}
		if _, err := decode(append(slices.Clip(b), 0), &cfg); err == nil {
			t.Errorf("%x is taken with a byte more", b)
		}
	}
	for _, b := range [][]byte{{}, {0}, {postedKind + 1}, {hangupKind, 0}, {registerKind, 255, 1},
		binary.AppendUvarint([]byte{hangupKind}, maxQueuePairs+1), binary.AppendUvarint([]byte{registerKind, 1}, mostMemory+1)} {
		if _, err := decode(b, &cfg); err == nil {
			t.Errorf("%x is taken", b)
		}
	}
}
