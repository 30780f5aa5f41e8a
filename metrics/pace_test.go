package metrics

import (
	"testing"

	"gswitch/hostnic"
)

// Queue pairs with nothing to send are left out, and those without a window do
// not make the least window zero.
func TestPace(t *testing.T) {
	var p Pace
	for _, v := range []hostnic.QPView{
		{Rate: 1, Window: 1},                                 // idle
		{Rate: 40e9, Window: 3000, Messages: 1},              // about to begin
		{Rate: 25e9, InFlight: 1000},                         // no window
		{Rate: 30e9, Window: 2000, InFlight: 500},            // the rest of a message
		{Rate: 50e9, Window: 9000, Messages: 2, InFlight: 7}, // both
	} {
		p.add(&v)
	}
	want := Pace{Sending: 4, Rate: 145e9, LeastRate: 25e9, Windowed: 3, Window: 14000, LeastWindow: 2000, InFlight: 1507}
	if p != want {
		t.Errorf("got %+v, want %+v", p, want)
	}
}
