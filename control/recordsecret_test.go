package control

import (
	"encoding/json"
	"testing"

	"gswitch/config"
	"gswitch/frame"
	"gswitch/replay"
	"gswitch/vswitch"
)

// A replayed switch keeps the secret and the epoch of the record when a configuration is
// applied: frames that find loops are signed with the one, times of day come from the other.
func TestReplayKeepsTheSecret(t *testing.T) {
	const doc = "version: 1\nswitches: [{name: s, loops: {}, ports: [{interface: a}]}]\n"
	h := &replay.Header{Build: "test", Kind: "switch", Name: "s", Document: doc, Ports: []replay.Port{{Name: "a"}},
		Chunk: 2048, Chunks: 100, Headroom: frame.DefaultHeadroom, Secret: 77, Epoch: 88}
	m, err := Rebuild(h, frame.NewPool(frame.MustArena(h.Chunks, h.Chunk, h.Headroom)))
	if err != nil {
		t.Fatal(err)
	}
	r := m.(*Replayed)
	has := func(when string) {
		t.Helper()
		r.Advance(1)
		if c := r.Node.Config(); c.Secret != h.Secret || c.Epoch != h.Epoch {
			t.Errorf("%s the secret is %d and the epoch %d", when, c.Secret, c.Epoch)
		}
	}
	has("at the beginning")
	b, err := json.Marshal(made{Document: doc + "# again\n", Ports: h.Ports})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Do(1, vswitch.Apply{Document: b}.Encode(nil)); err != nil {
		t.Fatal(err)
	}
	has("behind an apply")
	c, err := config.Parse("x", []byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Fix(c); err != nil {
		t.Fatal(err)
	}
	has("with another configuration")
}
