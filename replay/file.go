package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"github.com/klauspost/compress/zstd"

	"gswitch/frame"
)

// A file:
//
//	"GREC2\n"  length uint32  CRC32C uint32  header (JSON)
//	segments:  "GSEG"  compressed uint32  bytes uint32  CRC32C uint32
//	           first, last int64  step, end uint64  rows uint32  the entries, by zstd,
//	           and behind them the rows of telemetry (telemetry.go), as zstd frames of their own
//	if the record begins with a node that had been at work, before them:
//	           "GIMG", the same, an image of it, padded if it is of zeros for the most part (padImage)
//	at the end of a recording that was lost, a segment without entries:
//	           "LOST"  length uint32  0  CRC32C uint32  zeros  why
//	or of the last that was kept of one that went on:
//	           "SAVE"  the same, why it was saved
//
// Numbers are big-endian. The checksum of a segment is over its head, the
// checksum zero, and what follows compressed.

const (
	magic       = "GREC2\n"
	segmentMark = "GSEG"
	imageMark   = "GIMG"
	lostMark    = "LOST"
	saveMark    = "SAVE"
	headLen     = 52
	rowsAt      = 48
	maxHeader   = 1 << 30
	maxImage    = 1 << 30 // see mostImage
	// maxSegment is how many bytes of entries a segment has at most. A recorder ends one behind some
	// 400 KiB, and has a command of a whole configuration in it nevertheless.
	maxSegment = 64 << 20
)

// imageRatio is to how many bytes one of an image in a file makes at most, beyond maxSegment.
const imageRatio = 64

// mostImage returns how many bytes an image may have that takes packed bytes in the file:
// a small crafted file must not cause a large allocation.
func mostImage(packed int) int { return min(maxImage, maxSegment+imageRatio*packed) }

// padImage appends to an image that begins at from in b, and has raw bytes, what makes it so long that
// mostImage allows them: tables that are mostly empty are zeros, which become a thousand times fewer.
// It is a skippable frame of zstd (RFC 8878, 3.1.2).
func padImage(b []byte, from, raw int) []byte {
	n := (raw-maxSegment+imageRatio-1)/imageRatio - (len(b) - from)
	if n <= 0 {
		return b
	}
	n = max(n-skippableHead, 0)
	b = le.AppendUint32(le.AppendUint32(b, skippableMagic), uint32(n))
	return append(b, make([]byte, n)...)
}

const (
	skippableMagic = 0x184d2a50
	skippableHead  = 8 // bytes
)

// Header says what a record is of: all that it takes to make the node anew.
type Header struct {
	Build     string     `json:"build"`    // version of the program
	Go        string     `json:"go"`       // of the compiler
	Kind      string     `json:"kind"`     // of node: "switch"
	Name      string     `json:"name"`     // of the node
	Document  string     `json:"document"` // from which it was built
	Ports     []Port     `json:"ports"`    // numbers of its ports
	Chunk     int        `json:"chunk"`    // bytes
	Chunks    int        `json:"chunks"`
	Headroom  int        `json:"headroom"`
	Secret    uint64     `json:"secret"`       // of the tables that frames fill
	Start     frame.Time `json:"start"`        // instant of the node's clock at which it begins
	Epoch     int64      `json:"epoch_ns"`     // wall clock at instant zero, nanoseconds since 1970
	Monotonic uint64     `json:"monotonic_ns"` // clock of the machine at instant zero: that of several daemons
	Clock     *Clock     `json:"clock,omitempty"`
}

// Clock is synchronised time as the node had it when the record began; nil: it had none.
type Clock struct {
	Zero int64  `json:"zero_ns"` // it at instant zero, nanoseconds since 1970
	Eps  int64  `json:"eps_ns"`  // its uncertainty
	Root uint64 `json:"root"`    // identity of the root
}

// Port is the number of a port by its name.
type Port struct {
	Name   string `json:"name"`
	Number int    `json:"number"`
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Writer writes a record.
type Writer struct {
	w     io.Writer
	zstd  *zstd.Encoder
	b     []byte
	stats WriterStats

	predict predictor
	rows    []byte // spread
}

// WriterStats says what a Writer wrote.
type WriterStats struct {
	Segments uint64
	Raw      uint64 // bytes of entries
	Bytes    uint64 // of the file
	Steps    uint64 // calls
	Last     frame.Time
}

// NewWriter writes the header of a record to w.
func NewWriter(w io.Writer, h *Header) (*Writer, error) {
	text, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false),
		zstd.WithAllLitEntropyCompression(true)) // of telemetry no piece comes twice, and yet some bytes are more frequent
	if err != nil {
		return nil, err
	}
	b := be.AppendUint32([]byte(magic), uint32(len(text)))
	b = append(be.AppendUint32(b, crc32.Checksum(text, castagnoli)), text...)
	x := &Writer{w: w, zstd: enc}
	return x, x.write(b)
}

