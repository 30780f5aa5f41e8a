package replay

import (
	"fmt"
	"io"

	"gswitch/frame"
)

// Machine is a node that a Player steps, with the commands of its kind.
type Machine interface {
	frame.Node

	// Do carries out a command, as frame.Command encodes it.
	Do(now frame.Time, command []byte) error
}

// Resumer is a Machine that an image can make what it was.
type Resumer interface {
	RestoreImage(b []byte) error
}

// Build makes the node of a record, which allocates from pool.
type Build func(h *Header, pool *frame.Pool) (Machine, error)

// maxPort is the largest number that a port of any node has.
const maxPort = 255

// Kind says what a call was.
type Kind uint8

const (
	Advance Kind = iota
	Receive
	Transmit
	SetLink
	Command
	End // of the record
)

// Event is a call that was replayed.
type Event struct {
	Kind   Kind
	At     frame.Time
	Step   uint64 // number of the call, from 1
	Port   uint16
	Up     bool        // SetLink
	Frames []frame.Ref // Transmit: what the node sent; until the next Step
}

// Player makes the node of a record anew and gives it what was recorded.
type Player struct {
	Header *Header
	Node   Machine
	Arena  *frame.Arena

	// Seen, if set, is called with the frames of a Receive before the node gets
	// them.
	Seen func(now frame.Time, port uint16, v []frame.Ref)

	// Left, if set, is called with the frames that the node sends.
	Left func(now frame.Time, port uint16, v []frame.Ref)

	// Dropped, if set before the first Step, is called with the frames that
	// the node drops. They are freed when it returns.
	Dropped func(now frame.Time, v []frame.Ref)

	// Keep, if set before the first Step of a player that is Free, is asked of each
	// input whether the node gets it. Allocations fail then as they did, where that
	// input is kept.
	Keep func(in *Input) bool

	in     *Reader
	pool   *frame.Pool
	tap    dropTap
	dec    decoder
	sent   sent
	seg    reader
	now    frame.Time // of the last call
	next   frame.Time // of the one that follows, as far as it was read
	wrong  error      // what was found before that
	step   uint64
	before uint64 // frames sent before this epoch
	out    []frame.Ref

	stamps    []stamp // of the next vector
	nextStamp int     // the first of them that is not given
	v         []frame.Ref
	sums      uint64 // hashes of frames that were compared

	failed uint64
	free   *free
	inputs [InputKinds]uint64 // that were asked for

	verdicts *frame.Verdicts // nil: the node checks no payload
}

// Diverged is the error of a replay that is not what was recorded.
type Diverged struct {
	Step  uint64
	At    frame.Time
	Frame uint64 // frames sent before
	How   string
}

func (d *Diverged) Error() string {
	return fmt.Sprintf("the replay is not what was recorded, at step %d, %v, within the last %d frames before frame %d that was sent: %s",
		d.Step, d.At.Duration(), hashEvery, d.Frame, d.How)
}

// NewPlayer builds the node of a record.
func NewPlayer(in *Reader, build Build) (*Player, error) {
	h := &in.Header
	pool, err := h.pool()
	if err != nil {
		return nil, err
	}
	p := &Player{Header: h, Arena: pool.Arena, in: in, pool: pool}
	if p.Node, err = build(h, p.pool); err != nil {
		return nil, err
	}
	if j, ok := p.Node.(judge); ok {
		p.verdicts = j.Verdicts()
	}
	return p, p.resume()
}

// maxMemory is how much memory for frames a replay takes: a record is as
// trustworthy as its source. Only what the node uses of it becomes resident.
const maxMemory = 4 << 30

// pool returns memory for frames, as the recorded node had it.
func (h *Header) pool() (*frame.Pool, error) {
	if h.Chunks <= 0 || h.Chunks > 1<<24 || h.Chunk <= 0 || h.Chunk > 1<<16 || h.Chunks > maxMemory/h.Chunk {
		return nil, fmt.Errorf("the record is of %d chunks of %d bytes: memory of %d GiB at most is replayed", h.Chunks, h.Chunk, maxMemory>>30)
	}
	arena, err := frame.NewArena(make([]byte, h.Chunks*h.Chunk), h.Chunk, h.Headroom)
	if err != nil {
		return nil, err
	}
	return frame.NewPool(arena), nil
}

