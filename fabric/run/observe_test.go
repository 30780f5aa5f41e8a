package run

import (
	"context"
	"strings"
	"testing"

	"gswitch/fabric/live"
	"gswitch/fabric/measure"
	"gswitch/fabric/observe"
	"gswitch/fabric/results"
	"gswitch/fabric/scenario"
	"gswitch/fabric/vnet"
	"gswitch/frame"
)

// rehearsed is what the system of the tests learned of its last rehearsal.
var rehearsed struct{ payload int }

func init() {
	observe.Register(&observe.System{
		Name:    "looker",
		On:      func(d *scenario.Document) bool { return d.Title == "looked at" },
		Divided: "title: who looks needs all nodes: run it with --processes one",
		Values:  []measure.Key{{Name: "looks_total", Of: measure.OfRun, Doc: "Looks."}},
		Configure: func(_ *scenario.Run, _ bool, c *vnet.Config) error {
			c.Payload = 500
			return nil
		},
		New: func(ctx context.Context, r *observe.Run) (*observe.Observer, error) {
			looks := 0
			if err := r.Rehearse(ctx, func(c *vnet.Config) { rehearsed.payload = c.Payload }); err != nil {
				return nil, err
			}
			return &observe.Observer{
				Network: func(c *vnet.Config) { c.Payload *= 2 },
				Begin: func(n *vnet.Network, _ *measure.Recorder) error {
					n.Engine.Every(100*frame.Microsecond, 100*frame.Microsecond, func(frame.Time) { looks++ })
					return nil
				},
				Finish: func(_ *vnet.Network, out *results.Run) error {
					out.Values["looks_total"] = float64(looks)
					return nil
				},
			}, nil
		},
	})
}

// A registered system changes the network of runs that have it, in the rehearsal and
// in the run, and what it measures is a value that expectations name.
func TestObserved(t *testing.T) {
	const text = `version: 1
title: looked at
topology: {generate: star(2), classes: {host: {rate: 10Gbps, delay: 1us}}}
hosts: {payload: 1000B}
workload: [{group: a, kind: flows, flows: [{from: h1, to: h2, size: 100KB}]}]
duration: 1ms
variants:
  - {name: on}
  - {name: off, set: {title: nobody looks, hosts.payload: 2000B}}
expect:
  - on.looks_total == 10
  - on.data_frames_total == 2 * off.data_frames_total
`
	f := execute(t, text, Options{Jobs: 1})
	unmet(t, "all", f.Checks)
	for i := range f.Runs {
		unmet(t, f.Runs[i].Name, f.Runs[i].Checks)
		if _, there := f.Runs[i].Values["looks_total"]; there != (f.Runs[i].Name == "on") {
			t.Errorf("%s: somebody looked: %v", f.Runs[i].Name, there)
		}
	}
	if rehearsed.payload != 500 {
		t.Errorf("rehearsed with %d bytes", rehearsed.payload)
	}
	s := load(t, text, scenario.Options{})
	h := &host{o: &Options{On: Netns, Live: Live{Division: live.Hosts, Start: func(string, string) (*Process, error) { return nil, nil }}}}
	if err := h.checkDivision(s); err == nil || !strings.Contains(err.Error(), "needs all nodes") {
		t.Errorf("divided: %v", err)
	}
}
