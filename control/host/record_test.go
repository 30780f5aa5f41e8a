package host

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"gswitch/frame"
	"gswitch/hostnic"
	"gswitch/hostnic/agent"
	inband "gswitch/int"
	"gswitch/replay"
	"gswitch/transport"
	"gswitch/wire"
)

// rig is two hosts on a bad cable, of which the first is recorded. They are not stepped at
// regular instants.
type rig struct {
	t     testing.TB
	now   frame.Time
	rng   *rand.Rand
	pool  [2]*frame.Pool
	a     [2]*agent.Agent
	node  [2]frame.Node
	rec   *replay.Recorder
	feed  *replay.Feed
	file  bytes.Buffer
	w     *replay.Writer
	loose int  // thousandths of frames that are lost, and as many that are corrupted
	short bool // of memory, now and then

	keep   *replay.Keeper // in place of the file
	header replay.Header  // of the host as it is
	steps  int
	images int
	// An image is taken every so many steps. saved is called after so many of them, just before
	// the next one.
	every   int
	saveAt  int
	saved   func()
	counted hostnic.Counts // then
}

const recordedDocument = `version: 1
hosts:
- {name: h%d, interface: v%d, mac: "02:00:00:00:00:0%d", address: 10.0.0.%d/24, rate: 10Gbps, base_rtt: 50us, burst: 20us, timeout: 400us, congestion: hpcc, pace_jitter: 0.1, serve: true, cnp: true}
`

func newRecordRig(t testing.TB, seed uint64) *rig {
	const chunks = 3000
	t.Helper()
	r := &rig{t: t, rng: rand.New(rand.NewPCG(seed, 1)), feed: replay.NewFeed(64, 2048)}
	for i := range r.a {
		arena, err := frame.NewArena(make([]byte, chunks*2048), 2048, frame.DefaultHeadroom)
		if err != nil {
			t.Fatal(err)
		}
		r.pool[i] = frame.NewPool(arena)
		doc := fmt.Sprintf(recordedDocument, i, i, i+1, i+1)
		h := &replay.Header{Kind: recordKind, Name: fmt.Sprintf("h%d", i), Document: doc, Chunk: 2048, Chunks: chunks, Headroom: frame.DefaultHeadroom, Secret: seed + uint64(i), Ports: []replay.Port{{Name: "v0"}}}
		m, err := Rebuild(h, r.pool[i])
		if err != nil {
			t.Fatal(err)
		}
		r.a[i] = m.(*Replayed).Agent
		r.node[i] = r.a[i]
		if i == 0 {
			r.header = *h
			if r.w, err = replay.NewWriter(&r.file, h); err != nil {
				t.Fatal(err)
			}
			if r.rec, err = replay.NewRecorder(0, r.a[0], r.pool[0], r.feed); err != nil {
				t.Fatal(err)
			}
			r.node[0] = r.rec
		}
	}
	return r
}

func (r *rig) command(i int, c agent.Change) {
	r.t.Helper()
	if s, ok := c.(*agent.StartTransfer); ok {
		if err := agent.Allocate(s); err != nil {
			r.t.Fatal(err)
		}
	}
	if i == 0 {
		r.rec.Command(r.now, r.a[0].Command(c))
	} else {
		r.a[1].Command(c).Do(r.now)
	}
}

// pass lets time go on in steps of any length, as a worker has them.
func (r *rig) pass(steps int) {
	var out, in [64]frame.Ref
	var others []frame.Ref
	for range steps {
		r.now += frame.Time(r.rng.IntN(4000))
		if r.short && r.rng.IntN(3) == 0 { // others have what there is, but for a few chunks
			for few := 1 + r.rng.IntN(4); r.pool[0].Available() > few; {
				f := r.pool[0].Alloc()
				r.pool[0].Reset(f)
				others = append(others, f)
			}
		}
		for i, n := range r.node {
			n.Advance(r.now)
			got := in[:0]
			for _, f := range out[:n.Transmit(r.now, 0, out[:1+r.rng.IntN(63)])] {
				b := bytes.Clone(r.pool[i].Bytes(f))
				r.pool[i].Free(f)
				if r.rng.IntN(1000) < r.loose {
					continue
				}
				if r.rng.IntN(1000) < r.loose {
					b[r.rng.IntN(len(b))] ^= 1 << r.rng.IntN(8)
				} else if len(b) > 40 && b[12] == 8 && b[13] == 0 && r.rng.IntN(20) == 0 { // a mark
					b[15] |= 3
					wire.IPv4(b[14:]).UpdateChecksum()
				}
				if f := r.pool[1-i].New(b); f != frame.Nil {
					got = append(got, f)
				}
			}
			if len(got) > 0 {
				r.node[1-i].Receive(r.now, 0, got)
			}
		}
		for _, f := range others {
			r.pool[0].Free(f)
		}
		others = others[:0]
		if r.steps++; r.keep != nil && r.steps%r.every == 0 {
			if r.images == r.saveAt {
				r.saved()
				r.counted = *r.a[0].NIC().Counts()
			}
			r.begin()
		}
		r.drain()
	}
}

