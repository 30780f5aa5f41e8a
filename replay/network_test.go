package replay_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"gswitch/frame"
	"gswitch/replay"
)

// talker is a node that sends frames, answers those that come, and reports that.
type talker struct {
	pool  *frame.Pool
	next  frame.Time
	gap   frame.Time
	count uint64
	queue []frame.Ref
	news  int // for the callback
	calls uint64
}

func (n *talker) say(b []byte) {
	r := n.pool.Alloc()
	if r == frame.Nil {
		return
	}
	m := n.pool.Reset(r)
	m.Len, m.Wire = uint16(len(b)), uint32(len(b))
	copy(n.pool.Bytes(r), b)
	n.queue = append(n.queue, r)
}

func (n *talker) Receive(now frame.Time, _ uint16, v []frame.Ref) {
	for _, r := range v {
		b := bytes.Clone(n.pool.Bytes(r))
		n.pool.Free(r)
		n.news++
		if b[14] == 0 { // a question
			b[14] = 1
			binary.BigEndian.PutUint64(b[32:], n.count+uint64(now)%7)
			n.say(b)
		}
	}
}

func (n *talker) Transmit(now frame.Time, _ uint16, out []frame.Ref) int {
	k := copy(out, n.queue)
	for _, r := range n.queue[:k] {
		n.pool.Meta(r).Depart = now
	}
	n.queue = n.queue[k:]
	return k
}

func (n *talker) Advance(now frame.Time) {
	for ; n.next <= now; n.next += n.gap {
		n.count++
		b := make([]byte, 60+n.count%900)
		b[12] = 0x88 // no protocol: all of it counts
		binary.BigEndian.PutUint64(b[16:], n.count)
		binary.BigEndian.PutUint64(b[24:], uint64(n.gap))
		n.say(b)
	}
}

func (n *talker) Wake(now frame.Time) frame.Time { return min(n.TimerWake(now), n.PortWake(now, 0)) }

func (n *talker) SetLink(_ frame.Time, _ uint16, up bool) {
	if !up {
		n.count += 1000
	}
}
func (n *talker) Touched([]uint16) int                { return 0 }
func (n *talker) TimerWake(now frame.Time) frame.Time { return max(now, n.next) }
func (n *talker) PortWake(now frame.Time, _ uint16) frame.Time {
	if len(n.queue) > 0 {
		return now
	}
	return frame.Never
}

// after takes the news, and changes something at another node.
func (n *talker) after(other *talker, poke func()) func(frame.Time) {
	return func(frame.Time) {
		if n.news > 0 {
			n.calls += uint64(n.news)
			other.gap = 900 + frame.Time(n.calls%300)
			n.news = 0
			poke()
		}
	}
}

// pairOf is two talkers.
func pairOf(pool *frame.Pool) [2]*talker {
	return [2]*talker{{pool: pool, gap: 1000, next: 10}, {pool: pool, gap: 1100, next: 500}}
}

func pool(t testing.TB, chunks int) *frame.Pool {
	a, err := frame.NewArena(make([]byte, chunks*2048), 2048, frame.DefaultHeadroom)
	if err != nil {
		t.Fatal(err)
	}
	return frame.NewPool(a)
}

