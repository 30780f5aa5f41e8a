package vswitch_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"gswitch/frame"
	"gswitch/vswitch"
	st "gswitch/vswitch/switchtest"
)

// called is a feature that counts in steps, as it is told to.
const called = "test-called"

type total struct {
	sum int
	at  frame.Time
}

type add struct{ N byte }

func (c *add) Encode(b []byte) []byte { return append(b, c.N) }

func (c *add) Do(now frame.Time, state any) {
	t := state.(*total)
	t.sum, t.at = t.sum+int(c.N), now
}

func init() {
	vswitch.Register(vswitch.Feature{Name: called,
		New: func(*vswitch.Node) vswitch.Instance { return vswitch.Instance{State: &total{}} },
		Decode: func(b []byte) (vswitch.Call, error) {
			if len(b) != 1 {
				return nil, errors.New("a number has one byte")
			}
			return &add{b[0]}, nil
		}})
}

// A call reaches the feature when its command is carried out, and from a record it does
// the same.
func TestFeatureIsCalled(t *testing.T) {
	cfg := st.Star()
	cfg.Options = cfg.Options.With(called, true)
	r := st.New(t, cfg)
	state := r.Switch.Nodes[0].Feature(called).(*total)
	c := &vswitch.CallFeature{Feature: called, Call: &add{5}}
	cmd, err := r.Switch.Prepare(c)
	if err != nil || state.sum != 0 {
		t.Fatalf("%d before the command is carried out, %v", state.sum, err)
	}
	r.Advance(7)
	cmd.Do(r.Now)
	back, err := vswitch.DecodeChange(cmd.Encode(nil))
	if err != nil || !reflect.DeepEqual(back, c) {
		t.Fatalf("%+v, %v", back, err)
	}
	if err := r.Switch.DoAt(r.Now+1, back); err != nil || state.sum != 10 || state.at != r.Now+1 {
		t.Errorf("%d at %d, %v", state.sum, state.at, err)
	}

	without := st.New(t, st.Star())
	if err := without.Switch.Do(c); err != nil || c.Refused == nil || !strings.Contains(c.Refused.Error(), "no "+called) {
		t.Errorf("%v, %v in a switch without the feature", err, c.Refused)
	}
}

// The form outlives the version. A call of what is not there is an error, and so is the
// plan of a clock as earlier versions wrote it.
func TestCallsAreEncoded(t *testing.T) {
	if b := (&vswitch.CallFeature{Feature: called, Call: &add{5}}).Encode(nil); string(b) != "\x08\x0b"+called+"\x05" {
		t.Errorf("a call is encoded as %q", b)
	}
	for bad, why := range map[string]string{
		"\x08\x0b" + called + "56":      "one byte",
		"\x08\x0c" + watched + "\x05":   "no feature that is called",
		"\x08\x04none\x05":              "no feature that is called",
		"\x08\x09no":                    "no feature that is called",
		"\x07\x03\x00\x01\x00\x00\x00x": "its header names",
	} {
		if c, err := vswitch.DecodeChange([]byte(bad)); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q is %+v, %v", bad, c, err)
		}
	}
}
