package hostnic

import (
	"errors"
	"strings"
	"testing"

	"gswitch/command/commandtest"
	"gswitch/frame"
)

// called is a feature that counts in steps, as it is told to.
const called = "test-called"

type tally struct {
	sum int
	at  frame.Time
}

type add struct{ N byte }

func (c *add) Encode(b []byte) []byte { return append(b, c.N) }

func (c *add) Do(now frame.Time, state any) {
	t := state.(*tally)
	t.sum, t.at = t.sum+int(c.N), now
}

func init() {
	Register(Feature{Name: called,
		New: func(*NIC) Instance { return Instance{State: &tally{}} },
		Decode: func(b []byte) (Call, error) {
			if len(b) != 1 {
				return nil, errors.New("a number has one byte")
			}
			return &add{b[0]}, nil
		}})
}

func someNICChanges() []Change {
	return []Change{
		&CallFeature{Feature: called, Call: &add{5}},
		TakeReports{},
		TakeReports{Feature: "meters"},
		&Inject{Frame: []byte{1, 2, 3}, Class: 7},
		&Inject{Frame: []byte{}},
	}
}

// The form outlives the version: records that were made keep their meaning.
func TestChangesAreEncoded(t *testing.T) {
	commandtest.Encoded(t, someNICChanges(), DecodeChange)
	for i, want := range []string{"\x07\x0b" + called + "\x05", "\x06", "\x06\x06meters", "\x08\x07\x03\x01\x02\x03"} {
		if got := string(someNICChanges()[i].Encode(nil)); got != want {
			t.Errorf("change %d is encoded as %q, want %q", i, got, want)
		}
	}
	for bad, why := range map[string]string{
		"":                            "without a kind",
		"\x09":                        "unknown kind 9",
		"\x07":                        "no feature that is called",
		"\x07\x04none\x05":            "no feature that is called",
		"\x07\x04beat\x05":            "no feature that is called",
		"\x07\x0b" + called[:10]:      "no feature that is called",
		"\x07\x0b" + called:           "one byte",
		"\x07\x0b" + called + "\x05x": "one byte",
		"\x08\x08\x00":                "of kind 8",
		"\x08\x01\x04abc":             "of kind 8",
		"\x06\x06meter":               "of kind 6",
	} {
		if c, err := DecodeChange([]byte(bad)); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q is %+v, %v", bad, c, err)
		}
	}
}

func FuzzDecodeChange(f *testing.F) { commandtest.Fuzz(f, someNICChanges(), DecodeChange) }

// A call that was read from a record does what it did, and is refused by a host without the feature.
func TestFeatureIsCalled(t *testing.T) {
	p := newPair(t, func(i int, c *Config) {
		if i == 0 {
			c.Options = c.Options.With(called, true)
		}
	})
	state := p.a.Feature(called).(*tally)
	back, err := DecodeChange((&CallFeature{Feature: called, Call: &add{5}}).Encode(nil))
	must(t, err)
	back.Do(7, p.a)
	if call := back.(*CallFeature); state.sum != 5 || state.at != 7 || call.Refusal() != nil {
		t.Errorf("%d at %d, %v", state.sum, state.at, call.Refusal())
	}
	back.Do(8, p.b)
	if err := back.(*CallFeature).Refusal(); err == nil || !strings.Contains(err.Error(), "no "+called) {
		t.Errorf("%v in a host without the feature", err)
	}
}
