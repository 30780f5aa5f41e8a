package gswitch

import (
	"context"
	"errors"
	"strings"
	"testing"

	"gswitch/control/api"
)

// The output says for each port which stamps it has, by the hardware or in software. It says of a clock
// that it has no bound, or follows no plan; and what a hop adds to the bound, or that it is measured.
func TestPrintClocks(t *testing.T) {
	hardware, software := "hardware: the clock of the NIC", "kernel: the XDP program, when the driver hands the frame over"
	clocks := &api.Clocks{Clocks: []*api.Clock{{Switch: "s1", State: "primary", Eps: 25_000, Depth: 1, Hop: 20_000, Parent: "p1", Root: 0xabc, Controlled: true,
		Plan: &api.ClockPlan{Epoch: 7, Second: "p2"}, Ports: []*api.ClockPort{{Port: "p1", Stamps: hardware}, {Port: "p2", Stamps: software}}}}}
	lines := func() (v []string) {
		var b strings.Builder
		printClocks(&b, clocks)
		for line := range strings.Lines(b.String()) {
			v = append(v, strings.Join(strings.Fields(line), " "))
		}
		return v
	}
	heads := []string{"SWITCH STATE UNCERTAINTY HOPS A HOP PARENT SECOND ROOT PLAN", "PORT STAMPS OF WHAT ARRIVES", "what leaves is stamped last before the kernel gets it"}
	want := []string{heads[0], "s1 primary 25us 1 20us p1 p2 0000000000000abc 7", "", heads[1], "p1 " + hardware, "p2 " + software, heads[2], ""}
	if got := strings.Join(lines(), "\n"); got != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	clocks.Clocks = append(clocks.Clocks, &api.Clock{Switch: "s2", State: "unsynchronised", Eps: -1, Ports: []*api.ClockPort{{Port: "p1", Stamps: "none: no link"}}})
	want = []string{heads[0], "s1 primary 25us 1 20us p1 p2 0000000000000abc 7", "s2 unsynchronised - 0 measured - - 0000000000000000 -", "", heads[1], "s1/p1 " + hardware, "s1/p2 " + software, "s2/p1 none: no link", heads[2], ""}
	if got := strings.Join(lines(), "\n"); got != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

// clocked is a daemon of a switch with a clock and two ports, which counts at the first.
type clocked struct{ api.ControlClient }

func (clocked) ListCounters(_ context.Context, r *api.ListRequest) (*api.Counters, error) {
	switch {
	case r.Feature != "clock":
		return nil, errors.New("another feature")
	case r.Port == "" || r.Port == "p1":
		return &api.Counters{Counters: []*api.Counter{{Switch: "s1", Port: "p1", Name: "clock_depth", Value: 3}}}, nil
	case r.Port == "p2":
		return &api.Counters{}, nil
	}
	return nil, errors.New("no such port")
}

func (clocked) ListClocks(context.Context, *api.ListRequest) (*api.Clocks, error) {
	return &api.Clocks{Clocks: []*api.Clock{{Switch: "s1", Ports: []*api.ClockPort{{Port: "p1"}, {Port: "p2"}}}}}, nil
}

// Whichever port is asked for, the clock and its counters are those of the switch, and the
// stamps are the port's.
func TestClocksOfPort(t *testing.T) {
	for port, ports := range map[string]int{"": 2, "p1": 1, "p2": 1} {
		m, err := clocks(t.Context(), clocked{}, &api.ListRequest{Port: port, Feature: "clock"})
		if err != nil {
			t.Fatal(err)
		}
		if len(m.Counters) != 1 || len(m.Clocks) != 1 || len(m.Clocks[0].Ports) != ports || port != "" && m.Clocks[0].Ports[0].Port != port {
			t.Errorf("port %q: %v", port, m)
		}
	}
	if _, err := clocks(t.Context(), clocked{}, &api.ListRequest{Port: "p3", Feature: "clock"}); err == nil {
		t.Error("a port that is not there")
	}
}