// recordPair records two talkers on a link that does all that links do, stepped at any
// instants, with little memory.
func recordPair(t testing.TB, seed uint64, steps int, lose string) (file []byte, calls [2]uint64) {
	t.Helper()
	const chunks = 200
	p := pool(t, chunks)
	rng := rand.New(rand.NewPCG(seed, 2))
	feed := replay.NewFeed(256, 2048)
	rec, err := replay.NewNetworkRecorder(0, p, feed)
	if err != nil {
		t.Fatal(err)
	}
	n := pairOf(p)
	var nodes [2]frame.Stepper
	for i := range n {
		nodes[i] = rec.Add(n[i], n[i].after(n[1-i], func() { rec.Poke(1 - i) }))
	}
	rec.Connect(0, 0, 1, 0)
	var out bytes.Buffer
	w, err := replay.NewWriter(&out, &replay.Header{Kind: "run", Name: "pair", Chunk: 2048, Chunks: chunks, Headroom: frame.DefaultHeadroom})
	if err != nil {
		t.Fatal(err)
	}
	var link [2][][]byte
	var buf [64]frame.Ref
	now := frame.Time(0)
	for k := range steps {
		now += frame.Time(rng.IntN(700))
		if lose != "" && k == steps/2 {
			rec.Lose(lose)
		}
		if k%97 == 50 {
			rec.Agenda(now, func(now frame.Time) {
				n[0].next = max(n[0].next, now) + 3
				rec.Poke(0)
				if k%2 == 0 {
					nodes[1].SetLink(now, 0, k%4 == 0)
				}
			})
		}
		var held []frame.Ref
		for k%50 > 40 && p.Available() > rng.IntN(6) {
			r := p.Alloc()
			p.Reset(r)
			held = append(held, r)
		}
		for i, s := range nodes {
			if v := link[1-i]; len(v) > 0 && rng.IntN(3) > 0 {
				in := buf[:0]
				for _, b := range v[:min(len(v), 1+rng.IntN(5))] {
					if r := p.New(b); r != frame.Nil {
						in = append(in, r)
					}
					link[1-i] = link[1-i][1:]
				}
				if len(in) > 0 {
					s.Receive(now, 0, in)
				}
			}
			s.Advance(now)
			for _, r := range buf[:s.Transmit(now, 0, buf[:1+rng.IntN(8)])] {
				b := bytes.Clone(p.Bytes(r))
				p.Free(r)
				switch rng.IntN(40) {
				case 0: // lost
				case 1:
					b[20] ^= 8
					link[i] = append(link[i], b)
				case 2:
					link[i] = append(link[i], b, b)
				case 3:
					at := max(0, len(link[i])-3)
					link[i] = append(link[i][:at:at], append([][]byte{b}, link[i][at:]...)...)
				default:
					link[i] = append(link[i], b)
				}
			}
		}
		for _, r := range held {
			p.Free(r)
		}
		for s := feed.Next(); s != nil; s = feed.Next() {
			if err := w.Write(s); err != nil {
				t.Fatal(err)
			}
			feed.Return(s)
		}
	}
	rec.End(now)
	for s := feed.Next(); s != nil; s = feed.Next() {
		if err := w.Write(s); err != nil {
			t.Fatal(err)
		}
	}
	if why := feed.Lost(); why != "" {
		if err := w.Lost(why); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes(), [2]uint64{n[0].calls, n[1].calls}
}

// playPair replays two talkers; change may make one that is another.
func playPair(file []byte, change func(n [2]*talker)) (p *replay.NetworkPlayer, n [2]*talker, err error) {
	in, err := replay.NewReader(bytes.NewReader(file))
	if err != nil {
		return nil, n, err
	}
	if in.Header.Chunks > 4096 {
		return nil, n, errors.New("too many")
	}
	if p, err = replay.NewNetworkPlayer(in); err != nil {
		return nil, n, err
	}
	n = pairOf(p.Pool())
	for i := range n {
		p.Add(n[i], n[i].after(n[1-i], func() {}))
	}
	p.Connect(0, 0, 1, 0)
	p.Agenda = func(now frame.Time) bool {
		n[0].next = max(n[0].next, now) + 3
		return true
	}
	if change != nil {
		change(n)
	}
	return p, n, p.Run(frame.Never)
}

// A network is replayed from the order of its calls and of the frames on its links, which
// lose, damage, double and reorder them.
func TestNetworksReplay(t *testing.T) {
	for seed := range uint64(5) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			file, calls := recordPair(t, seed, 20_000, "")
			p, n, err := playPair(file, nil)
			if err != io.EOF || !p.Ended() {
				t.Fatal(err)
			}
			frames, sums := p.Sent()
			if frames < 5000 || sums < 5 || calls[0] < 2000 || calls != [2]uint64{n[0].calls, n[1].calls} {
				t.Errorf("%d frames, %d hashes; %v came, and %d, %d in the replay", frames, sums, calls, n[0].calls, n[1].calls)
			}
			if perFrame := float64(len(file)) / float64(frames); perFrame > 30 {
				t.Errorf("%.1f bytes a frame", perFrame)
			}
		})
	}
}

// Another network than the one that was recorded is found, within as many frames as lie
// between two hashes, and a record that is not whole says so.
func TestNetworksDiverge(t *testing.T) {
	file, _ := recordPair(t, 3, 20_000, "")
	for what, change := range map[string]func(n [2]*talker){
		"another pace":    func(n [2]*talker) { n[1].gap++ },
		"another counter": func(n [2]*talker) { n[0].count = 1 },
		"a late start":    func(n [2]*talker) { n[1].next += 300 },
	} {
		var d *replay.Diverged
		if p, _, err := playPair(file, change); !errors.As(err, &d) {
			t.Errorf("%s: %v", what, err)
		} else if frames, _ := p.Sent(); frames > 1200 {
			t.Errorf("%s: found after %d frames", what, frames)
		}
	}
	lost, _ := recordPair(t, 3, 20_000, "enough")
	why := replay.LostError{}
	if p, _, err := playPair(lost, nil); !errors.As(err, &why) || why.Why != "enough" {
		t.Errorf("%v", err)
	} else if frames, sums := p.Sent(); frames < 1000 || sums == 0 || p.Ended() {
		t.Errorf("%d frames, %d hashes", frames, sums)
	}
}

