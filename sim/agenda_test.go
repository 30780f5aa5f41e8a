package sim

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gswitch/frame"
)

// Entries come out in the order of their instants, then in that of the putting,
// also while others are put down.
func TestAgenda(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type entry struct {
			at frame.Time
			id int
		}
		var a Agenda
		var want, got []entry
		for id, put := range rapid.SliceOf(rapid.Bool()).Draw(t, "put") {
			if put {
				e := entry{frame.Time(rapid.IntRange(0, 9).Draw(t, "at")), id}
				a.Put(Entry{At: e.at, Do: func(frame.Time) { got = append(got, e) }})
				k, _ := slices.BinarySearchFunc(want, e, func(x, e entry) int {
					if x.at <= e.at {
						return -1
					}
					return 1
				})
				want = slices.Insert(want, k, e)
				continue
			}
			if len(want) == 0 {
				if a.Next() != frame.Never {
					t.Fatalf("nothing is due at %d", a.Next())
				}
				continue
			}
			if a.Next() != want[0].at {
				t.Fatalf("the next is at %d, want %d", a.Next(), want[0].at)
			}
			e := a.Take()
			e.Do(e.At)
			if got[len(got)-1] != want[0] {
				t.Fatalf("%+v, want %+v", got[len(got)-1], want[0])
			}
			want = want[1:]
		}
	})
}
