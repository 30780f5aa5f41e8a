package stack

import (
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"gswitch/frame"
	"gswitch/tcp"
	"gswitch/wire"
)

// The table does what a map does, whatever is added and dropped.
func TestTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x table
		model := map[uint64]uint32{}
		for i, k := range rapid.SliceOfN(rapid.Uint64Range(1, 40), 1, 400).Draw(t, "keys") {
			k *= 0x0100000001000193 // so that homes collide and wrap
			if _, there := model[k]; there {
				x.drop(k)
				delete(model, k)
			} else {
				x.put(k, uint32(i))
				model[k] = uint32(i)
			}
			if x.n != len(model) {
				t.Fatalf("%d keys, want %d", x.n, len(model))
			}
			for k, v := range model {
				if got, ok := x.find(k); !ok || got != v {
					t.Fatalf("key %x is %d, %v; want %d", k, got, ok, v)
				}
			}
		}
	})
}

// The heap gives what is due in order, whatever is set and dropped.
func TestTimers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x timers
		for range 12 {
			x.ends = append(x.ends, &end{due: frame.Never, place: -1})
		}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			slot := rapid.Uint32Range(0, 11).Draw(t, "slot")
			if rapid.IntRange(0, 4).Draw(t, "drop") == 0 {
				x.drop(slot)
				x.ends[slot].due = frame.Never
			} else {
				x.set(slot, frame.Time(rapid.IntRange(0, 20).Draw(t, "at")))
			}
			least := frame.Never
			for _, e := range x.ends {
				least = min(least, e.due)
			}
			if x.next() != least {
				t.Fatalf("next is %v, want %v", x.next(), least)
			}
		}
	})
}

// two are two hosts with a link that loses every n-th frame.
type two struct {
	t        testing.TB
	stacks   [2]*Stack
	pool     *frame.Pool
	now      frame.Time
	lose     int
	sent     int
	way      []flying
	ends     [2]uint32
	reported [2][]Completion
}

type flying struct {
	at frame.Time
	to int
	r  frame.Ref
}

var (
	addrs = [2]netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")}
	macs  = [2]wire.MAC{{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}}
)

