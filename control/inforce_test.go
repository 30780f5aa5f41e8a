package control

import (
	"testing"

	"gswitch/config"
	"gswitch/frame"
)

const asleep = `version: 1
workers: [{poll: sleep}, {poll: sleep}]
switches:
- name: s1
  ports:
  - {name: p1, wire: a, workers: [0], address: [10.0.0.1/24]}
  - {name: p2, wire: a, workers: [1], address: [10.0.1.1/24]}
`

// What is applied is in force on every worker when the call returns, also on one
// that sleeps: its next frame goes by it.
func TestInForceWhenItReturns(t *testing.T) {
	d, _ := run(t, asleep)
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
			c.Switches[0].Routes = parse(t, asleep+"  routes: [{prefix: 20.0.0.0/8, via: 10.0.0.2}]\n").Switches[0].Routes
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
