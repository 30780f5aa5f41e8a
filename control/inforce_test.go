package control

import (
	"fmt"
	"testing"

	"gswitch/config"
	"gswitch/frame"
)

// asleep is a switch on two workers; %[1]s is a directory.
const asleep = `version: 1
workers: [{poll: sleep}, {poll: sleep}]
switches:
- name: s1
  ports:
  - {name: p1, pcap: {write: %[1]s/a.pcapng}, workers: [0], address: [10.0.0.1/24]}
  - {name: p2, pcap: {write: %[1]s/b.pcapng}, workers: [1], address: [10.0.1.1/24]}
`

// What is applied is in force on every worker when the call returns, also on one
// that sleeps: its next frame goes by it.
func TestInForceWhenItReturns(t *testing.T) {
	document := fmt.Sprintf(asleep, t.TempDir())
	d, _ := run(t, document)
	u := d.units[0]
	adopted := func() (n [2]uint64) {
		for i, w := range u.workers {
			// Between two loops, before the worker looks for a new program.
			if err := d.engine.Worker(w).Do(func(frame.Time) { n[i] = u.sw.Nodes[i].Counts().Programs }); err != nil {
				t.Fatal(err)
			}
		}
		return n
	}
	for what, change := range map[string]func(c *config.Config){
		"a route": func(c *config.Config) {
			c.Switches[0].Routes = parse(t, document+"  routes: [{prefix: 20.0.0.0/8, via: 10.0.0.2}]\n").Switches[0].Routes
		},
		"a switch": func(c *config.Config) { c.Switches[0].Strict = true },
	} {
		before := adopted()
		if _, err := d.Edit(func(c *config.Config) error { change(c); return nil }, false); err != nil {
			t.Fatal(err)
		}
		if after := adopted(); after[0] == before[0] || after[1] == before[1] {
			t.Errorf("%s: workers had taken up %v programs before and %v when it was applied", what, before, after)
		}
	}
}
