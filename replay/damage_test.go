package replay_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"runtime"
	"strings"
	"testing"

	"gswitch/frame"
	"gswitch/replay"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// small is a switch that bridges two ports.
const small = `version: 1
switches:
  - name: s
    mac: 02:aa:00:00:00:01
    seed: 5
    ports: [{name: a, interface: a}, {name: b, interface: b}, {name: c, interface: c}, {name: d, interface: d}, {name: e, interface: e}]
`

// bulk sends n frames of a flow through a switch, a vector a loop.
func (l *live) bulk(n int, make func(i int) []byte) {
	for port := range uint16(2) {
		l.rec.SetLink(l.now, port, true)
	}
	var out, v [64]frame.Ref
	for i := 0; i < n; {
		l.now += 20_000 + frame.Time(l.rng.IntN(3000))
		k := 0
		for ; k < len(v) && i < n; k++ {
			v[k] = l.pool.New(make(i))
			i++
		}
		l.rec.Receive(l.now, 0, v[:k])
		l.rec.Advance(l.now)
		for _, f := range out[:l.rec.Transmit(l.now, 1, out[:])] {
			l.pool.Free(f)
		}
		l.write()
	}
}

func tcp(i int) []byte {
	return wt.Frame(wt.Eth(wt.MAC(2), wt.MAC(1)), wt.IPv4("10.0.0.1", "10.0.0.2", wt.IPv4With(func(f *wire.IPv4Fields) { f.ID = uint16(i) })),
		wt.TCP(wire.TCPFields{SrcPort: 5000, DstPort: 80, Seq: uint32(i) * 1448}), wt.Zeros(1448))
}

// A record that was cut off anywhere opens, and replays up to its last whole
// segment; one with a wrong byte anywhere does not replay past it.
func TestDamagedRecords(t *testing.T) {
	l := newLive(t, small, 3000, 1)
	l.bulk(5000, tcp)
	for range 5 {
		l.rec.Flush(l.now)
		l.bulk(2000, tcp)
	}
	l.rec.End(l.now)
	l.write()
	file := l.file.Bytes()
	whole, err := play(file)
	if err != nil {
		t.Fatal(err)
	}
	all := whole.Steps()
	var cutAt []uint64
	for _, n := range []int{len(file) - 1, len(file) * 3 / 4, len(file) / 2} {
		p, err := play(file[:n])
		if !errors.Is(err, replay.ErrCut) || p == nil || p.Steps() == 0 || p.Steps() >= all {
			t.Errorf("cut at %d of %d: %v", n, len(file), err)
			continue
		}
		cutAt = append(cutAt, p.Steps())
	}
	if len(cutAt) == 3 && cutAt[0] == cutAt[2] {
		t.Errorf("wherever the record is cut, %d steps are left", cutAt[0])
	}
	for i := 0; i < len(file); i += 1 + i/20 {
		bad := bytes.Clone(file)
		bad[i] ^= 1 << (i % 8)
		if p, err := play(bad); err == nil {
			t.Errorf("byte %d of %d is wrong, and nobody noticed", i, len(file))
		} else if before, _ := play(file[:i]); p != nil && p.Steps() != before.Steps() {
			t.Errorf("byte %d of %d is wrong: %d steps replay, of %d before it: %v", i, len(file), p.Steps(), before.Steps(), err)
		}
	}
	for _, n := range []int{0, 3, 10, 20} {
		if _, err := play(file[:n]); err == nil {
			t.Errorf("%d bytes are taken for a record", n)
		}
	}
}

// A segment holds thousands of frames, however large chunks are.
func TestSegmentsHoldManyVectors(t *testing.T) {
	for _, chunk := range []int{2048, 4096, 1 << 15} {
		pool := frame.NewPool(frame.MustArena(256, chunk, frame.DefaultHeadroom))
		h := replay.Header{Kind: "switch", Name: "s", Document: small, Chunk: chunk, Chunks: 256, Headroom: frame.DefaultHeadroom}
		m, err := build(&h, pool)
		if err != nil {
			t.Fatal(err)
		}
		feed := replay.NewFeed(4, chunk)
		rec, err := replay.NewRecorder(0, m.(machine).Node, pool, feed)
		if err != nil {
			t.Fatal(err)
		}
		var v, out [64]frame.Ref
		now := frame.Time(0)
		for i := range 200 {
			now += 10 * frame.Microsecond
			for k := range v {
				v[k] = pool.New(tcp(64*i + k))
			}
			rec.Receive(now, 0, v[:])
			for _, f := range out[:rec.Transmit(now, 1, out[:])] {
				pool.Free(f)
			}
		}
		rec.End(now)
		segments := 0
		for feed.Next() != nil {
			segments++
		}
		if rec.Lost() != "" || segments != 1 {
			t.Errorf("chunks of %d bytes: 200 vectors take %d segments %s", chunk, segments, rec.Lost())
		}
	}
}

