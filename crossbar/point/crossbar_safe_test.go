package point_test

import (
	"testing"

	"pgregory.net/rapid"

	"gswitch/buffer"
	"gswitch/crossbar"
	"gswitch/frame"
)

// Whatever rate, cable, frame, batch and number of classes: at the highest
// threshold that is accepted the worst order of arrivals loses nothing, and a
// few bytes above the one that holds for whole frames it does. In that order
// each class, from the lowest, comes as close to the threshold as it can,
// crosses it by a full frame, and goes on for as long as a pause takes.
func TestCrossbarThresholdsOfAnyLink(t *testing.T) {
	pool := frame.NewPool(frame.MustArena(64, 256, 0))
	rapid.Check(t, func(r *rapid.T) {
		time := func(name string) frame.Time {
			return frame.Time(rapid.Int64Range(0, int64(20*frame.Microsecond)).Draw(r, name))
		}
		q := buffer.InputQueue{
			Size: rapid.Uint64Range(1<<14, 1<<24).Draw(r, "size"), Classes: rapid.Uint64Range(1, 8).Draw(r, "classes"),
			Link: buffer.Link{Rate: rapid.SampledFrom([]uint64{1e9, 10e9, 25e9, 40e9, 100e9, 400e9}).Draw(r, "rate"), Delay: time("delay"), Response: time("response"),
				MaxFrame: rapid.Uint32Range(64, 9234).Draw(r, "frame"), Overhead: rapid.SampledFrom([]uint32{0, 24}).Draw(r, "overhead")},
			Batch: rapid.SampledFrom([]uint64{0, 6144, 65536}).Draw(r, "batch"),
		}
		th, err := q.Thresholds()
		if err != nil {
			return
		}
		lost := func(threshold uint64) bool {
			x := crossbar.New(pool.Arena, crossbar.Config{Ingress: uint32(q.Size), Egress: 1, Reserve: 1, Rate: 1e9, Lossless: uint8(1<<q.Classes - 1), Pause: uint32(threshold), Unpause: uint32(min(th.Unpause, threshold-1))})
			refused := false
			push := func(class uint8, bytes uint64) {
				if bytes == 0 {
					return
				}
				ref := pool.Alloc()
				m := pool.Reset(ref)
				m.InPort, m.OutPort, m.Class, m.Wire = 0, 1, class, uint32(bytes)
				if x.Arrive(0, []frame.Ref{ref}) != 0 {
					pool.Free(ref)
					refused = true
				}
			}
			for class := range uint8(q.Classes) {
				if x.Wants(0)>>class&1 != 0 {
					r.Fatalf("class %d is paused with %d of %d bytes", class, x.Port(0).Ingress[class], threshold)
				}
				push(class, threshold-1-uint64(x.Port(0).Ingress[class]))
				push(class, th.Frame)
				if !refused && x.Wants(0)>>class&1 == 0 {
					r.Fatalf("class %d is not paused with %d of %d bytes", class, x.Port(0).Ingress[class], threshold)
				}
				push(class, th.Skid+84) // and the pause frame's own time
			}
			var out [64]frame.Ref
			for n := x.Flush(out[:]); n > 0; n = x.Flush(out[:]) {
				for _, ref := range out[:n] {
					pool.Free(ref)
				}
			}
			return refused
		}
		if lost(uint64(th.Safe)) {
			r.Fatalf("%+v loses at %d, which is accepted: %+v", q, th.Safe, th)
		}
		// n(T-1+F+skid+84) is beyond the size at the second byte above the
		// accepted threshold, which is rounded down.
		if !lost(uint64(th.Safe) + 2) {
			r.Fatalf("%+v loses nothing at %d: %+v", q, th.Safe+2, th)
		}
	})
}
