package frame

import (
	"slices"
	"testing"
)

func TestMissesAreCountedAndLogged(t *testing.T) {
	p := NewPool(MustArena(3, 256, 0))
	alloc := func(n int) (got string) {
		for range n {
			if r := p.Alloc(); r == Nil {
				got += "-"
			} else {
				got += "x"
			}
		}
		return got
	}
	if got := alloc(4); got != "xxx-" || p.Failed() != 1 || p.Asked() != 4 {
		t.Errorf("%s, %d of %d failed", got, p.Failed(), p.Asked())
	}
	if v, all := p.TakeMisses(); len(v) != 0 || !all {
		t.Errorf("logged %v although nobody asked", v)
	}
	p.LogMisses(make([]Misses, 2))
	alloc(2)
	p.FreeChunk(0)
	if got := alloc(3); got != "x--" {
		t.Errorf("%s with one chunk", got)
	}
	if v, all := p.TakeMisses(); !all || !slices.Equal(v, []Misses{{5, 2}, {8, 2}}) {
		t.Errorf("misses %v, all %v", v, all)
	}
	for range 3 {
		alloc(1)
		p.FreeChunk(0)
		alloc(1)
	}
	if v, all := p.TakeMisses(); all || len(v) != 2 {
		t.Errorf("misses %v, all %v: the log has room for two runs", v, all)
	}
	if _, all := p.TakeMisses(); !all {
		t.Error("the gap in the log is reported twice")
	}
}

func TestScriptedMisses(t *testing.T) {
	p := NewPool(MustArena(16, 256, 0))
	p.LogMisses(make([]Misses, 8))
	script := []Misses{{2, 1}, {4, 3}, {9, 1}}
	p.FailAt(slices.Clone(script))
	got := ""
	for range 10 {
		if r := p.Alloc(); r == Nil {
			got += "-"
		} else {
			p.FreeChunk(r)
			got += "x"
		}
	}
	if got != "x-x---xx-x" {
		t.Errorf("allocations %s", got)
	}
	if v, all := p.TakeMisses(); !all || !slices.Equal(v, script) {
		t.Errorf("logged %v, the script was %v", v, script)
	}
	p.FailAt([]Misses{{11, 2}})
	p.FailAt(nil)
	if p.Alloc() == Nil {
		t.Error("a script that was taken back still fails")
	}
}