// liar passes on all but one frame to its node: what a replay must not hide.
type liar struct {
	machine
	pool *frame.Pool
	left int
}

func (n *liar) Receive(now frame.Time, port uint16, v []frame.Ref) {
	if n.left -= len(v); n.left <= 0 && n.left > -1<<30 {
		n.left = -1 << 30
		n.pool.Bytes(v[0])[20] ^= 1 // in the middle of its identification
		b := n.pool.Bytes(v[0])
		wire.IPv4(b[14:]).UpdateChecksum()
	}
	n.machine.Receive(now, port, v)
}

// hasty sends one frame a nanosecond early.
type hasty struct {
	machine
	pool *frame.Pool
	left int
}

func (n *hasty) Transmit(now frame.Time, port uint16, out []frame.Ref) int {
	k := n.machine.Transmit(now, port, out)
	if n.left -= k; n.left <= 0 && n.left > -1<<30 {
		n.left = -1 << 30
		n.pool.Meta(out[0]).Depart--
	}
	return k
}

// One bit of one frame in another way, and the replay stops within 1,024
// frames, and names the step.
func TestDivergenceIsFound(t *testing.T) {
	l := newLive(t, small, 3000, 1)
	l.bulk(10_000, tcp)
	l.rec.End(l.now)
	l.write()
	for what, wrap := range map[string]func(m machine, pool *frame.Pool) replay.Machine{
		"another one":   func(m machine, pool *frame.Pool) replay.Machine { return &liar{m, pool, 5000} },
		"sent too soon": func(m machine, pool *frame.Pool) replay.Machine { return &hasty{m, pool, 5000} },
	} {
		p, err := replay.NewPlayer(open(t, l.file.Bytes()), func(h *replay.Header, pool *frame.Pool) (replay.Machine, error) {
			m, err := build(h, pool)
			return wrap(m.(machine), pool), err
		})
		if err != nil {
			t.Fatal(err)
		}
		for err == nil {
			_, err = p.Step()
		}
		var d *replay.Diverged
		if !errors.As(err, &d) || d.Frame < 4992 || d.Frame > 5000+1024+64 || d.Step == 0 {
			t.Errorf("frame 5000 was %s: %v", what, err)
		}
	}
}

// A recorder without a reader reports it and stops; the switch goes on, and
// what was recorded replays up to there.
func TestLostRecord(t *testing.T) {
	l := newLive(t, small, 3000, 1)
	l.bulk(3000, tcp)
	var out, v [64]frame.Ref
	for i := 0; l.rec.Lost() == ""; i++ {
		l.now += 300 * frame.Millisecond // a segment each
		for k := range v {
			v[k] = l.pool.New(tcp(64*i + k))
		}
		l.rec.Receive(l.now, 0, v[:])
		for _, f := range out[:l.rec.Transmit(l.now, 1, out[:])] {
			l.pool.Free(f)
		}
		if i > 10 {
			t.Fatal("more segments were filled than there are")
		}
	}
	l.write()
	if err := l.w.Lost(l.feed.Lost()); err != nil {
		t.Fatal(err)
	}
	l.bulk(100, tcp) // what comes now is not recorded
	if sent := l.m.Counts(); sent.Programs == 0 || l.feed.Next() != nil {
		t.Error("something was recorded after the loss")
	}
	p, err := play(l.file.Bytes())
	if lost := (replay.LostError{}); !errors.As(err, &lost) || !strings.Contains(lost.Why, "not written as fast") {
		t.Errorf("the loss is reported as: %v", err)
	}
	if p == nil || p.Steps() < 50 {
		t.Error("what was recorded before the loss does not replay")
	}
}

