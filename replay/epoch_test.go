package replay_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"gswitch/config"
	"gswitch/frame"
	"gswitch/replay"
)

// RestoreImage implements replay.Resumer.
func (m machine) RestoreImage(b []byte) error { return m.sw.RestoreImage(b) }

// begin lets an epoch begin.
func (l *live) begin() {
	l.t.Helper()
	image, err := l.m.sw.AppendImage(nil, replay.Kept, func(f func(frame.Ref)) {
		for _, r := range l.held {
			f(r)
		}
	})
	if err != nil {
		l.t.Fatal(err)
	}
	h := l.header
	h.Document = l.doc
	l.rec.Begin(l.now, &replay.Epoch{Header: h, Image: image})
}

// A record may begin with a switch that is at work: it is replayed from an image
// of it, in which frames wait, stations and neighbours are known, timers run and
// every feature is in the middle of something.
func TestReplayFromAnImage(t *testing.T) {
	docs := map[string]string{}
	for name, change := range variants {
		docs[name] = change(everything)
	}
	// Those of the example have everything that documents can say.
	text, err := os.ReadFile("../config/example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Parse("example.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	for i := range c.Switches {
		one := c.Clone()
		one.Switches, one.Workers = one.Switches[i:i+1], one.Workers[:1]
		for k := range one.Switches[0].Ports { // of one switch on one worker
			p := &one.Switches[0].Ports[k]
			p.Workers = nil
			if p.Wire != "" {
				p.Wire, p.Interface = "", p.Wire
			}
		}
		docs["example "+c.Switches[i].Name] = string(one.YAML())
	}
	for name, doc := range docs {
		seeds := uint64(2)
		if strings.HasPrefix(name, "example") {
			seeds = 1
		}
		for seed := range seeds {
			t.Run(fmt.Sprintf("%s %d", name, seed), func(t *testing.T) {
				chunks := 3000
				if strings.HasPrefix(name, "example") {
					chunks = 8000
				}
				l := newLive(t, doc, chunks, seed+10)
				k := replay.NewKeeper(1 << 20)
				l.keep = k
				l.up()
				l.churn(600, doc)
				l.holdBack(8) // of chunks that queues and links of the switch name, too
				l.begin()
				l.churn(900, doc)
				l.begin()
				l.churn(900, doc)
				l.rec.Flush(l.now)
				l.write()
				var file bytes.Buffer
				if err := k.Save(&file, "a test"); err != nil {
					t.Fatal(err)
				}
				p, err := play(file.Bytes())
				if saved := (replay.SavedError{}); !errors.As(err, &saved) || saved.Why != "a test" {
					t.Fatal(err)
				}
				if frames, sums := p.Sent(); strings.Contains(doc, "10.1.0.1/24") && (frames < 2500 || sums < 4) || p.Steps() != l.rec.Steps() {
					t.Errorf("%d frames, %d hashes, %d of %d steps", frames, sums, p.Steps(), l.rec.Steps())
				}
				// Chunks that others had when the image was taken are free in the replay: else one
				// fails to get what the switch got when they had less.
				if got, want := replay.Available(p), l.pool.Available()+len(l.held); got != want {
					t.Errorf("%d chunks are free behind the replay; %d were neither free nor others'", got, want)
				}
				if got, want := state(p.Node.(machine)), state(l.m); !reflect.DeepEqual(got, want) {
					t.Errorf("after the replay the switch shows\n%+v\nit was\n%+v", got, want)
				}
			})
		}
	}
}
