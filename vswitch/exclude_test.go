package vswitch_test

import (
	"slices"
	"strings"
	"testing"

	signals "gswitch/feature"
	"gswitch/frame"
	"gswitch/vswitch"
	st "gswitch/vswitch/switchtest"
)

// Two features that signal congestion, of which no table says anything.
const (
	signallingA = "test-signalling-a"
	signallingB = "test-signalling-b"
)

func init() {
	vswitch.Register(vswitch.Feature{Name: signallingA, Signals: signals.FairRates})
	vswitch.Register(vswitch.Feature{Name: signallingB, Signals: signals.EchoedMarks})
}

// A queue has one feature that signals congestion, also if they are those of another module.
func TestOneSignalPerQueue(t *testing.T) {
	in := func(scope vswitch.Scope, key string, have ...string) *vswitch.Exclusion {
		return vswitch.Excluded(scope, key, func(k string) bool { return slices.Contains(have, k) })
	}
	x := in(vswitch.OneQueue, signallingB, signallingA, signallingB)
	if x == nil || x.A != signallingB || x.B != signallingA || !strings.Contains(x.Beside(), "senders can follow only one of the two") {
		t.Errorf("%+v", x)
	}
	for _, x := range []*vswitch.Exclusion{
		in(vswitch.OneQueue, signallingB, signallingB, called),
		in(vswitch.OneQueue, called, signallingA, called),
		in(vswitch.OneSwitch, "", signallingA, signallingB),
	} {
		if x != nil {
			t.Errorf("%+v", x)
		}
	}
}

// A call reaches one worker: the ports of a switch with a feature that is called are on one.
func TestCalledFeatureHasOneWorker(t *testing.T) {
	build := func(name string, worker int) error {
		cfg := st.Star()
		cfg.Options = cfg.Options.With(name, true)
		cfg.Ports[1].Worker = worker
		arena := frame.MustArena(64, 2048, frame.DefaultHeadroom)
		depot := frame.NewDepot(arena)
		_, err := vswitch.New(cfg, []*frame.Pool{depot.NewPool(arena), depot.NewPool(arena)})
		return err
	}
	if err := build(called, 1); err == nil || !strings.Contains(err.Error(), called+" cannot stand beside "+vswitch.SeveralWorkers+", of which a call reaches only one; give all ports of the switch to one") {
		t.Error(err)
	}
	for name, worker := range map[string]int{called: 0, watched: 1} {
		if err := build(name, worker); err != nil {
			t.Errorf("%s on worker %d: %v", name, worker, err)
		}
	}
}
