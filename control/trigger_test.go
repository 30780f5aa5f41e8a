package control

import (
	"testing"

	"gswitch/config"
	"gswitch/frame"
	"gswitch/vswitch"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// A switch whose neighbour pauses it for longer than the watchdog of flow control waits asks for
// a file, once, and not before.
func TestTriggersOfASwitch(t *testing.T) {
	c, err := config.Parse("s.yaml", []byte(`version: 1
switches:
  - name: s
    ports: [{name: a, interface: a, rate: 1Gbps, trust: dscp}, {name: b, interface: b, rate: 1Gbps, trust: dscp}]
    pfc: {classes: [3], watchdog: {detect: 1ms, restore: 1ms, action: drop}}
    buffer: {size: 50KB}
`))
	if err != nil {
		t.Fatal(err)
	}
	pool := frame.NewPool(frame.MustArena(64, 2048, frame.DefaultHeadroom))
	sw, err := vswitch.New(c.Resolved().Switches[0].VSwitch(nil), []*frame.Pool{pool})
	if err != nil {
		t.Fatal(err)
	}
	n := sw.Nodes[0]
	on, err := ParseTriggers([]string{"pause-storm"})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	watch, now := on.watch(n), frame.Time(1)
	step := func(port uint16, b []byte) {
		if b != nil {
			n.Receive(now, port, []frame.Ref{pool.New(b)})
		}
		n.Advance(now)
		var out [8]frame.Ref
		for port := range uint16(2) {
			for _, f := range out[:n.Transmit(now, port, out[:])] {
				pool.Free(f)
			}
		}
		now += 100 * frame.Microsecond
		seen[watch()]++
	}
	for port := range uint16(2) {
		n.SetLink(now, port, true)
	}
	packet := wt.Frame(wt.Eth(wt.MAC(2), wt.MAC(1)), wt.IPv4("10.0.0.1", "10.0.0.2", wt.TOS(26<<2)), wt.UDP(1, 9), wt.Zeros(100))
	step(0, packet)
	step(1, wt.PFC(wire.MAC{2, 0, 0, 0, 0, 2}, 1<<3, 0xffff))
	for range 5 {
		step(0, packet)
	}
	if len(seen) != 1 {
		t.Errorf("before the watchdog has waited long enough: %v", seen)
	}
	for range 40 {
		step(0, packet)
	}
	if seen["pause-storm"] != 1 || len(seen) != 2 {
		t.Errorf("in a storm: %v", seen)
	}
}

// A host asks for a file when a timer ran out or a frame was lost since it was last looked at.
func TestTriggersOfAHost(t *testing.T) {
	var drops [frame.NumReasons]uint64
	timeouts := uint64(3)
	on, err := ParseHostTriggers([]string{"timeout", "drop:bad-icrc"})
	if err != nil {
		t.Fatal(err)
	}
	watch := on.WatchHost(&drops, &timeouts)
	for i, c := range []struct {
		timeouts, bad, other uint64
		want                 string
	}{{0, 0, 0, ""}, {0, 0, 0, ""}, {1, 0, 0, "timeout"}, {0, 0, 0, ""}, {0, 2, 0, "drop:bad-icrc"}, {0, 0, 1, ""}, {1, 0, 1, "timeout"}} {
		timeouts += c.timeouts
		drops[frame.BadICRC] += c.bad
		drops[frame.ForeignMAC] += c.other
		if got := watch(); got != c.want {
			t.Errorf("look %d: %q, want %q", i, got, c.want)
		}
	}
	for _, bad := range []string{"pause-storm", "timeouts", "drop:no"} {
		if _, err := ParseHostTriggers([]string{bad}); err == nil {
			t.Errorf("%q is a trigger of hosts", bad)
		}
	}
	if _, err := ParseTriggers([]string{"timeout"}); err == nil {
		t.Error("a timeout is a trigger of switches")
	}
}
