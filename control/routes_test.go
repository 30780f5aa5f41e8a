package control

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"gswitch/config"
)

// TestRoutesOnlyOrder: a change of routes is commanded in the documents' order, first those that are
// new or other than before, then those that go, so that equal changes are recorded alike.
func TestRoutesOnlyOrder(t *testing.T) {
	route := func(i int, via string) config.Route {
		return config.Route{Prefix: netip.MustParsePrefix(fmt.Sprintf("10.%d.0.0/16", i)), Via: netip.MustParseAddr(via)}
	}
	var old, next config.Switch
	var want []string
	order := rand.New(rand.NewPCG(1, 2)).Perm(64)
	for _, i := range order {
		old.Routes = append(old.Routes, route(i, "10.255.0.1"))
		switch i % 4 {
		case 0: // stays
			next.Routes = append(next.Routes, route(i, "10.255.0.1"))
		case 1: // changes
			next.Routes = append(next.Routes, route(i, "10.255.0.2"))
			want = append(want, fmt.Sprintf("set 10.%d.0.0/16", i))
		}
	}
	for i := 100; i > 90; i-- { // new
		next.Routes = append(next.Routes, route(i, "10.255.0.1"))
		want = append(want, fmt.Sprintf("set 10.%d.0.0/16", i))
	}
	for _, i := range order {
		if i%4 > 1 { // goes
			want = append(want, fmt.Sprintf("delete 10.%d.0.0/16", i))
		}
	}
	changes, few := routesOnly(&old, &next)
	if !few {
		t.Fatal("a change of routes alone is not recognised")
	}
	var got []string
	for _, c := range changes {
		if c.new == nil {
			got = append(got, "delete "+c.old.Prefix.String())
		} else {
			got = append(got, "set "+c.new.Prefix.String())
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("commands in the order\n%v, want\n%v", got, want)
	}
}
