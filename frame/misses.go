package frame

// What a node does depends on which of its allocations fail, and that depends on what
// others hold: rings, captures, other workers. Failures are therefore counted, so that a
// recorder learns which ones they were, and a replay makes the same ones fail.

// Misses is a run of allocations that failed, one directly after the other.
type Misses struct {
	First uint64 // the first one, as Pool.Asked counts them
	N     uint64
}

// misses is what a Pool knows of allocations that failed, and of those that
// are to fail.
type misses struct {
	count  uint64
	log    []Misses // since TakeMisses; of no more than its capacity
	lost   bool     // the log was full
	script []Misses // what is to fail besides failAt, in order
}

// Asked returns how many allocations there were, those that failed included.
func (p *Pool) Asked() uint64 { return p.asked }

// Failed returns how many allocations failed.
func (p *Pool) Failed() uint64 { return p.misses.count }

// LogMisses gives the pool the memory in which to note which allocations fail.
// nil ends it.
func (p *Pool) LogMisses(buf []Misses) { p.misses.log, p.misses.lost = buf[:0:cap(buf)], false }

// TakeMisses returns the runs of allocations that failed since it was last
// called, until the next allocation, and whether these are all.
func (p *Pool) TakeMisses() (v []Misses, all bool) {
	m := &p.misses
	v, all = m.log, !m.lost
	m.log, m.lost = m.log[:0], false
	return v, all
}

// FailAt makes allocations fail, which Asked counts from 1, whether or not
// there are chunks: runs that do not touch, in order, behind what was asked so
// far. It replaces what was to fail before.
func (p *Pool) FailAt(script []Misses) {
	p.failAt, p.misses.script = 0, script
	p.nextScripted()
}

func (p *Pool) nextScripted() {
	if len(p.misses.script) > 0 {
		p.failAt = p.misses.script[0].First
	}
}

// failScripted fails the allocation that is to fail, and sets the next one.
func (p *Pool) failScripted() Ref {
	s := p.misses.script
	if s[0].N > 1 {
		p.misses.script[0] = Misses{s[0].First + 1, s[0].N - 1}
	} else {
		p.misses.script = s[1:]
	}
	p.failAt = 0
	p.nextScripted()
	return p.miss()
}

// miss takes note of an allocation that fails.
func (p *Pool) miss() Ref {
	m := &p.misses
	m.count++
	if cap(m.log) == 0 {
		return Nil
	}
	if k := len(m.log); k > 0 && m.log[k-1].First+m.log[k-1].N == p.asked {
		m.log[k-1].N++
	} else if k < cap(m.log) {
		m.log = append(m.log, Misses{p.asked, 1})
	} else {
		m.lost = true
	}
	return Nil
}
