package mirror

import (
	"math"
	"testing"
)

// Sections 3.1, 8.2 and 8.3 of the paper: a network of 100 Tb/s with 250,000 links.
func TestCosts(t *testing.T) {
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got/want-1) > 0.001 {
			t.Errorf("%s: %.5g, want %.5g", what, got, want)
		}
	}
	server := Analyzer{Packets: 4.8e6, Rate: 10e9} // eight cores, a NIC of 10 Gb/s
	all := Load{Traffic: 100e12, Packet: 1000, Hops: 5, Share: 1, Copy: 64}
	near("all packets, 64 bytes each", all.Rate(), 32e12)
	if n := server.For(0, all.Rate()); n != 3200 {
		t.Errorf("all packets: %d analyzers, want 3200", n)
	}
	// 0.38 % of the traffic, copies of 156.4 bytes.
	rate := 0.0038 * 100e12
	some := Load{Traffic: 100e12, Packet: 1000, Hops: 5, Copy: 156.4}
	some.Share = rate / 8 / some.Copy / (some.Traffic / 8 / some.Packet * some.Hops)
	near("rate", some.Rate(), 380e9)
	near("copies", some.Packets(), 303.7e6)
	if n := server.For(300e6, some.Rate()); n != 63 { // as the paper rounds
		t.Errorf("%d analyzers, want 63", n)
	}
	near("counters of an analyzer", Counters(250_000, 10), 5e6)
	near("traces that are kept", Kept(rate, 1e-4), 4.75e6)
	near("memory of an analyzer", Held(server, 1), 1.25e9)
}