func FuzzNetworkPlayer(f *testing.F) {
	var head bytes.Buffer
	w, err := replay.NewWriter(&head, &replay.Header{Kind: "run", Chunk: 2048, Chunks: 64, Headroom: frame.DefaultHeadroom})
	if err != nil {
		f.Fatal(err)
	}
	header := head.Len()
	file, _ := recordPair(f, 1, 200, "")
	f.Add(file)
	f.Add([]byte{0x0c, 0x03, 1, 0x80})
	f.Add([]byte{0x0c, 0x01, 50, 0x02, 0x04, 64, 1, 0x1c, 0x03, 1, 0x80, 0x09})
	f.Fuzz(func(t *testing.T, b []byte) {
		head.Truncate(header)
		if err := w.Write(replay.NewSegment(b)); err != nil {
			t.Fatal(err)
		}
		for _, file := range [][]byte{b, head.Bytes()} {
			_, _, _ = playPair(file, nil)
		}
	})
}

// talkerCommand changes a talker: its gap, or, with none, when it sends next.
type talkerCommand struct {
	n   *talker
	gap frame.Time
}

func (c talkerCommand) Do(now frame.Time) {
	if c.gap != 0 {
		c.n.gap = c.gap
	} else {
		c.n.next = max(c.n.next, now) + 3
	}
}

func (c talkerCommand) Encode(b []byte) []byte { return binary.AppendUvarint(b, uint64(c.gap)) }

// lone is a talker that is replayed without its network.
type lone struct{ *talker }

func (n lone) Do(now frame.Time, b []byte) error {
	gap, _ := binary.Uvarint(b)
	talkerCommand{n.talker, frame.Time(gap)}.Do(now)
	return nil
}

// A node of a network is recorded while that is replayed, and replays without it: what
// the agenda and the other node's callback change are commands to it, which come between an
// Advance that the network's record leaves out and the call with which it is made up for.
func TestNodeOfANetworkReplays(t *testing.T) {
	for seed := range uint64(5) {
		file, _ := recordPair(t, seed, 20_000, "")
		in, err := replay.NewReader(bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		p, err := replay.NewNetworkPlayer(in)
		if err != nil {
			t.Fatal(err)
		}
		n := pairOf(p.Pool())
		feed := replay.NewFeed(8, in.Header.Chunk)
		var rec *replay.Recorder
		p.Add(n[0], n[0].after(n[1], func() {}))
		p.Add(n[1], func(now frame.Time) {
			if n[1].news > 0 {
				n[1].calls += uint64(n[1].news)
				n[1].news = 0
				rec.Command(now, talkerCommand{n[0], 900 + frame.Time(n[1].calls%300)})
			}
		})
		p.Connect(0, 0, 1, 0)
		p.Agenda = func(now frame.Time) bool {
			rec.Command(now, talkerCommand{n: n[0]})
			return true
		}
		if rec, err = p.Record(0, feed); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		w, err := replay.NewWriter(&out, &in.Header)
		if err != nil {
			t.Fatal(err)
		}
		drain := func() {
			for s := feed.Next(); s != nil; s = feed.Next() {
				if err := w.Write(s); err != nil {
					t.Error(err)
				}
				feed.Return(s)
			}
		}
		p.Stepped = func(frame.Time, int) error { drain(); return nil }
		if err := p.Run(frame.Never); err != io.EOF {
			t.Fatal(err)
		}
		rec.End(p.Now())
		drain()
		if rec.Lost() != "" {
			t.Fatalf("seed %d: %s", seed, rec.Lost())
		}

		again, err := replay.NewReader(&out)
		if err != nil {
			t.Fatal(err)
		}
		alone, err := replay.NewPlayer(again, func(_ *replay.Header, pool *frame.Pool) (replay.Machine, error) {
			return lone{pairOf(pool)[0]}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for err == nil {
			_, err = alone.Step()
		}
		if frames, sums := alone.Sent(); err != io.EOF || frames != rec.Sent() || sums < 5 {
			t.Errorf("seed %d: %v; %d of %d frames, %d hashes", seed, err, frames, rec.Sent(), sums)
		}
	}
}
