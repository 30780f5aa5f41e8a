package cc

import (
	"strings"
	"testing"

	inband "gswitch/int"
)

// steady is the feedback of a flow in a busy network: five hops, a mark now
// and then, round trips of 15 to 17 us.
type steady struct {
	f    Feedback
	path inband.Path
}

func (s *steady) next() *Feedback {
	if s.f.Path == nil {
		s.f.Path, s.path.N, s.path.ID = &s.path, 5, 9
		s.f.Newly, s.f.Bytes = 1000, 1090
	}
	s.f.Now += 100
	s.f.Ack += 1000
	s.f.SndNxt = s.f.Ack + 100_000
	s.f.RTT = 15_000 + s.f.Now%2000
	s.f.CE = s.f.Ack%64_000 == 0
	for i := range s.path.N {
		h := &s.path.Hops[i]
		h.Rate = 100e9
		h.TS, h.Tx, h.Q = uint64(s.f.Now), uint64(s.f.Now)*12, uint64(s.f.Now%30_000)
	}
	return &s.f
}

// drive gives one acknowledgement and what the NIC does around it.
func drive(a Algorithm, f *Feedback) (rate, window float64) {
	if a.Timer() <= f.Now {
		a.OnTimer(f.Now)
	}
	a.OnAck(f)
	a.OnSend(f.Now, 1090)
	return a.Rate(), a.Window()
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	env := hundredGig
	env.Range = inband.Range{TS: 1 << 40, Tx: 1 << 40}
	for _, name := range append(Names(), NS3Names...) {
		var a Algorithm
		if of, params, ok := NS3(name, 100); ok {
			f, err := Factory(of, params)
			if err != nil {
				t.Fatal(err)
			}
			a = f(&env)
		} else {
			a = build(t, &env, name)
		}
		var s steady
		if n := testing.AllocsPerRun(2000, func() { drive(a, s.next()); a.OnCNP(s.f.Now) }); n != 0 {
			t.Errorf("%s: %v allocations for each acknowledgement", name, n)
		}
	}
}

// An array of queue pairs is opened at once in large runs.
func TestAFactoryAllocatesOnlyTheState(t *testing.T) {
	for _, name := range Names() {
		f, err := Factory(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(100, func() { f(&hundredGig) }); n != 1 {
			t.Errorf("%s: %v allocations for a queue pair, want its state alone", name, n)
		}
	}
}

func BenchmarkOnAck(b *testing.B) {
	env := hundredGig
	env.Range = inband.Range{TS: 1 << 40, Tx: 1 << 40}
	for _, name := range append(Names(), "hpcc multirate=true", "timely update=window") {
		b.Run(name, func(b *testing.B) {
			algorithm, option, _ := strings.Cut(name, " ")
			var options []string
			if key, value, ok := strings.Cut(option, "="); ok {
				options = []string{key, value}
			}
			a := build(b, &env, algorithm, options...)
			var s steady
			b.ReportAllocs()
			for b.Loop() {
				a.OnAck(s.next())
			}
		})
	}
	b.Run("the feedback itself", func(b *testing.B) {
		var s steady
		for b.Loop() {
			s.next()
		}
	})
}

func BenchmarkOpen(b *testing.B) {
	for _, name := range []string{"hpcc", "dcqcn", "timely"} {
		b.Run(name, func(b *testing.B) {
			a := build(b, &hundredGig, name).(Resetter)
			for b.Loop() {
				a.Reset(&hundredGig)
			}
		})
	}
}
