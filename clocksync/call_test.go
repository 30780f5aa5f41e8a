package clocksync

import (
	"bytes"
	"testing"

	"gswitch/command/commandtest"
	"gswitch/feature"
	"gswitch/frame"
)

func someCalls() []feature.Call {
	o := Options{Config: Config{Epoch: 3, Accept: 2, Backup: NoPort, Transmit: Ports{1 << 63, 5}, EpsBase: 5, Interval: DefaultInterval, Timeout1: DefaultTimeout1, Drift: 200_000},
		Domain: DefaultDomain, Plain: Ports{0, 0, 0, 1}, Unstamped: Forever, Answers: true}
	return []feature.Call{
		&feature.TakePlan{ClockPlan: feature.ClockPlan{Epoch: 7, Parent: 3, Second: -1, Send: []int{1}}},
		&Follow{Options: o},
		&SendBy{Ports: Ports{1, 0, 0, 1 << 63}},
		&SendBy{Only: true},
		&Adjust{To: -5, Bound: 258, Root: 1<<56 + 7, Hops: 3},
	}
}

func TestCallsAreEncoded(t *testing.T) {
	commandtest.Encoded(t, someCalls(), DecodeCall)
	// The form outlives the version: records that were made keep their meaning.
	if b := someCalls()[2].Encode(nil); !bytes.Equal(b, append(append([]byte{3, 0}, make([]byte, 7)...), append([]byte{1}, append(make([]byte, 16), 0x80, 0, 0, 0, 0, 0, 0, 0)...)...)) {
		t.Errorf("ports are encoded as %x", b)
	}
	if b := someCalls()[4].Encode(nil); !bytes.Equal(b, []byte{4, 3, 255, 255, 255, 255, 255, 255, 255, 251, 0, 0, 0, 0, 0, 0, 1, 2, 1, 0, 0, 0, 0, 0, 0, 7}) {
		t.Errorf("an adjustment is encoded as %x", b)
	}
	never := Adjust{Bound: Forever}
	for _, bad := range []string{"", "\x00", "\x04", "\x05", string(never.Encode(nil)), string((&Adjust{To: Forever}).Encode(nil)), "\x01\x07", "\x02", "\x02{\"Strange\":1}", "\x02null", "\x02{} trailing garbage", "\x02{}{}", "\x02{}\n", "\x02 {}", "\x03\x02", "\x03\x00\x00"} {
		if c, err := DecodeCall([]byte(bad)); err == nil {
			t.Errorf("%q is taken for %+v", bad, c)
		}
	}
}

// held is a clock that a feature keeps.
type held struct{ *Instance }

func (h held) Set(now frame.Time, o Options) error { return h.Configure(now, o) }

// A clock sends by the ports of both plans between the calls, and follows the new one.
func TestCallsAreCarriedOut(t *testing.T) {
	w := newWired(t)
	k := held{w.root}
	want := func(what string, p Ports) {
		t.Helper()
		if *w.root.Transmit() != p {
			t.Errorf("%s: messages go to %v, not %v", what, *w.root.Transmit(), p)
		}
	}
	(&SendBy{Ports: Ports{0b110}}).Do(0, k)
	want("widened", Ports{0b111})
	(&SendBy{Ports: Ports{0b110}, Only: true}).Do(0, k)
	want("narrowed", Ports{0b110})
	o := w.root.Options()
	o.Root, o.Accept, o.Epoch = false, 1, 9
	c := &Follow{Options: o}
	if c.Do(0, k); c.Refused != nil || w.root.Parent() != 1 {
		t.Errorf("port %d is followed, %v", w.root.Parent(), c.Refused)
	}
	(&Adjust{To: 5000, Bound: 7, Root: 99, Hops: 2}).Do(1000, k)
	if w.root.At(1000) != 5000 || w.root.Uncertainty(1000) != 7 {
		t.Errorf("%d with %d, not 5000 with 7", w.root.At(1000), w.root.Uncertainty(1000))
	}
	o.Interval = -1
	c = &Follow{Options: o}
	if c.Do(0, k); c.Refused == nil || w.root.Parent() != 1 {
		t.Errorf("port %d is followed, %v", w.root.Parent(), c.Refused)
	}
}

func FuzzDecodeCall(f *testing.F) {
	for _, text := range []string{"null", "{} trailing garbage", `{"Root":true,"Accept":-1,"Interval":9223372036854775807}`, `{"Accept":-7}`} {
		f.Add(append([]byte{followKind}, text...))
	}
	commandtest.Fuzz(f, someCalls(), DecodeCall)
}

// Options whose sums overflow, or that name ports that cannot be, are refused: a clock that
// took them could be due in the past for ever.
func TestCallsAreBounded(t *testing.T) {
	root := func(text string) string {
		return `{"Root":true,"Accept":-1,"Backup":-1,"Interval":90000` + text + `}`
	}
	parented := func(text string) string { return `{"Accept":1,"Backup":-1,"Interval":90000` + text + `}` }
	follow := func(text string) error {
		c, err := DecodeCall(append([]byte{followKind}, text...))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		w := newWired(t)
		f := c.(*Follow)
		if f.Do(0, held{w.root}); f.Refused == nil {
			for range 3 { // it is due later each time
				due := w.root.Due()
				if w.root.Advance(due); due < 0 || w.root.Due() <= due {
					t.Errorf("%s: due at %d, and then at %d", text, due, w.root.Due())
				}
			}
		}
		return feature.Refusal(c)
	}
	for _, text := range []string{root(""), root(`,"Origin":1800000000000000000`), parented(""), parented(`,"Timeout1":200000,"Unstamped":9223372036854775807`)} {
		if err := follow(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{
		root(`,"Interval":9223372036854775807`), root(`,"Interval":4611686018427387904`), root(`,"Interval":3600000000001`),
		root(`,"Accept":-7`), root(`,"Backup":-2`), parented(`,"Accept":-7`), parented(`,"Backup":256`),
		root(`,"Origin":9223372036854775807`), root(`,"Origin":-1`), root(`,"DelayEvery":9223372036854775807`), root(`,"Announce":9223372036854775807`),
		root(`,"Unstamped":-1`), root(`,"Unstamped":9223372036854775806`), root(`,"Drift":9223372036854775807`), root(`,"EpsBase":9223372036854775807`),
		parented(`,"Timeout1":9223372036854775807`), parented(`,"Timeout1":4611686018427387904,"Timeout2":4611686018427387904`), parented(`,"Recovery":9223372036854775807`),
	} {
		if err := follow(text); err == nil {
			t.Errorf("%s is followed", text)
		}
	}
}
