package workload

import (
	"math"
	"strings"
	"testing"

	"gswitch/frame"
)

// What a short document can ask for, and no machine can hold, is refused
// before anything is made: a process whose gaps round to nothing, and posts
// beyond number.
func TestImpossibleWorkloadsAreRefused(t *testing.T) {
	h := hosts(0, 8)
	for name, make := range map[string]func() error{
		"more than one a nanosecond: poisson": func() error {
			_, err := NewPoisson(PoissonConfig{From: h, To: h, Sizes: Fixed(1), Rate: 2.5e12, Stop: frame.Second})
			return err
		},
		"more than one a nanosecond: infinite": func() error {
			_, err := NewPoisson(PoissonConfig{From: h, To: h, Sizes: Fixed(1), Rate: math.Inf(1), Stop: frame.Second})
			return err
		},
		"more than one a nanosecond: incast": func() error {
			_, err := NewIncast(IncastConfig{From: h, To: h, Fanin: 7, Bytes: 1, Rate: 3.5e11, Stop: frame.Second})
			return err
		},
		"more than one a nanosecond: queries": func() error {
			_, err := NewPartitionAggregate(PartitionAggregateConfig{From: h, To: h, Fanin: 7, Query: 1, Response: 1, Rate: 3.5e11, Stop: frame.Second})
			return err
		},
		"can be posted at once: messages": func() error {
			_, err := NewSaturate(SaturateConfig{From: h[:7], To: h[7:], Conns: 10_000, Outstanding: 100_000, Bytes: 1, Stop: frame.Never})
			return err
		},
		"can be posted at once: connections": func() error {
			_, err := NewSaturate(SaturateConfig{From: h[:7], To: h[7:], Conns: math.MaxInt, Outstanding: 1, Bytes: 1, Stop: frame.Never})
			return err
		},
		"can be posted at once: requests": func() error {
			_, err := NewRequests(RequestsConfig{From: h, To: h, Outstanding: 1 << 20, Request: Fixed(1), Stop: frame.Never})
			return err
		},
	} {
		want, _, _ := strings.Cut(name, ":")
		if err := make(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
