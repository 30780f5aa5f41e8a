package escape_test

import (
	"testing"

	"gswitch/escape"
	"gswitch/wire"
)

// Each reports the flows that may get tokens, as they were noted last; one that
// left for another port is none of them until it comes back.
func TestEachKnownFlow(t *testing.T) {
	e := escape.NewEgress(escape.Default())
	a, b := wire.FlowID{Addrs: 1, Ports: 7}, wire.FlowID{Addrs: 2, Ports: 8}
	e.Note(10, a, 3, 4)
	e.Note(11, b, 5, 6)
	e.Note(10, a, 4, 5)
	type flow struct {
		hash  uint32
		in    uint16
		class uint8
	}
	known := func() map[wire.FlowID]flow {
		v := map[wire.FlowID]flow{}
		e.Each(func(hash uint32, key wire.FlowID, in uint16, class uint8) { v[key] = flow{hash, in, class} })
		return v
	}
	if v := known(); len(v) != 2 || v[a] != (flow{10, 4, 5}) || v[b] != (flow{11, 5, 6}) {
		t.Errorf("%v", v)
	}
	e.Retire(10, a)
	if v := known(); len(v) != 1 || v[b] != (flow{11, 5, 6}) {
		t.Errorf("without one that left: %v", v)
	}
	e.Note(10, a, 3, 4)
	if v := known(); len(v) != 2 || v[a] != (flow{10, 3, 4}) {
		t.Errorf("when it is back: %v", v)
	}
}
