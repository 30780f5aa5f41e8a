package dataplane

import (
	"math"
	"strings"
	"testing"

	"gswitch/frame"
)

// Spans that would leave time itself are refused where they are given.
func TestSpansAreChecked(t *testing.T) {
	for _, w := range []WorkerConfig{{Step: -1}, {Step: math.MaxInt64}, {IdleSpin: -1}, {IdleSpin: frame.Never}} {
		e, err := New(Config{Chunks: 64, Workers: []WorkerConfig{w}})
		if err == nil {
			t.Errorf("%+v was taken", w)
			e.Stop()
		} else if !strings.Contains(err.Error(), "is not from 0 to 1h0m0s") {
			t.Errorf("%+v: %v", w, err)
		}
	}
	for _, k := range []struct {
		s    PortSpec
		want string
	}{{PortSpec{Delay: -1}, "is not from 0 to 1h0m0s"}, {PortSpec{Delay: math.MaxInt64}, "is not from 0 to 1h0m0s"}, {PortSpec{DelayFrames: 1 << 40}, "delay frames"}} {
		k.s.Kind = Null
		if err := k.s.complete(0); err == nil || !strings.Contains(err.Error(), k.want) {
			t.Errorf("%+v: %v, want %q", k.s, err, k.want)
		}
	}
}
