package buffer

import "fmt"

// InputQueue is the buffer of one ingress port that separates all lossless classes by
// thresholds only, as in a combined input and output queued switch. It has no separate
// headroom: the space above a threshold serves as headroom. Class c is judged by its
// drain bytes, those of class c and of all higher classes (Zats et al., "DeTail",
// UCB/EECS-2012-33, section 4.2). That report prints the thresholds for 1 Gb/s and eight
// classes; they follow from the formulas here.
type InputQueue struct {
	Size    uint64 // bytes, all classes together
	Classes uint64 // number of lossless classes, n
	Link    Link   // rate and cable; only the sum of MaxFrame and Overhead matters
	// Batch is the number of bytes that a sender commits at once if it fills a queue
	// below it, such as the ring of a NIC: a pause frame waits behind that much, and that
	// much still leaves after a pause arrives. Less than a frame counts as a frame.
	Batch uint64
}

// Thresholds are the thresholds of an InputQueue, in drain bytes.
type Thresholds struct {
	Frame uint64 // F: the largest frame including its overhead on the link
	Hold  uint64 // H: the larger one of F and the batch
	Terms Budget // of the skid; Own and Peer are H

	// Skid is the bytes that arrive after the decision to pause, without the pause frame
	// itself: 2H + R(2d + t). It is also the lowest threshold at which a pause may end:
	// that much leaves before the first frame arrives again.
	Skid uint64
	// PauseMax is B/n - skid: the highest threshold if bytes arrived one by one. A class
	// that crosses it by a whole frame loses frames.
	PauseMax int64
	// FrameSafe is B/n - skid - F: the highest threshold at which nothing is lost, in any
	// order of arrivals.
	FrameSafe int64
	// Safe is FrameSafe minus the pause frame's own time on the link, which the report
	// leaves out. Configurations are checked against it.
	Safe int64

	Pause   uint64 // B/2n, halfway between Unpause and PauseMax, but at most Safe
	Unpause uint64 // the skid, but at most Pause
	// Peak is the most that the queue holds with Pause: n(Pause + F + skid).
	Peak uint64
	// Enough is the smallest Size at which Safe is not below the skid: from there on the
	// queue neither loses frames nor runs empty.
	Enough uint64
}

// Thresholds returns the thresholds of the queue. If no threshold is safe, the error
// names the size that would be sufficient.
func (q InputQueue) Thresholds() (Thresholds, error) {
	var t Thresholds
	switch {
	case q.Classes == 0 || q.Classes > 8:
		return t, fmt.Errorf("%d lossless classes are not from 1 to 8", q.Classes)
	case q.Size == 0 || q.Size > maxSize:
		return t, fmt.Errorf("a queue of %d B is not within 1 B and %d B", q.Size, uint64(maxSize))
	case q.Batch > maxSize:
		return t, fmt.Errorf("a batch of %d B is more than any queue holds, %d B", q.Batch, uint64(maxSize))
	case q.Link.Rate == 0 || q.Link.MaxFrame == 0:
		return t, fmt.Errorf("the rate of the link and its largest frame must be known")
	case q.Link.Delay < 0 || q.Link.Response < 0:
		return t, fmt.Errorf("delay %v and response %v of the link must not be negative", q.Link.Delay.Duration(), q.Link.Response.Duration())
	}
	b := Headroom(q.Link, 0)
	t.Frame = b.Own
	t.Hold = max(b.Own, q.Batch)
	b.Own, b.Peer, b.Trigger, b.Rounding = t.Hold, t.Hold, t.Frame, 0
	t.Terms = b
	t.Skid = b.Skid() - b.Control
	if t.Skid > maxSize {
		return t, fmt.Errorf("%d B arrive after a pause, more than any queue holds: shorten delay or response", t.Skid)
	}
	n, size, skid, full := int64(q.Classes), int64(q.Size), int64(t.Skid), int64(t.Frame)
	// Divided last, as in the report; fractions of a byte are dropped.
	t.PauseMax = (size - n*skid) / n
	t.FrameSafe = (size - n*(skid+full)) / n
	t.Safe = (size - n*(skid+full+pfcFrame)) / n
	t.Enough = uint64(n * (2*skid + full + pfcFrame))
	if t.Safe <= 0 {
		return t, fmt.Errorf("a queue of %d B is too small for %d lossless classes: %d B can arrive after a pause of each, and a frame before it: at least %d B, and %d B to use the whole link",
			q.Size, n, skid+pfcFrame, n*(skid+full+pfcFrame+1), t.Enough)
	}
	t.Pause = uint64(min(size/(2*n), t.Safe))
	t.Unpause = min(t.Skid, t.Pause)
	t.Peak = q.Classes * (t.Pause + t.Frame + t.Skid)
	return t, nil
}

// Check rejects thresholds with which frames could be lost or a pause would not end. The
// error has the safe ones.
func (q InputQueue) Check(pause, unpause uint64) error {
	t, err := q.Thresholds()
	switch {
	case err != nil:
		return err
	case pause > uint64(t.Safe):
		return fmt.Errorf("a pause at %d B is not safe: %d classes that reach it, each with the frame that crosses it and %d B that still arrive, need %d B of %d B: at most %d B, and %d B is usual",
			pause, q.Classes, t.Skid+pfcFrame, q.Classes*(pause+t.Frame+t.Skid+pfcFrame), q.Size, t.Safe, t.Pause)
	case unpause >= pause:
		return fmt.Errorf("a pause that begins at %d B cannot end at %d B: below the beginning, and not below %d B where the link is to be used in full", pause, unpause, t.Skid)
	}
	return nil
}