func (w *Writer) write(b []byte) error {
	n, err := w.w.Write(b)
	w.stats.Bytes += uint64(n)
	return err
}

// Write appends a segment. If the first one begins an epoch, the image comes before
// it.
func (w *Writer) Write(s *Segment) error {
	if s.Epoch != nil && w.stats.Segments == 0 {
		if err := w.image(s.Epoch.Image); err != nil {
			return err
		}
	}
	w.stats.Segments++
	rows, n := w.predict.spread(w.rows[:0], s.rows)
	w.rows = rows
	if n := len(s.b) + len(rows); n > maxSegment {
		return fmt.Errorf("a command of some %d bytes, and records have commands of %d at most", n, maxSegment)
	}
	w.stats.Raw += uint64(len(s.b) + len(rows))
	w.stats.Steps, w.stats.Last = s.End, s.Last
	b := w.zstd.EncodeAll(s.b, w.head(segmentMark, len(s.b)+len(rows), s))
	be.PutUint32(b[rowsAt:], uint32(n))
	if n > 0 {
		for i := range alone {
			b = w.zstd.EncodeAll(rows[i*n:(i+1)*n], b)
		}
		b = w.zstd.EncodeAll(rows[alone*n:], b)
	}
	return w.seal(b)
}

// image writes the image of the node with which a record begins, behind the header.
func (w *Writer) image(b []byte) error {
	packed := w.zstd.EncodeAll(b, w.head(imageMark, len(b), &Segment{}))
	if n := max(len(b), len(packed)-headLen); n > maxImage {
		return fmt.Errorf("the image of the node has %d bytes, and records take %d at most", n, maxImage)
	}
	return w.seal(padImage(packed, headLen, len(b)))
}

// Lost appends that what follows is missing, and why: a record is exact up to
// there.
func (w *Writer) Lost(why string) error { return w.ending(lostMark, why) }

func (w *Writer) ending(mark, why string) error {
	return w.seal(append(w.head(mark, 0, &Segment{First: w.stats.Last, Last: w.stats.Last, Step: w.stats.Steps, End: w.stats.Steps}), why...))
}

func (w *Writer) head(mark string, raw int, s *Segment) []byte {
	b := be.AppendUint32(append(w.b[:0], mark...), 0)
	b = be.AppendUint32(be.AppendUint32(b, uint32(raw)), 0)
	b = be.AppendUint64(be.AppendUint64(b, uint64(s.First)), uint64(s.Last))
	return be.AppendUint32(be.AppendUint64(be.AppendUint64(b, s.Step), s.End), 0)
}

func (w *Writer) seal(b []byte) error {
	w.b = b
	be.PutUint32(b[4:], uint32(len(b)-headLen))
	be.PutUint32(b[12:], crc32.Checksum(b, castagnoli))
	return w.write(b)
}

// Stats returns what was written so far.
func (w *Writer) Stats() WriterStats { return w.stats }

// Reader reads a record.
type Reader struct {
	Header Header

	r     io.Reader
	zstd  *zstd.Decoder
	image []byte // with which the record begins; nil: with a node as it is built
	begun bool   // there was an image or a segment
	ended error  // what next returned: nothing is read behind what cannot be
	seg   []byte
	rows  spreadRows // of the segment
	step  uint64
	last  frame.Time // of the segment that next returned
}

// ErrCut is returned behind the last whole segment of a record that was cut
// off: the process that wrote it was killed, or the disk was full.
var ErrCut = errors.New("the record is cut off here: it was not ended")

// LostError is returned where a recorder could not go on.
type LostError struct{ Why string }

func (e LostError) Error() string { return "the record ends here: " + e.Why }

// SavedError is returned at the end of a record that was saved while the recording
// went on.
type SavedError struct{ Why string }

func (e SavedError) Error() string { return "saved here: " + e.Why }