// What a frame costs in a record: less than a byte in bulk, whatever it is of
// that a switch reads.
func TestSizeOfRecords(t *testing.T) {
	rng, be := frame.NewRand(1), binary.BigEndian
	// Acknowledgements that echo the telemetry of three hops: instants are even to a quarter of a
	// microsecond, queues move by up to 16 cells.
	var queues [3]uint64
	hop := func(i, k int) (ts, tx, q uint64) {
		queues[k] += rng.Uint64()&31 - 16
		return uint64(i)*1000 + rng.Uint64()&0xff, uint64(i)*64 + rng.Uint64()&7, queues[k]
	}
	echo := func(i int, telemetry []byte) []byte {
		return wt.Frame(wt.Eth(wt.MAC(2), wt.MAC(1)), wt.IPv4("10.0.0.1", "10.0.0.2", wt.IPv4With(func(f *wire.IPv4Fields) { f.ID = uint16(i) })),
			wt.UDP(50000, wire.RoCEv2Port), wt.BTH(wire.RCAcknowledge, 9, uint32(i)), wt.Payload(append(be.AppendUint32(nil, uint32(i)&0xffffff), telemetry...)), wt.Zeros(wire.ICRCLen))
	}
	ack := func(i int) []byte {
		b := make([]byte, wire.HPCCLen)
		be.PutUint16(b, 3<<12|0x123)
		for k := range queues {
			ts, tx, q := hop(i, k)
			be.PutUint64(b[wire.HPCCBase+8*k:], 3<<60|ts&0xffffff<<36|tx&0xfffff<<16|q&0xffff)
		}
		return echo(i, b)
	}
	md := func(i int) []byte {
		b := make([]byte, 16+24*3)
		b[0], b[1], b[6] = wire.INTTypeMD<<4|wire.INTNextPort<<2, byte(len(b)/4-1), 6
		for k := range queues {
			ts, tx, q := hop(i, k)
			h := b[16+24*k:]
			h[3], h[7] = byte(k), byte(k)
			be.PutUint32(h[8:], uint32(q)&0xffffff)
			be.PutUint64(h[12:], 1<<45+ts)
			be.PutUint32(h[20:], uint32(tx))
		}
		return echo(i, b)
	}
	flows := func(i int) []byte {
		b := tcp(i / 8)
		b[37] = byte(i % 8)
		return b
	}
	roce := func(i int) []byte {
		return wt.Frame(wt.Eth(wt.MAC(2), wt.MAC(1)), wt.IPv4("10.0.0.1", "10.0.0.2", wt.IPv4With(func(f *wire.IPv4Fields) { f.ID = uint16(i) })),
			wt.UDP(50000, wire.RoCEv2Port), wt.BTH(7, 9, uint32(i)), wt.Zeros(1024))
	}
	for name, c := range map[string]struct {
		make func(int) []byte
		most float64 // bytes a frame
	}{"tcp": {tcp, 1}, "roce": {roce, 0.6}, "eight flows": {flows, 1}, "acknowledgements": {ack, 8}, "acknowledgements with INT-MD": {md, 8}} {
		l := newLive(t, small, 3000, 1)
		const n = 64_000
		l.bulk(n, c.make)
		l.rec.End(l.now)
		l.write()
		if _, err := play(l.file.Bytes()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		got := float64(l.w.Stats().Bytes) / n
		t.Logf("%s: %.2f bytes a frame (%.2f before compression)", name, got, float64(l.w.Stats().Raw)/n)
		if got > c.most {
			t.Errorf("%s: %.2f bytes a frame, at most %.1f are wanted", name, got, c.most)
		}
	}
}

// No payload and no checksum over it stands in a record.
func TestPayloadIsNotKept(t *testing.T) {
	l := newLive(t, small, 3000, 1)
	const secret = "attack at dawn, bring the horses"
	l.bulk(200, func(i int) []byte {
		l4 := wt.TCP(wire.TCPFields{SrcPort: uint16(i), DstPort: 80})
		if i%2 == 0 {
			l4 = wt.UDP(uint16(i), 53)
		}
		return wt.Frame(wt.Eth(wt.MAC(2), wt.MAC(1)), wt.IPv4("10.0.0.1", "10.0.0.2"), l4, wt.Payload([]byte(fmt.Sprint(secret, i))))
	})
	l.rec.End(l.now)
	for s := l.feed.Next(); s != nil; s = l.feed.Next() {
		if bytes.Contains(replay.Entries(s), []byte(secret[:8])) {
			t.Error("the payload stands in the record")
		}
	}
}

// hollow is a record that begins with an image which is to have so many bytes, and of which the
// file has few.
func hollow(t testing.TB, size uint32) []byte {
	var file bytes.Buffer
	if _, err := replay.NewWriter(&file, &replay.Header{Kind: "switch", Document: small, Chunk: 2048, Chunks: 64, Headroom: frame.DefaultHeadroom}); err != nil {
		t.Fatal(err)
	}
	body := []byte("none")
	head := make([]byte, 52)
	copy(head, "GIMG")
	binary.BigEndian.PutUint32(head[4:], uint32(len(body)))
	binary.BigEndian.PutUint32(head[8:], size)
	castagnoli := crc32.MakeTable(crc32.Castagnoli)
	binary.BigEndian.PutUint32(head[12:], crc32.Update(crc32.Checksum(head, castagnoli), castagnoli, body))
	return append(append(file.Bytes(), head...), body...)
}

// A small file asks for little memory, whatever it says of its image.
func TestImageOfASmallFile(t *testing.T) {
	for size, want := range map[uint32]string{
		1 << 30:           "its image is to have 1073741824 bytes, and 4 of a file make 67109120 at most",
		64<<20 + 4*64 + 1: "its image is to have 67109121 bytes",
		64<<20 + 4*64:     "it cannot be decompressed",
		1<<30 + 1:         "it has no head",
	} {
		in, err := replay.NewReader(bytes.NewReader(hollow(t, size)))
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		p, err := replay.NewPlayer(in, build)
		if err == nil {
			_, err = p.Step()
		}
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; err == nil || !strings.Contains(err.Error(), want) || took > 256<<20 {
			t.Errorf("%d bytes: %v, with %d bytes of memory", size, err, took)
		}
	}
}

// An image of which nearly everything is zeros, as tables that are empty are, is written and read, though
// it becomes thousands of times smaller. The size is little more than what any file may ask for.
func TestImageOfZeros(t *testing.T) {
	image := make([]byte, 72<<20)
	for i := range 4 {
		image[len(image)-1-i<<24] = byte(i + 1)
	}
	var file bytes.Buffer
	w, err := replay.NewWriter(&file, &replay.Header{Kind: "switch", Document: small, Chunk: 2048, Chunks: 64, Headroom: frame.DefaultHeadroom})
	if err != nil {
		t.Fatal(err)
	}
	s := replay.NewSegment(nil)
	s.Epoch = &replay.Epoch{Image: image}
	if err := w.Write(s); err != nil {
		t.Fatal(err)
	}
	size := file.Len()
	in, err := replay.NewReader(&file)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := replay.ImageOf(in); err != nil || !bytes.Equal(got, image) || size > 3<<20 {
		t.Errorf("%v: %d bytes of %d, in a file of %d", err, len(got), len(image), size)
	}
}

// A record of a few hundred bytes that says it is of a terabyte of memory is refused
// before anything is taken for it.
func TestRecordsOfMuchMemory(t *testing.T) {
	for _, c := range []struct{ chunks, chunk int }{{1 << 24, 1 << 16}, {1 << 24, 2048}, {1 << 24, 1 << 9}, {1 << 40, 2048}, {math.MaxInt, math.MaxInt}, {1 << 25, 1}, {0, 2048}, {-1, 2048}, {64, 0}} {
		var file bytes.Buffer
		w, err := replay.NewWriter(&file, &replay.Header{Kind: "switch", Document: small, Chunk: c.chunk, Chunks: c.chunks, Headroom: frame.DefaultHeadroom})
		if err == nil {
			err = w.Write(replay.NewSegment(nil))
		}
		if err != nil {
			t.Fatal(err)
		}
		in, err := replay.NewReader(&file)
		if err == nil {
			_, err = replay.NewPlayer(in, build)
		}
		if err == nil || !strings.Contains(err.Error(), "chunks of") {
			t.Errorf("%d chunks of %d bytes: %v", c.chunks, c.chunk, err)
		}
	}
}

func FuzzPlayer(f *testing.F) {
	f.Add(hollow(f, 1<<30))
	for seed := range uint64(2) {
		l := newLive(f, everything, 256, seed)
		l.random(8, everything)
		f.Add(l.file.Bytes())
	}
	l := newLive(f, small, 64, 1)
	header := l.file.Len()
	entries := func(t testing.TB, b []byte) []byte {
		l.file.Truncate(header)
		if err := l.w.Write(replay.NewSegment(b)); err != nil {
			t.Fatal(err)
		}
		return l.file.Bytes()
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, file := range [][]byte{b, entries(t, b)} {
			in, err := replay.NewReader(bytes.NewReader(file))
			if err != nil || in.Header.Chunks > 4096 || in.Header.Document != small && in.Header.Document != everything {
				continue
			}
			p, err := replay.NewPlayer(in, build)
			for i := 0; err == nil && i < 1000; i++ {
				if i%2 == 0 { // what stands before a call is taken in by both
					_, err = p.Peek()
					continue
				}
				_, err = p.Step()
			}
		}
	})
}