// resume makes the node what it was when the record began, if that was not the
// beginning of the node.
func (p *Player) resume() error {
	if p.fill() != nil || p.in.image == nil {
		return nil // Step says what is wrong with the first segment
	}
	m, ok := p.Node.(Resumer)
	if !ok {
		return fmt.Errorf("a record of a %s begins with an image, which cannot be restored", p.Header.Kind)
	}
	if err := m.RestoreImage(p.in.image); err != nil {
		return err
	}
	p.in.image = p.in.image[:0:0]
	p.now, p.next = p.Header.Start, p.Header.Start
	return nil
}

// Now returns the instant of the last call.
func (p *Player) Now() frame.Time { return p.now }

// Steps returns how many calls were replayed.
func (p *Player) Steps() uint64 { return p.step }

// Sent returns how many frames the node sent, and how many hashes of them were compared.
func (p *Player) Sent() (frames, sums uint64) { return p.before + p.sent.frames, p.sums }

// Failed returns how many allocations of the node failed, as they did when it
// was recorded.
func (p *Player) Failed() uint64 { return p.failed }

// Peek returns the instant of the next call. Its error is that of the Step
// which would follow.
func (p *Player) Peek() (frame.Time, error) {
	err := p.ahead()
	return p.next, err
}

// ahead takes in what stands before the next call: when it comes, the stamps of its frames and
// the hash of what was sent before it. What was found wrong there stays wrong.
func (p *Player) ahead() error {
	if p.wrong == nil {
		p.wrong = p.takeIn()
	}
	return p.wrong
}

func (p *Player) takeIn() error {
	for {
		if err := p.fill(); err != nil {
			return err
		}
		var err error
		switch p.seg.b[0] & 15 {
		case timeTag:
			p.seg.byte()
			later := frame.Time(p.seg.uvarint(1 << 62))
			if later > p.in.last-p.next { // a sum could overflow
				return p.damaged()
			}
			p.next += later
		case stampTag:
			if p.Node == nil {
				return p.damaged() // networks have none, and no epochs
			}
			p.seg.byte()
			p.readStamps()
		case hashTag:
			p.seg.byte()
			err = p.compare()
		case epochTag:
			if p.Node == nil {
				return p.damaged()
			}
			p.seg.byte()
			at := frame.Time(p.seg.uvarint(1 << 62))
			if at < p.next || at > p.in.last {
				return p.damaged()
			}
			p.now, p.next, p.step = at, at, p.seg.uvarint(1<<62)
			p.before += p.sent.frames
			p.dec, p.sent = decoder{rows: p.dec.rows}, sent{}
		default:
			return nil
		}
		if p.seg.bad {
			return p.damaged()
		}
		if err != nil {
			return err
		}
	}
}

// fill reads the next segment if there is nothing left of this one.
func (p *Player) fill() error {
	if len(p.seg.b) > 0 {
		return nil
	}
	b, err := p.in.next()
	if err != nil {
		return err
	}
	p.seg, p.dec.rows = reader{b: b}, &p.in.rows
	if len(b) == 0 {
		return p.damaged()
	}
	return nil
}

func (p *Player) damaged() error {
	return fmt.Errorf("the record is damaged behind step %d, %v: its entries make no sense", p.step, p.now.Duration())
}

// Step replays the next call. Behind the last one of a record that was ended it
// returns an Event of kind End and io.EOF. An error of type *Diverged says that
// the replay is another run than the one that was recorded.
func (p *Player) Step() (Event, error) {
	for _, r := range p.out {
		p.pool.Free(r)
	}
	p.out = p.out[:0]
	if err := p.ahead(); err != nil {
		return Event{At: p.now, Step: p.step}, err
	}
	if p.free != nil && p.next > p.now {
		p.pace(p.next)
	}
	p.now = p.next
	tag := p.seg.byte()
	small := uint64(tag >> 4)
	if tag&15 == endTag {
		return Event{Kind: End, At: p.now, Step: p.step}, io.EOF
	}
	if small == escape {
		small = p.seg.uvarint(maxPort)
	}
	p.step++
	e, err := p.call(tag&15, small)
	if err == nil && p.seg.bad {
		err = p.damaged()
	}
	e.At, e.Step = p.now, p.step
	return e, err
}

