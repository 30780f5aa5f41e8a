package telemetry

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
)

// Report is what a node sends to collectors, as it travels: over a connection, in a
// message of a broker, in a file.
type Report struct {
	Kind string // the system that made it, such as lossradar, whose package reads Body
	Node uint16 // the switch, by its ID
	// Boot is another one each time that the exporter starts. Within it Sequence
	// counts the reports of the exporter from 1 without gaps: a collector knows by
	// both what it has already, and what it will never get.
	Boot, Sequence uint64
	Body           []byte
}

// The wire form of a report: magic 2 bytes, version, length of the kind, node 2,
// boot 8, sequence 8, length of the body 4, kind, body; the most significant byte
// first.
const (
	reportMagic   = 0x4752 // "GR"
	reportVersion = 1
	// ReportHeader is how long the header of a report is, in bytes.
	ReportHeader = 26
)

// MaxBody is how many bytes the body of a report may have.
const MaxBody = 64 << 20

// ErrReport is wrapped by what ParseReport returns for bytes that are no report.
var ErrReport = errors.New("not a report")

// ErrShort is returned by ParseReport where more bytes may make a report of these.
var ErrShort = errors.New("the report is cut off")

// Size is how many bytes the wire form of a report has.
func (r *Report) Size() int { return ReportHeader + len(r.Kind) + len(r.Body) }

// Append appends the wire form of a report to b.
func (r *Report) Append(b []byte) []byte {
	be := binary.BigEndian
	b = be.AppendUint16(b, reportMagic)
	b = append(b, reportVersion, uint8(len(r.Kind)))
	b = be.AppendUint16(b, r.Node)
	b = be.AppendUint64(b, r.Boot)
	b = be.AppendUint64(b, r.Sequence)
	b = be.AppendUint32(b, uint32(len(r.Body)))
	b = append(b, r.Kind...)
	return append(b, r.Body...)
}

// ParseReport reads the report at the beginning of b, and returns how many bytes it
// takes. Its body is a part of b.
func ParseReport(b []byte) (r Report, n int, err error) {
	be := binary.BigEndian
	if len(b) < ReportHeader {
		return r, 0, ErrShort
	}
	if be.Uint16(b) != reportMagic {
		return r, 0, fmt.Errorf("%w: it begins with %#04x", ErrReport, be.Uint16(b))
	}
	if b[2] != reportVersion {
		return r, 0, fmt.Errorf("%w: version %d, this program reads %d", ErrReport, b[2], reportVersion)
	}
	kind, body := int(b[3]), be.Uint32(b[22:])
	if body > MaxBody {
		return r, 0, fmt.Errorf("%w: %d bytes of body, at most %d are taken", ErrReport, body, MaxBody)
	}
	n = ReportHeader + kind + int(body)
	if len(b) < n {
		return r, 0, ErrShort
	}
	return Report{Node: be.Uint16(b[4:]), Boot: be.Uint64(b[6:]), Sequence: be.Uint64(b[14:]),
		Kind: string(b[ReportHeader : ReportHeader+kind]), Body: b[ReportHeader+kind : n]}, n, nil
}

// ErrLarge is returned by ReadReport for a report that it has left out.
var ErrLarge = errors.New("the report is too large")

// ReportSize is how many bytes the next report has, which ReadReport will take off a
// reader. It takes none. io.EOF means that the reader has ended between two reports.
func ReportSize(r *bufio.Reader) (int, error) {
	head, err := r.Peek(ReportHeader)
	if err != nil {
		if errors.Is(err, io.EOF) && len(head) > 0 {
			err = io.ErrUnexpectedEOF
		}
		return 0, err
	}
	// What is wrong with the header is found before its lengths are used.
	if _, _, err := ParseReport(head); err != nil && !errors.Is(err, ErrShort) {
		return 0, err
	}
	return ReportHeader + int(head[3]) + int(binary.BigEndian.Uint32(head[22:])), nil
}

// ReadReport reads the next report. Of one that has more bytes than most there is no
// body, and the error is ErrLarge; the next one can be read then. io.EOF means that
// the reader has ended between two reports.
func ReadReport(r *bufio.Reader, most int) (Report, error) {
	n, err := ReportSize(r)
	if err != nil {
		return Report{}, err
	}
	if n > most {
		head, err := r.Peek(ReportHeader)
		if err != nil {
			return Report{}, err
		}
		rep := Report{Node: binary.BigEndian.Uint16(head[4:]), Boot: binary.BigEndian.Uint64(head[6:]), Sequence: binary.BigEndian.Uint64(head[14:])}
		if _, err := r.Discard(n); err != nil {
			return rep, io.ErrUnexpectedEOF
		}
		return rep, fmt.Errorf("%w: %d bytes", ErrLarge, n)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return Report{}, err
	}
	rep, _, err := ParseReport(b)
	return rep, err
}

// Desk is where an exporter finds the outbox of a node that may get another one
// while it runs.
type Desk[T any] struct {
	now  atomic.Pointer[Outbox[T]]
	last *Outbox[T] // the exporter's
}

// Put sets the outbox; nil: there is none. The node's goroutine calls it.
func (d *Desk[T]) Put(o *Outbox[T]) { d.now.Store(o) }

// Outbox returns the outbox of now.
func (d *Desk[T]) Outbox() *Outbox[T] { return d.now.Load() }

// Take returns the oldest report that is ready and the outbox that it goes back to:
// those of an outbox that was replaced before those of its successor. The
// exporter's goroutine calls it.
func (d *Desk[T]) Take() (*T, *Outbox[T]) {
	if d.last != nil {
		if r := d.last.Take(); r != nil {
			return r, d.last
		}
	}
	if d.last = d.now.Load(); d.last == nil {
		return nil, nil
	}
	return d.last.Take(), d.last
}

// AppendOldest appends the wire form of the oldest report that is ready on a desk,
// and gives the report back to its outbox; false: there is none.
func AppendOldest[T any, P interface {
	*T
	Append(b []byte) []byte
	Reset()
}](d *Desk[T], b []byte) ([]byte, bool) {
	r, out := d.Take()
	if r == nil {
		return b, false
	}
	b = P(r).Append(b)
	P(r).Reset()
	out.Return(r)
	return b, true
}
