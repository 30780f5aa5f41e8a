package rocc

import (
	"testing"

	"gswitch/frame"
)

func TestOptions(t *testing.T) {
	if p := (&Options{}).At(40e9); p != For(40e9) {
		t.Errorf("nothing set gives %+v", p)
	}
	p := (&Options{QRef: 75_000, Alpha: 0.1, FMin: 55e6, First: Cuts["half"], Regions: 7, Period: 20 * frame.Microsecond}).At(40e9)
	want := Params{QueueUnit: 600, RateUnit: 10_000_000, Period: 20 * frame.Microsecond, FMin: 5, FMax: 4000, QRef: 75_000, QMid: 150_000, QMax: 180_000,
		Alpha: 0.1, Beta: 0.5, First: CutToHalf, Regions: 7}
	if p != want {
		t.Errorf("%+v, want %+v", p, want)
	}
	p = (&Options{QRef: 75_000, QMid: 160_000, QMax: 210_000, Beta: 2, FMin: 1}).At(40e9)
	if p.QMid != 160_000 || p.QMax != 210_000 || p.Alpha != 0.3 || p.Beta != 2 || p.FMin != 1 {
		t.Errorf("%+v", p)
	}
	if p := (&Options{QRef: 1 << 31}).At(40e9); p.Validate() == nil {
		t.Errorf("a reference beyond the lengths there are is taken: %+v", p)
	}
}