// compare compares the hash of what was sent with the one that was recorded.
func (p *Player) compare() error {
	sum, frames := p.seg.uint32(), p.seg.uvarint(1<<62)
	if p.seg.bad {
		return p.damaged()
	}
	if frames > 0 {
		p.sums++
	}
	if p.free != nil {
		return nil
	}
	if frames != p.sent.frames {
		return p.diverged(fmt.Sprintf("%d frames were sent, it was %d", p.sent.frames, frames))
	}
	if sum != p.sent.sum() {
		return p.diverged("other frames were sent, or at other instants")
	}
	return nil
}

func (p *Player) diverged(how string) error {
	return &Diverged{p.step, p.now, p.before + p.sent.frames, how}
}

func (p *Player) call(tag byte, small uint64) (Event, error) {
	switch tag {
	case advanceTag:
		return Event{Kind: Advance}, p.failing(func() { p.Node.Advance(p.now) })
	case receiveTag:
		return p.receive(uint16(small))
	case sendTag:
		return p.send(uint16(small))
	case linkTag:
		e := Event{Kind: SetLink, Port: uint16(p.seg.uvarint(maxPort)), Up: small == 1}
		if !p.given(Input{Kind: LinkInput, Port: e.Port, Up: e.Up}) {
			return e, p.failing(func() {})
		}
		return e, p.failing(func() { p.Node.SetLink(p.now, e.Port, e.Up) })
	case commandTag:
		b := p.seg.take(int(p.seg.uvarint(maxSegment)))
		var refused error
		if !p.given(Input{Kind: CommandInput, Command: b}) {
			return Event{Kind: Command}, p.failing(func() {})
		}
		if err := p.failing(func() { refused = p.Node.Do(p.now, b) }); err != nil {
			return Event{Kind: Command}, err
		}
		if refused != nil && p.Keep == nil { // one may need another, which is not kept
			return Event{Kind: Command}, p.diverged("a command was refused: " + refused.Error())
		}
		return Event{Kind: Command}, nil
	}
	return Event{}, p.damaged()
}

// stamp is when a frame of the next vector came by the device's clock.
type stamp struct {
	place int
	at    frame.Time
}

func (p *Player) readStamps() {
	p.stamps, p.nextStamp = p.stamps[:0], 0
	for range p.seg.uvarint(1 << 16) {
		if p.seg.bad {
			return
		}
		place := int(p.seg.uvarint(1 << 16))
		p.stamps = append(p.stamps, stamp{place, p.next + frame.Time(p.seg.varint())})
	}
}

func (p *Player) receive(port uint16) (Event, error) {
	e := Event{Kind: Receive, Port: port}
	n := int(p.seg.uvarint(1 << 16))
	p.v = p.v[:0]
	for i := range n {
		r, err := p.dec.frame(&p.seg, p.pool)
		if err != nil {
			for _, r := range p.v {
				p.pool.Free(r)
			}
			return e, fmt.Errorf("step %d, %v: %w", p.step, p.now.Duration(), err)
		}
		if next := p.nextStamp; next < len(p.stamps) && p.stamps[next].place == i {
			p.pool.Meta(r).Stamp = p.stamps[next].at
			p.nextStamp++
		}
		if !p.givenFrame(r, port) {
			p.pool.Free(r)
			continue
		}
		p.v = append(p.v, r)
	}
	p.stamps = p.stamps[:0]
	if len(p.v) == 0 && n > 0 {
		return e, p.failing(func() {})
	}
	if p.Seen != nil {
		p.Seen(p.now, port, p.v)
	}
	return e, p.failing(func() { p.Node.Receive(p.now, port, p.v) })
}

