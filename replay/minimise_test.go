package replay_test

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gswitch/frame"
	"gswitch/replay"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// A mark that is not kept is none: the frame is as its sender made it, its checksum too.
func TestMarksAreInputs(t *testing.T) {
	l := newLive(t, small, 3000, 1)
	const n = 300
	l.bulk(n, func(i int) []byte {
		ip := wt.IPv4("10.0.0.1", "10.0.0.2", wt.TOS(uint8(i%4)), wt.IPv4With(func(f *wire.IPv4Fields) { f.ID = uint16(i * 7919) }))
		if i%3 == 0 {
			ip = wt.IPv6("fd00::1", "fd00::2", wt.TOS(uint8(i%4)))
		}
		return wt.Frame(wt.Eth(wt.MAC(2), wt.MAC(1)), ip, wt.UDP(uint16(i), 53), wt.Zeros(40))
	})
	l.rec.End(l.now)
	l.write()
	for _, kept := range []bool{true, false} {
		in := open(t, l.file.Bytes())
		p, err := replay.NewPlayer(in, build)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Free(nil); err != nil {
			t.Fatal(err)
		}
		var frames, marks, dropped, seen uint64
		p.Keep = func(x *replay.Input) bool {
			switch x.Kind {
			case replay.FrameInput:
				if x.Number != frames {
					t.Errorf("frame %d is numbered %d", frames, x.Number)
				}
				frames++
				if x.Number%5 == 4 {
					dropped++
					return false
				}
			case replay.MarkInput:
				marks++
				return kept
			}
			return true
		}
		ce := 0
		parser := wire.NewParser(wire.NewHasher(0, false))
		p.Seen = func(_ frame.Time, _ uint16, v []frame.Ref) {
			for _, r := range v {
				seen++
				b := p.Arena.Bytes(r)
				if b[14]>>4 == 4 && wire.Checksum(b[14:34]) != 0 {
					t.Fatalf("frame %d: the checksum of %x is wrong", seen, b[14:34])
				}
				if parser.Parse(p.Arena, []frame.Ref{r}); p.Arena.Meta(r).Flags&frame.IsCE != 0 {
					ce++
				}
			}
		}
		for err == nil {
			_, err = p.Step()
		}
		if frames != n || marks != n/4 || seen != n-dropped || kept && ce != int(marks*4/5) || !kept && ce != 0 {
			t.Errorf("kept %v: %d frames, %d marks, %d not kept, %d seen, %d of them marked", kept, frames, marks, dropped, seen, ce)
		}
	}
}

// The subset shows the event, and none of its inputs can be left out, whatever sets of
// inputs make up the event.
func TestMinimise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(t, "n")
		causes := rapid.SliceOfN(rapid.SliceOfNDistinct(rapid.IntRange(0, n-1), 1, 6, rapid.ID), 1, 3).Draw(t, "causes")
		asked := 0
		shows := func(kept []int) (bool, error) {
			asked++
			if !slices.IsSorted(kept) {
				t.Fatalf("%v is not in order", kept)
			}
			for _, c := range causes {
				all := true
				for _, i := range c {
					all = all && slices.Contains(kept, i)
				}
				if all {
					return true, nil
				}
			}
			return false, nil
		}
		kept, err := replay.Minimise(n, shows)
		if ok, _ := shows(kept); err != nil || !ok {
			t.Fatalf("%v of %v: %v", kept, causes, err)
		}
		for i := range kept {
			if ok, _ := shows(slices.Delete(slices.Clone(kept), i, i+1)); ok {
				t.Fatalf("%v of %v: %d is not needed", kept, causes, kept[i])
			}
		}
		if again, err := replay.Minimise(n, shows); err != nil || !slices.Equal(again, kept) {
			t.Fatalf("%v, and then %v, %v", kept, again, err)
		}
	})
}

// Of an event that comes by itself nothing is needed; an interrupted call returns what was
// found so far.
func TestMinimiseEnds(t *testing.T) {
	if kept, err := replay.Minimise(9, func([]int) (bool, error) { return true, nil }); len(kept) != 0 || err != nil {
		t.Errorf("%v, %v", kept, err)
	}
	stop, asked := errors.New("stop"), 0
	kept, err := replay.Minimise(64, func(kept []int) (bool, error) {
		if asked++; asked == 6 {
			return false, stop
		}
		return slices.Contains(kept, 7), nil
	})
	if !errors.Is(err, stop) || len(kept) >= 64 || !slices.Contains(kept, 7) {
		t.Errorf("%v, %v", kept, err)
	}
}
