package point

import (
	"testing"

	"gswitch/rocc"
	"gswitch/section"
)

// A document that leaves the table open leaves it to rocc.
func TestOneDefaultTable(t *testing.T) {
	p := rocc.For(100e9)
	for name, kind := range rocc.Kinds {
		s := &Section{Table: name}
		section.Fill(s)
		o, err := s.Options(1, 100e9)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := o.(Config).Table.With(&p), (rocc.TableConfig{Kind: kind}).With(&p); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

// Options of a port are the paper's where nothing is set, and refuse a port
// without a rate.
func TestSection(t *testing.T) {
	s := new(Section)
	section.Fill(s)
	o, err := s.Options(0b101, 40e9)
	if err != nil {
		t.Fatal(err)
	}
	p := rocc.For(40e9)
	p.Regions = 6
	if c := o.(Config); c.Queues != 0b101 || c.Params != p || s.Depth(40e9) != 150_000 {
		t.Errorf("%+v, held at %d", c, s.Depth(40e9))
	}
	if _, err := s.Options(1, 0); err == nil {
		t.Error("a port without a rate is taken")
	}
	if err := s.CheckRate(40e9); err != nil {
		t.Error(err)
	}
	if err := s.CheckRate(1e9); err != nil {
		t.Error(err) // the period is longer there
	}
	s.PerTick = 1000
	if err := s.CheckRate(40e9); err == nil {
		t.Error("1000 notices in 40 us of 40 Gb/s are taken")
	}
	s.QMid = 100_000
	if _, err := s.Options(1, 40e9); err == nil {
		t.Error("qmid below qref is taken")
	}
}
