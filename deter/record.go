package deter

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"

	"gswitch/frame"
	"gswitch/tcp"
)

// Header is what a replay has to know besides.
type Header struct {
	Build string // of the program
	Name  string // of the connection, such as "h1 49153 > h2 5001"
	Group string // of its flows
	// Alone says that the peer is not recorded: what arrived is in the record.
	Alone bool

	Config tcp.Config
	ISS    uint32
	Start  frame.Time
}

// Log is the record of one end.
type Log struct {
	Header
	Events []byte // compressed
	// Lost says from when on nothing was recorded, for want of room; 0: all was.
	Lost frame.Time
	// Packets is how many segments were sent and received.
	Packets uint64
}

// every is after how many segments sent the hash is noted.
const every = 1024

// Recorder records one end of a connection. It is the tap of tcp/stack, whose
// connections know whole microseconds.
type Recorder struct {
	head  Header
	limit int
	raw   []byte
	out   []byte
	zip   *Zipper
	begun bool

	g       guess
	now     frame.Time
	lost    frame.Time
	next    uint32 // number of the packet that is expected
	lastLen int
	last    tcp.Segment
	hash    uint32
	sent    uint64
	packets uint64
}

// Zipper compresses for recorders, which share one as long as one goroutine has them
// all: it takes a megabyte.
type Zipper struct {
	w   *flate.Writer
	buf bytes.Buffer
}

// NewRecorder returns a recorder that keeps up to limit bytes, and some 16 KiB that
// are not compressed yet.
func NewRecorder(h Header, limit int, z *Zipper) *Recorder {
	return &Recorder{head: h, limit: limit, zip: z, hash: 2166136261}
}

// chunk is how much is compressed at once.
const chunk = 16 << 10

// pack appends b compressed, with its length before it.
func (z *Zipper) pack(out, b []byte) []byte {
	z.buf.Reset()
	if z.w == nil {
		z.w, _ = flate.NewWriter(&z.buf, flate.DefaultCompression) // the level is one
	} else {
		z.w.Reset(&z.buf)
	}
	z.w.Write(b) //nolint:errcheck // a buffer takes all
	z.w.Close()  //nolint:errcheck // and all that is left
	return append(binary.AppendUvarint(out, uint64(z.buf.Len())), z.buf.Bytes()...)
}

func (r *Recorder) add(now frame.Time, k Kind, arg uint64) {
	if r.lost != 0 || !r.begun {
		return
	}
	r.raw = r.g.append(r.raw, entry{k, (now - r.now) / frame.Microsecond, arg})
	r.now = now
	if len(r.raw) >= chunk {
		r.squeeze(now)
	}
}

func (r *Recorder) squeeze(now frame.Time) {
	r.out = r.zip.pack(r.out, r.raw)
	r.raw = r.raw[:0]
	if len(r.out) > r.limit {
		r.lost = max(now, 1)
	}
}

func (r *Recorder) begin(now frame.Time, cfg *tcp.Config, iss uint32) {
	r.begun, r.now = true, now
	r.head.Config, r.head.ISS, r.head.Start = *cfg, iss, now
}

// Dial implements the tap of tcp/stack, as do the methods that follow.
func (r *Recorder) Dial(now frame.Time, cfg *tcp.Config, iss uint32) {
	r.begin(now, cfg, iss)
	r.add(now, Dial, 0)
}

// Accept implements the tap.
func (r *Recorder) Accept(now frame.Time, cfg *tcp.Config, iss uint32, syn *tcp.Segment, id uint16) {
	r.begin(now, cfg, iss)
	r.arrival(now, Accept, syn, id)
}

// Receive implements the tap.
func (r *Recorder) Receive(now frame.Time, s *tcp.Segment, id uint16) {
	r.arrival(now, Receive, s, id)
}

// arrival notes which packet arrived: the 16 bits of its identification mean the
// nearest number to the one that is expected.
func (r *Recorder) arrival(now frame.Time, k Kind, s *tcp.Segment, id uint16) {
	off := int16(id - uint16(r.next))
	r.add(now, k, zigzag(int64(off))<<1|uint64(bit(s.CE)))
	r.next += uint32(int32(off)) + 1
	r.lastLen = s.Len
	r.packets++
	if r.head.Alone && r.lost == 0 {
		r.raw = appendSegment(r.raw, s, &r.last)
		r.last = *s
		r.last.Data = nil
	}
}