// Ended reports whether an error of a replay is that the record has no more: nil, that it
// was ended, is cut off, was lost or saved there.
func Ended(err error) bool {
	lost, saved := LostError{}, SavedError{}
	return err == nil || errors.Is(err, io.EOF) || errors.Is(err, ErrCut) || errors.As(err, &lost) || errors.As(err, &saved)
}

// NewReader reads the header of a record.
func NewReader(r io.Reader) (*Reader, error) {
	head := make([]byte, len(magic)+8)
	if _, err := io.ReadFull(r, head); err != nil || string(head[:len(magic)]) != magic {
		return nil, errors.New("this is no record: it does not begin as one")
	}
	n := be.Uint32(head[len(magic):])
	if n > maxHeader {
		return nil, fmt.Errorf("the header of the record has %d bytes, %d are possible", n, maxHeader)
	}
	text, err := io.ReadAll(io.LimitReader(r, int64(n)))
	if err != nil || len(text) != int(n) {
		return nil, errors.New("the header of the record is cut off")
	}
	if crc32.Checksum(text, castagnoli) != be.Uint32(head[len(magic)+4:]) {
		return nil, errors.New("the header of the record is damaged: its checksum is wrong")
	}
	x := &Reader{r: r}
	if err := json.Unmarshal(text, &x.Header); err != nil {
		return nil, fmt.Errorf("the header of the record: %w", err)
	}
	x.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxImage), zstd.WithDecodeAllCapLimit(true))
	return x, err
}

// next returns the entries of the next segment: io.EOF never, since a record
// that was ended says so in its entries.
func (r *Reader) next() (b []byte, err error) {
	if r.ended == nil {
		b, r.ended = r.segment()
	}
	return b, r.ended
}

func (r *Reader) segment() ([]byte, error) {
	head, mark, err := r.block()
	if err != nil {
		return nil, err
	}
	if mark == imageMark {
		if r.begun {
			return nil, r.damaged("there is an image that is not at the beginning")
		}
		r.image, r.seg, r.begun = r.seg, nil, true
		if head, mark, err = r.block(); err != nil {
			return nil, err
		}
		if mark == imageMark {
			return nil, r.damaged("there are two images")
		}
	}
	r.begun = true
	r.step, r.last = be.Uint64(head[40:]), frame.Time(be.Uint64(head[24:]))
	n := len(r.seg) - rowBytes*int(be.Uint32(head[rowsAt:]))
	if n < 0 {
		return nil, r.damaged("it has fewer rows of telemetry than it says")
	}
	r.rows = spreadRows{b: r.seg[n:], n: (len(r.seg) - n) / rowBytes}
	return r.seg[:n], nil
}

// block reads a segment or an image to r.seg, and returns its head and its mark.
func (r *Reader) block() (head [headLen]byte, mark string, err error) {
	if _, err := io.ReadFull(r.r, head[:]); err != nil {
		return head, "", ErrCut
	}
	mark, packed, raw := string(head[:4]), be.Uint32(head[4:]), be.Uint32(head[8:])
	most := uint32(maxSegment)
	if mark == imageMark {
		most = maxImage
	}
	if !slices.Contains([]string{segmentMark, imageMark, lostMark, saveMark}, mark) || packed > most || raw > most {
		return head, "", r.damaged("it has no head")
	}
	body, err := io.ReadAll(io.LimitReader(r.r, int64(packed)))
	if err != nil || len(body) != int(packed) {
		return head, "", ErrCut
	}
	sum := be.Uint32(head[12:])
	be.PutUint32(head[12:], 0)
	if crc32.Update(crc32.Checksum(head[:], castagnoli), castagnoli, body) != sum {
		return head, "", r.damaged("its checksum is wrong")
	}
	switch mark {
	case lostMark:
		return head, "", LostError{string(body)}
	case saveMark:
		return head, "", SavedError{string(body)}
	}
	if limit := mostImage(len(body)); mark == imageMark && int(raw) > limit {
		return head, "", r.damaged(fmt.Sprintf("its image is to have %d bytes, and %d of a file make %d at most", raw, len(body), limit))
	}
	if r.seg, err = r.zstd.DecodeAll(body, slices.Grow(r.seg[:0], int(raw))); err != nil || len(r.seg) != int(raw) {
		return head, "", r.damaged("it cannot be decompressed")
	}
	return head, mark, nil
}

func (r *Reader) damaged(how string) error {
	return fmt.Errorf("the record is damaged behind step %d: %s", r.step, how)
}