func (p *Player) send(port uint16) (Event, error) {
	room, want := int(p.seg.uvarint(1<<16)), int(p.seg.uvarint(1<<16))
	for len(p.v) < room {
		p.v = append(p.v, frame.Nil)
	}
	e := Event{Kind: Transmit, Port: port}
	err := p.failing(func() {
		k := p.Node.Transmit(p.now, port, p.v[:room])
		p.out = append(p.out, p.v[:k]...)
	})
	p.left(port)
	if e.Frames = p.out; err == nil && len(p.out) != want && p.free == nil {
		err = p.diverged(fmt.Sprintf("port %d sent %d frames, it was %d", port, len(p.out), want))
	}
	return e, err
}

// left takes note of the frames in out.
func (p *Player) left(port uint16) {
	for _, r := range p.out {
		p.sent.add(p.Arena, r, port)
	}
	if p.Left != nil && len(p.out) > 0 {
		p.Left(p.now, port, p.out)
	}
}

// dropTap is a node that can list what it drops (dataplane.DropTap).
type dropTap interface {
	TapDrops(buf []frame.Ref)
	TakeDrops() []frame.Ref
}

// mostDrops is how many dropped frames of one call are listed.
const mostDrops = 4096

// drops reports what the node dropped.
func (p *Player) drops() {
	if p.tap == nil {
		var ok bool
		if p.tap, ok = p.Node.(dropTap); !ok {
			p.Dropped = nil
			return
		}
		p.tap.TapDrops(make([]frame.Ref, 0, mostDrops))
		return
	}
	v := p.tap.TakeDrops()
	if len(v) > 0 {
		p.Dropped(p.now, v)
	}
	for _, r := range v {
		p.pool.Free(r)
	}
}

// judge has those checks of payload fail in the next call that failed when it was
// recorded.
func (p *Player) judge() error {
	var bad []uint64
	if len(p.seg.b) > 0 && p.seg.b[0] == failTag {
		p.seg.byte()
		for n := p.seg.uvarint(missRuns); n > 0; n-- {
			last := uint64(0)
			if len(bad) > 0 {
				last = bad[len(bad)-1]
			} else if p.verdicts != nil {
				last = p.verdicts.Asked()
			}
			bad = append(bad, last+p.seg.uvarint(1<<40))
		}
		if p.seg.bad || p.verdicts == nil {
			return p.damaged()
		}
		if !p.given(Input{Kind: CheckInput, Count: uint64(len(bad))}) {
			bad = nil
		}
	}
	if p.verdicts != nil {
		p.verdicts.Script(bad)
	}
	return nil
}

// failing makes a call, in which those allocations fail that failed when it was
// recorded.
func (p *Player) failing(call func()) error {
	if p.seg.bad {
		return p.damaged()
	}
	var script []frame.Misses
	want := uint64(0) // failures
	if len(p.seg.b) > 0 && p.seg.b[0] == missTag {
		p.seg.byte()
		end := uint64(0)
		for n := p.seg.uvarint(missRuns); n > 0; n-- {
			m := frame.Misses{First: p.seg.uvarint(1 << 40), N: p.seg.uvarint(1 << 40)}
			if m.First <= end || m.N == 0 {
				return p.damaged()
			}
			end, want = m.First+m.N-1, want+m.N
			m.First += p.pool.Asked()
			script = append(script, m)
		}
		if p.seg.bad {
			return p.damaged()
		}
		if p.free == nil || p.Keep != nil && p.given(Input{Kind: MissInput, Count: want}) {
			p.pool.FailAt(script)
		}
	}
	if err := p.judge(); err != nil {
		return err
	}
	if p.Dropped != nil && p.tap == nil {
		p.drops()
	}
	before := p.pool.Failed()
	call()
	p.pool.FailAt(nil)
	if p.Dropped != nil {
		p.drops()
	}
	p.failed += want
	if failed := p.pool.Failed() - before; failed != want && p.free == nil {
		return p.diverged(fmt.Sprintf("%d allocations failed, it was %d", failed, want))
	}
	return nil
}