// Advance implements the tap.
func (r *Recorder) Advance(now frame.Time) { r.add(now, Advance, 0) }

// Write implements the tap.
func (r *Recorder) Write(now frame.Time, n int) { r.add(now, Write, uint64(n)) }

// Read implements the tap.
func (r *Recorder) Read(now frame.Time, n int) {
	if n == r.lastLen {
		r.add(now, Read, 0)
	} else {
		r.add(now, Read, uint64(n)+1)
	}
}

// Close implements the tap.
func (r *Recorder) Close(now frame.Time) { r.add(now, Close, 0) }

// Next implements the tap.
func (r *Recorder) Next(now frame.Time, s *tcp.Segment) {
	if s == nil {
		r.add(now, Idle, 0)
		return
	}
	r.add(now, Send, 0)
	r.packets++
	r.hash = digest(r.hash, s)
	if r.sent++; r.sent%every == 0 {
		r.add(now, check, uint64(r.hash))
	}
}

// Log ends the record and returns it. An end that nothing happened to has none.
func (r *Recorder) Log() *Log {
	if !r.begun {
		return nil
	}
	if r.lost == 0 {
		r.add(r.now, check, uint64(r.hash))
		r.add(r.now, ended, 0)
	}
	r.squeeze(r.now)
	return &Log{Header: r.head, Events: r.out, Lost: r.lost, Packets: r.packets}
}

var magic = [8]byte{'g', 't', 'c', 'p', 'r', 'e', 'c', 1}

// Append appends the record as it stands in files: a magic number, the lengths of
// head and events, both, and a checksum (CRC-32C) over all before it.
func (l *Log) Append(b []byte) ([]byte, error) {
	head, err := json.Marshal(struct {
		Header
		Lost    frame.Time
		Packets uint64
	}{l.Header, l.Lost, l.Packets})
	if err != nil {
		return nil, err
	}
	at := len(b)
	b = append(b, magic[:]...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(head)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(l.Events)))
	b = append(append(b, head...), l.Events...)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b[at:], table)), nil
}

var table = crc32.MakeTable(crc32.Castagnoli)

// ReadLog takes a record off b.
func ReadLog(b []byte) (l *Log, rest []byte, err error) {
	if len(b) < 20 || [8]byte(b[:8]) != magic {
		return nil, nil, fmt.Errorf("%w: it does not begin as one of a connection of TCP", ErrRecord)
	}
	head, events := int(binary.BigEndian.Uint32(b[8:])), int(binary.BigEndian.Uint32(b[12:]))
	end := 16 + head + events
	if head > len(b) || events > len(b) || end+4 > len(b) {
		return nil, nil, fmt.Errorf("%w: %d bytes of %d are there", ErrRecord, len(b), end+4)
	}
	if crc32.Checksum(b[:end], table) != binary.BigEndian.Uint32(b[end:]) {
		return nil, nil, fmt.Errorf("%w: its checksum is wrong", ErrRecord)
	}
	var h struct {
		Header
		Lost    frame.Time
		Packets uint64
	}
	if err := json.Unmarshal(b[16:16+head], &h); err != nil {
		return nil, nil, fmt.Errorf("%w: %v", ErrRecord, err)
	}
	return &Log{h.Header, b[16+head : end], h.Lost, h.Packets}, b[end+4:], nil
}

// ReadLogs takes the records of a connection off b: of both ends, or of one that was
// made alone.
func ReadLogs(b []byte) (logs []*Log, rest []byte, err error) {
	l, rest, err := ReadLog(b)
	if err != nil || l.Alone {
		return []*Log{l}, rest, err
	}
	peer, rest, err := ReadLog(rest)
	return []*Log{l, peer}, rest, err
}

// most bounds what a record unpacks to.
const most = 1 << 30

func (l *Log) unpack() (out []byte, err error) {
	for b := l.Events; len(b) > 0; {
		n, k := binary.Uvarint(b)
		if k <= 0 || n > uint64(len(b)-k) {
			return nil, fmt.Errorf("%w: a part is longer than the whole", ErrRecord)
		}
		part, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(b[k:k+int(n)])), most))
		if err != nil {
			return nil, fmt.Errorf("%w: %v", ErrRecord, err)
		}
		if out = append(out, part...); len(out) > most {
			return nil, fmt.Errorf("%w: it is too large", ErrRecord)
		}
		b = b[k+int(n):]
	}
	return out, nil
}
