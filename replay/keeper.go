package replay

import (
	"fmt"
	"io"
	"slices"
)

// Keeper keeps the last part of a recording in memory: two epochs, of which each is
// at most half of what it may hold. The older one is discarded when a third begins.
type Keeper struct {
	limit  uint64 // bytes
	epochs []*kept
	stats  WriterStats
}

// kept is an epoch that is kept.
type kept struct {
	w      *Writer
	pieces [][]byte // what it wrote: the header, the image, the segments
	size   uint64
	from   Header
}

// Write implements io.Writer.
func (k *kept) Write(b []byte) (int, error) {
	k.pieces, k.size = append(k.pieces, slices.Clone(b)), k.size+uint64(len(b))
	return len(b), nil
}

// NewKeeper returns a keeper of so many bytes, compressed.
func NewKeeper(limit uint64) *Keeper { return &Keeper{limit: limit} }

// Add takes a segment. The first one must begin an epoch.
func (k *Keeper) Add(s *Segment) error {
	if s.Epoch != nil {
		if err := k.begin(s.Epoch); err != nil {
			return err
		}
	}
	if len(k.epochs) == 0 {
		return fmt.Errorf("a recording of which the last part is kept does not begin with an image")
	}
	e := k.epochs[len(k.epochs)-1]
	if e.size > k.limit {
		return fmt.Errorf("%d bytes have been kept since the last image of the node, and it was to be half of %d", e.size, k.limit)
	}
	k.stats.Raw += uint64(len(s.b))
	k.stats.Segments++
	k.stats.Steps, k.stats.Last = s.End, s.Last
	if err := e.w.Write(s); err != nil || s.Epoch == nil || 4*e.size <= k.limit {
		return err
	}
	return fmt.Errorf("an image of the node takes %d bytes: to keep what it was given last, %d are needed, and %d are allowed", e.size, 4*e.size, k.limit)
}

func (k *Keeper) begin(e *Epoch) error {
	x := &kept{from: e.Header}
	var err error
	if x.w, err = NewWriter(x, &e.Header); err != nil {
		return err
	}
	if len(k.epochs) == 2 {
		k.epochs = k.epochs[1:]
	}
	k.epochs = append(k.epochs, x)
	return nil
}

// Due reports whether it is time for the next epoch.
func (k *Keeper) Due() bool {
	return len(k.epochs) > 0 && k.epochs[len(k.epochs)-1].size+segmentSize/2 >= k.limit/2
}

// Save writes what is kept as a record, with the reason why it is saved. The
// recording goes on.
func (k *Keeper) Save(w io.Writer, why string) error {
	if len(k.epochs) == 0 {
		return fmt.Errorf("nothing is kept yet")
	}
	for i, e := range k.epochs {
		pieces := e.pieces
		if i > 0 {
			pieces = pieces[2:] // the header and the image: the epoch before leads to it
		}
		for _, b := range pieces {
			if _, err := w.Write(b); err != nil {
				return err
			}
		}
	}
	last := &Writer{w: w, stats: WriterStats{Steps: k.stats.Steps, Last: k.stats.Last}}
	return last.ending(saveMark, why)
}

// Stats returns what was taken in so far, and how many bytes are kept.
func (k *Keeper) Stats() WriterStats {
	s := k.stats
	for _, e := range k.epochs {
		s.Bytes += e.size
	}
	return s
}

// From returns the header of the record that Save would write, nil if there is none.
func (k *Keeper) From() *Header {
	if len(k.epochs) == 0 {
		return nil
	}
	return &k.epochs[0].from
}