func newTwo(t testing.TB, virtual bool, delay, jitter frame.Time, taps [2]Tap, rate uint64) *two {
	a, err := frame.NewArena(make([]byte, 4096*2048), 2048, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := frame.NewPool(a)
	x := &two{t: t, pool: p}
	cfg := tcp.Default()
	cfg.Lengths, cfg.Nagle = true, false
	for i := range x.stacks {
		if x.stacks[i], err = New(Config{Name: "h", Addr: addrs[i], MAC: macs[i], Virtual: virtual, Delay: delay, Jitter: jitter, Seed: uint64(i)}, p); err != nil {
			t.Fatal(err)
		}
	}
	o := [2]Options{}
	for i := range o {
		o[i] = Options{TCP: cfg, Remote: addrs[1-i], RemoteMAC: macs[1-i], LocalPort: uint16(40000 + i), RemotePort: uint16(40001 - i), ISS: uint32(7 * i), Tap: taps[i], ReadRate: rate * uint64(i)}
	}
	if x.ends[1], err = x.stacks[1].Listen(0, &o[1]); err != nil {
		t.Fatal(err)
	}
	if x.ends[0], err = x.stacks[0].Dial(0, &o[0]); err != nil {
		t.Fatal(err)
	}
	return x
}

// run goes on until nothing happens any more.
func (x *two) run(until frame.Time) {
	parser := wire.NewParser(wire.NewHasher(1, false))
	for steps := 0; ; steps++ {
		if steps > 1_000_000 {
			x.t.Fatal("does not end")
		}
		for i, s := range x.stacks {
			for s.Ready() != 0 {
				r := s.Next(x.now, 0xff)
				if r == frame.Nil {
					continue
				}
				if x.sent++; x.lose > 0 && x.sent%x.lose == 0 {
					x.pool.Free(r)
					continue
				}
				x.way = append(x.way, flying{x.now + 50*frame.Microsecond, 1 - i, r})
			}
			var buf [8]Completion
			for k := s.TakeCompletions(buf[:]); k > 0; k = s.TakeCompletions(buf[:]) {
				x.reported[i] = append(x.reported[i], buf[:k]...)
			}
		}
		next := min(x.stacks[0].Due(), x.stacks[1].Due())
		if len(x.way) > 0 {
			next = min(next, x.way[0].at)
		}
		if next > until {
			x.now = until
			return
		}
		x.now = max(x.now, next)
		for len(x.way) > 0 && x.way[0].at <= x.now {
			f := x.way[0]
			x.way = x.way[1:]
			parser.Parse(x.pool.Arena, []frame.Ref{f.r})
			x.stacks[f.to].Receive(x.now, f.r)
		}
		for _, s := range x.stacks {
			if s.Due() <= x.now {
				s.Advance(x.now)
			}
		}
	}
}

// Messages arrive and are reported at both ends, in order and once, over a link that
// loses, with and without what a host takes for a segment; and no frame is kept.
func TestMessages(t *testing.T) {
	for _, c := range []struct {
		name          string
		virtual       bool
		delay, jitter frame.Time
		lose          int
		rate          uint64
	}{
		{"virtual", true, 0, 0, 0, 0},
		{"real frames", false, 0, 0, 0, 0},
		{"losses", false, 0, 0, 23, 0},
		{"slow host", true, 20 * frame.Microsecond, 5 * frame.Microsecond, 31, 0},
		{"slow reader", true, 0, 0, 0, 50_000_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newTwo(t, c.virtual, c.delay, c.jitter, [2]Tap{}, c.rate)
			free := x.pool.Available()
			x.lose = c.lose
			sizes := []uint64{1, 1448, 100_000, 3, 700_000}
			for i, n := range sizes {
				x.stacks[1].Expect(x.ends[1], n)
				if err := x.stacks[0].Send(0, x.ends[0], n, uint64(100+i)); err != nil {
					t.Fatal(err)
				}
			}
			x.run(60 * frame.Second)
			if len(x.reported[0]) != len(sizes) || len(x.reported[1]) != len(sizes) {
				t.Fatalf("%d messages were acknowledged and %d arrived of %d", len(x.reported[0]), len(x.reported[1]), len(sizes))
			}
			for i, d := range x.reported[0] {
				if d.Op != Sent || d.ID != uint64(100+i) || d.Bytes != sizes[i] || x.reported[1][i].Op != Arrived {
					t.Errorf("message %d: %+v, %+v", i, d, x.reported[1][i])
				}
			}
			if zero := x.stacks[0].Counts().Stats.ZeroWindows; (zero > 0) != (c.rate > 0) {
				t.Errorf("the window was closed %d times", zero)
			}
			for i := range x.stacks {
				x.stacks[i].Close(x.now, x.ends[i])
			}
			x.run(200 * frame.Second)
			for i, s := range x.stacks {
				if s.Conn(x.ends[i]) != nil || s.table.n != 0 || s.Ready() != 0 || s.Due() != frame.Never {
					t.Errorf("stack %d still has something", i)
				}
			}
			if x.pool.Available() != free {
				t.Errorf("%d frames were kept", free-x.pool.Available())
			}
		})
	}
}

// A connection whose peer is gone ends, and says so once.
func TestPeerGone(t *testing.T) {
	x := newTwo(t, true, 0, 0, [2]Tap{}, 0)
	x.run(frame.Second)
	x.lose = 1
	if err := x.stacks[0].Send(x.now, x.ends[0], 1000, 1); err != nil {
		t.Fatal(err)
	}
	x.run(10_000 * frame.Second)
	if len(x.reported[0]) != 1 || x.reported[0][0].Op != Failed || x.reported[0][0].Err == nil {
		t.Fatalf("reported %+v", x.reported[0])
	}
}

// Whatever arrives, a stack takes it, and no frame is lost.
func FuzzReceive(f *testing.F) {
	seg := tcp.Segment{Flags: tcp.SYN, Window: 1000, Options: tcp.Options{MSS: 1460}}
	good := seg.AppendPacket([]byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0}, tcp.Flow{Src: [4]byte{10, 0, 0, 1}, Dst: [4]byte{10, 0, 0, 2}, SrcPort: 40000, DstPort: 40001}, 1)
	f.Add(good, true)
	f.Add(good, false)
	f.Add(good[:40], true)
	f.Fuzz(func(t *testing.T, b []byte, virtual bool) {
		x := newTwo(t, virtual, 0, 0, [2]Tap{}, 0)
		free := x.pool.Available()
		for range 2 {
			r := x.pool.New(b)
			if r == frame.Nil {
				t.Skip()
			}
			wire.NewParser(wire.NewHasher(1, false)).Parse(x.pool.Arena, []frame.Ref{r})
			x.stacks[1].Receive(x.now, r)
		}
		if x.pool.Available() != free {
			t.Fatalf("%d frames were kept", free-x.pool.Available())
		}
	})
}
