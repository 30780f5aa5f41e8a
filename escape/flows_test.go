package escape

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gswitch/frame"
	"gswitch/wire"
)

// The table has the last flows, in the order of their last frames, each in
// the place of the one that it drove out, whatever comes between: what a list
// does that moves each flow to its front.
func TestTableIsAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := config(4, 4)
		cfg.Flows = rapid.IntRange(1, 6).Draw(t, "flows")
		e := NewEgress(cfg)
		type known struct {
			key   wire.FlowID
			in    uint16
			class uint8
			gone  bool
			place uint32
		}
		var list []known // newest first
		key := func() (uint32, wire.FlowID) {
			i := rapid.Uint32Range(0, 9).Draw(t, "flow")
			return i % 4, wire.FlowID{Addrs: 1, Ports: i, Proto: 17} // colliding hashes
		}
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			h, k := key()
			at := slices.IndexFunc(list, func(f known) bool { return f.key == k })
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			default:
				f := known{key: k, in: rapid.Uint16Range(0, 1).Draw(t, "in"), class: rapid.Uint8Range(3, 4).Draw(t, "class"), place: uint32(len(list))}
				switch {
				case at >= 0:
					f.place = list[at].place
					list = slices.Delete(list, at, at+1)
				case len(list) == cfg.Flows:
					f.place = list[len(list)-1].place
					list = list[:len(list)-1]
				}
				list = slices.Insert(list, 0, f)
				e.Note(h, k, f.in, f.class)
			case 1:
				if at >= 0 {
					list[at].gone = true
				}
				e.Retire(h, k)
			case 2:
				e.table.catchUp()
			}
			if e.Flows() != len(list) {
				t.Fatalf("%d flows are known, want %d", e.Flows(), len(list))
			}
			for _, want := range list {
				i := e.table.find(want.key.Ports%4, want.key)
				if i == none {
					t.Fatalf("%v is not known", want)
				}
				f := &e.table.flows[i]
				if got := (known{f.key, f.in, f.class, f.rest == frame.Never, i}); got != want {
					t.Fatalf("%+v, want %+v", got, want)
				}
			}
		}
		e.table.catchUp()
		var got, want []wire.FlowID
		for i := e.table.newest; i != none; i = e.table.flows[i].next {
			got = append(got, e.table.flows[i].key)
		}
		for _, f := range list {
			want = append(want, f.key)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("by age %v, want %v", got, want)
		}
	})
}
