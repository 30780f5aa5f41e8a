package dataplane

import "gswitch/frame"

// Elsewhere calls f with every chunk that is below the worker's nodes: chunks of frames
// that no node owns any more or yet, and free chunks for reception. It runs on the worker
// (Do).
func (w *Worker) Elsewhere(f func(chunk frame.Ref)) {
	for _, l := range w.ports {
		for _, r := range l.held[:l.nheld] {
			eachChunk(w.arena, r, f)
		}
		if l.delay != nil {
			l.delay.each(func(r frame.Ref) { eachChunk(w.arena, r, f) })
		}
		if l.fault != nil {
			l.fault.late.each(func(r frame.Ref) { eachChunk(w.arena, r, f) })
		}
		if l.dev != nil {
			l.dev.eachHeld(w.arena, f)
		}
	}
}

// eachChunk calls f with the chunks of a frame.
func eachChunk(a *frame.Arena, r frame.Ref, f func(chunk frame.Ref)) {
	for ; r != frame.Nil; r = a.Meta(r).Next {
		f(r)
	}
}