// begin lets an epoch begin, with an image that is tried as a daemon does.
func (r *rig) begin() {
	r.t.Helper()
	image, err := r.a[0].AppendImage(nil, r.pool[0], replay.Kept, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	arena, err := frame.NewArena(make([]byte, r.header.Chunks*r.header.Chunk), r.header.Chunk, r.header.Headroom)
	if err != nil {
		r.t.Fatal(err)
	}
	m, err := Rebuild(&r.header, frame.NewPool(arena))
	if err == nil {
		err = m.(replay.Resumer).RestoreImage(image)
	}
	if err != nil {
		r.t.Fatalf("image %d: %v", r.images, err)
	}
	r.images++
	r.rec.Begin(r.now, &replay.Epoch{Header: r.header, Image: image})
}

func (r *rig) drain() {
	for s := r.feed.Next(); s != nil; s = r.feed.Next() {
		err := error(nil)
		if r.keep == nil {
			err = r.w.Write(s)
		} else if s.Epoch != nil || r.keep.From() != nil {
			err = r.keep.Add(s)
		}
		if err != nil {
			r.t.Fatal(err)
		}
		r.feed.Return(s)
	}
}

func (r *rig) transfer(to int, verb hostnic.Verb, service agent.Service, size uint64, count int, recovery *transport.Kind, cc string, mode inband.Mode) *agent.StartTransfer {
	return &agent.StartTransfer{Transfer: &agent.Transfer{To: r.a[to].NIC().Config().Addr, Service: service, Verb: verb, Size: size, Count: count, Depth: 3,
		CC: cc, Recovery: recovery, INT: mode, Class: 3}}
}

// exercise has the hosts do all that daemons make hosts do.
func (r *rig) exercise() {
	for i, n := range r.node {
		n.SetLink(r.now, 0, true)
		r.command(i, &agent.ServeRegion{Region: agent.NewRegion(100_000)})
	}
	r.pass(200)
	all := []struct {
		to int
		c  *agent.StartTransfer
	}{
		{1, r.transfer(1, hostnic.Write, agent.Memory, 90_000, 20, transport.IRN, "hpcc", inband.HPCC)},
		{0, r.transfer(0, hostnic.Read, agent.Memory, 90_000, 20, transport.IRN, "dcqcn", inband.None)},
		{0, r.transfer(0, hostnic.Write, agent.Memory, 70_000, 20, nil, "dctcp", inband.None)},
		{1, r.transfer(1, 0, agent.Messages, 50_000, 30, nil, "dcqcn", inband.None)},
		{0, r.transfer(0, 0, agent.Messages, 50_000, 30, transport.IRN, "hpcc", inband.HPCCGrow)},
		{0, r.transfer(0, 0, agent.Probe, 1000, 50, nil, "none", inband.INTMD)},
	}
	for _, x := range all {
		r.command(1-x.to, x.c)
		if x.c.Refused != nil {
			r.t.Fatal(x.c.Refused)
		}
		r.pass(600)
	}
	conf, err := alone(fmt.Appendf(nil, strings.Replace(recordedDocument, "10Gbps", "4Gbps", 1), 0, 0, 1, 1))
	if err != nil {
		r.t.Fatal(err)
	}
	r.command(0, &agent.Configure{Config: settings(conf, r.a[0].NIC().Config().MAC, 0), Document: document(conf)})
	r.header.Document = string(document(conf))
	r.pass(30_000)
	for range 10 { // whose Close, or the answer to it, was lost, asks again in a quarter of a second
		r.now += 250 * frame.Millisecond
		r.pass(200)
	}
	for _, x := range all {
		if t := x.c.Transfer; t.State != agent.Ended || t.Err != nil || t.Received.Corrupt != 0 {
			r.t.Errorf("to %v with %s: %v after %d messages: %v", t.To, t.CC, t.State, len(t.Samples), t.Err)
		}
	}
	r.command(0, agent.EndTransfer{Number: 2})
	r.pass(3000)
	r.command(0, agent.Shutdown{})
	r.pass(500)
	r.rec.End(r.now)
	r.drain()
}

func playHost(file []byte) (*replay.Player, error) {
	in, err := replay.NewReader(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	p, err := replay.NewPlayer(in, Rebuild)
	if err != nil {
		return nil, err
	}
	for {
		if _, err := p.Step(); err == io.EOF {
			return p, nil
		} else if err != nil {
			return p, err
		}
	}
}

// A host is replayed from its record: RDMA operations and messages both ways, by several
// algorithms and schemes of recovery, over a cable that loses, corrupts and marks, with a
// configuration that changes, with memory enough and with too little.
func TestHostsReplay(t *testing.T) {
	for _, short := range []bool{false, true} {
		for seed := range uint64(3) {
			t.Run(fmt.Sprintf("short %v, seed %d", short, seed), func(t *testing.T) {
				r := newRecordRig(t, seed)
				r.loose, r.short = 3, short
				r.exercise()
				if why := r.rec.Lost(); why != "" {
					t.Fatal(why)
				}
				p, err := playHost(r.file.Bytes())
				if err != nil {
					t.Fatal(err)
				}
				frames, sums := p.Sent()
				was, is := *r.a[0].NIC().Counts(), *p.Node.(*Replayed).NIC().Counts()
				if frames < 3000 || sums < 3 || !reflect.DeepEqual(was, is) {
					t.Errorf("%d frames, %d hashes; the host counted\n%+v\nits replay\n%+v", frames, sums, was, is)
				}
				if was.Drops[frame.BadICRC] == 0 || was.Retransmissions == 0 || short && p.Failed() == 0 {
					t.Errorf("%d corrupted packets, %d sent again, %d allocations failed", was.Drops[frame.BadICRC], was.Retransmissions, p.Failed())
				}
				t.Logf("%d frames came, %d left, %d bytes of record, %d drops by ICRC, %d sent again, %d failed", was.RxFrames, frames, r.file.Len(), was.Drops[frame.BadICRC], was.Retransmissions, p.Failed())
			})
		}
	}
}

// A host whose last inputs are kept is replayed from an image of it, in which transfers are
// under way: queue pairs of all schemes of recovery and algorithms, with frames that wait for
// others, and memory of which only the length is known.
func TestHostsReplayFromAnImage(t *testing.T) {
	for seed, c := range []struct{ every, after int }{{397, 2}, {397, 3}, {397, 4}, {397, 5}, {397, 6}, {397, 7}, {397, 8}, {397, 9}, {1400, 2}, {1500, 3}} {
		t.Run(fmt.Sprintf("after %d images, each after %d steps", c.after, c.every), func(t *testing.T) {
			r := newRecordRig(t, uint64(seed))
			r.loose, r.short, r.keep = 3, seed%2 == 0, replay.NewKeeper(64<<20)
			var file bytes.Buffer
			r.every, r.saveAt = c.every, c.after
			r.saved = func() {
				r.rec.Flush(r.now)
				r.drain()
				if err := r.keep.Save(&file, "a test"); err != nil {
					t.Fatal(err)
				}
			}
			r.exercise()
			p, err := playHost(file.Bytes())
			if saved := (replay.SavedError{}); !errors.As(err, &saved) {
				t.Fatal(err)
			}
			if is := *p.Node.(*Replayed).NIC().Counts(); !reflect.DeepEqual(r.counted, is) {
				t.Errorf("the host counted\n%+v\nits replay\n%+v", r.counted, is)
			}
			frames, sums := p.Sent()
			if frames < 20 || sums == 0 || r.images < 20 {
				t.Errorf("%d frames, %d hashes, %d images", frames, sums, r.images)
			}
		})
	}
}

// A byte of a record that is wrong is found: by a checksum, or as another run.
func TestHostsRecordDamaged(t *testing.T) {
	r := newRecordRig(t, 9)
	r.loose = 3
	r.exercise()
	file := r.file.Bytes()
	for i := 20; i < len(file); i += len(file) / 40 {
		bad := bytes.Clone(file)
		bad[i] ^= 4
		if _, err := playHost(bad); err == nil {
			t.Errorf("byte %d of %d is wrong, and nobody noticed", i, len(file))
		}
	}
}

// What it costs a host to be recorded, per frame that comes or leaves (DETER asks for the load
// of a core at 1 Gb/s): messages to a host that is not recorded.
func BenchmarkRecordedHost(b *testing.B) {
	for _, recorded := range []bool{false, true} {
		b.Run(fmt.Sprintf("recorded=%v", recorded), func(b *testing.B) {
			r := newRecordRig(b, 1)
			if !recorded {
				r.node[0] = r.a[0]
			}
			for i, n := range r.node {
				n.SetLink(r.now, 0, true)
				r.a[i].Command(&agent.ServeRegion{Region: agent.NewRegion(1000)}).Do(r.now)
			}
			c := r.transfer(1, 0, agent.Messages, 100_000, 1<<20, transport.IRN, "dctcp", inband.None)
			if err := agent.Allocate(c); err != nil {
				b.Fatal(err)
			}
			if r.a[0].Command(c).Do(r.now); c.Refused != nil {
				b.Fatal(c.Refused)
			}
			count := r.a[0].NIC().Counts()
			var out, in [64]frame.Ref
			run := func(frames uint64) {
				for end := count.RxFrames + count.TxFrames + frames; count.RxFrames+count.TxFrames < end; r.drain() {
					r.now += 20 * frame.Microsecond
					for i, n := range r.node {
						n.Advance(r.now)
						k := n.Transmit(r.now, 0, out[:])
						for j, f := range out[:k] {
							in[j] = r.pool[1-i].New(r.pool[i].Bytes(f))
							r.pool[i].Free(f)
						}
						if k > 0 {
							r.node[1-i].Receive(r.now, 0, in[:k])
						}
					}
				}
			}
			run(2000)
			b.ResetTimer()
			run(uint64(b.N))
		})
	}
}
