package clocksync

import (
	"bytes"
	"reflect"
	"testing"

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
	}
}

func TestCallsAreEncoded(t *testing.T) {
	for _, c := range someCalls() {
		b := c.Encode([]byte{99})
		if back, err := DecodeCall(b[1:]); b[0] != 99 || err != nil || !reflect.DeepEqual(back, c) {
			t.Errorf("%+v came back from %q as %+v, %v", c, b, back, err)
		}
	}
	// The form outlives the version: records that were made keep their meaning.
	if b := someCalls()[2].Encode(nil); !bytes.Equal(b, append(append([]byte{3, 0}, make([]byte, 7)...), append([]byte{1}, append(make([]byte, 16), 0x80, 0, 0, 0, 0, 0, 0, 0)...)...)) {
		t.Errorf("ports are encoded as %x", b)
	}
	for _, bad := range []string{"", "\x00", "\x04", "\x01\x07", "\x02", "\x02{\"Strange\":1}", "\x03\x02", "\x03\x00\x00"} {
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
	o.Interval = -1
	c = &Follow{Options: o}
	if c.Do(0, k); c.Refused == nil || w.root.Parent() != 1 {
		t.Errorf("port %d is followed, %v", w.root.Parent(), c.Refused)
	}
}

func FuzzDecodeCall(f *testing.F) {
	for _, c := range someCalls() {
		f.Add(c.Encode(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := DecodeCall(b)
		if err != nil {
			return
		}
		if again, err := DecodeCall(c.Encode(nil)); err != nil || !reflect.DeepEqual(again, c) {
			t.Errorf("%q is %+v, which is encoded and comes back as %+v, %v", b, c, again, err)
		}
	})
}
