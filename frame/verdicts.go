package frame

// A host checks payload: checksums over it, and whether it is what was sent. Records hold
// no payload. Failed checks are therefore counted, so that a recorder learns which ones
// they were, and a replay uses these outcomes instead of checking.

// Verdicts are the outcomes of a node's checks of payload.
type Verdicts struct {
	asked    uint64
	log      []uint64 // of its capacity: those that failed since Take
	lost     bool     // the log was full
	scripted bool
	script   []uint64 // those that are to fail, in order
}

// Asked returns how many checks there were.
func (v *Verdicts) Asked() uint64 { return v.asked }

// Note takes in the outcome of a check, and returns it.
func (v *Verdicts) Note(ok bool) bool {
	if v.asked++; !ok {
		v.failed()
	}
	return ok
}

func (v *Verdicts) failed() {
	if len(v.log) < cap(v.log) {
		v.log = append(v.log, v.asked)
	} else {
		v.lost = cap(v.log) > 0
	}
}

// Log gives the memory in which to note which checks fail. nil ends it.
func (v *Verdicts) Log(buf []uint64) { v.log, v.lost = buf[:0:cap(buf)], false }

// Take returns which checks failed since it was last called, as Asked counts them,
// until the next one, and whether these are all.
func (v *Verdicts) Take() (failed []uint64, all bool) {
	failed, all = v.log, !v.lost
	v.log, v.lost = v.log[:0], false
	return failed, all
}

// Script has the outcomes decided from now on: the checks of these numbers fail, and no
// others. Each call replaces what was to fail.
func (v *Verdicts) Script(failed []uint64) { v.scripted, v.script = true, failed }

// Scripted reports whether outcomes are decided: then Next takes the place of a
// check.
func (v *Verdicts) Scripted() bool { return v.scripted }

// Next returns the next outcome.
func (v *Verdicts) Next() bool {
	v.asked++
	if len(v.script) > 0 && v.script[0] == v.asked {
		v.script = v.script[1:]
		return false
	}
	return true
}
