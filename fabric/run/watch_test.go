package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"sync"
	"testing"

	"gswitch/fabric/observe/losses"
	"gswitch/fabric/view"
)

// A viewer does not change the run, and sees it to its end. A machine with
// other work may let viewers wait until a run is over: then it is run
// again, until each was seen under way.
func TestWatchingChangesNothing(t *testing.T) {
	underWay := map[string]bool{}
	for len(underWay) < watched(t, underWay) {
	}
}

// watched looks at all runs once, notes which of them it saw under way, and
// returns how many there are.
func watched(t *testing.T, underWay map[string]bool) int {
	var mu sync.Mutex
	var group sync.WaitGroup
	last := map[string]*view.Sample{}
	f := execute(t, every, Options{Jobs: 2, Watch: func(src view.Source) {
		group.Go(func() {
			for {
				s, err := src.Sample(context.Background())
				mu.Lock()
				if s != nil {
					last[s.Run] = s
					if !s.Done {
						underWay[s.Run] = true
					}
				}
				mu.Unlock()
				if errors.Is(err, io.EOF) {
					return
				}
			}
		})
	}})
	group.Wait()
	for i := range f.Runs {
		r := &f.Runs[i]
		name := fmt.Sprintf("%s %d", r.Name, r.Seed)
		if r.Digest != histories[name] {
			t.Errorf("while it is watched, the digest of %q is %q, it was %q", name, r.Digest, histories[name])
		}
		s := last[fmt.Sprintf("%s (seed %d)", r.Name, r.Seed)]
		if s == nil || !s.Done {
			t.Errorf("the end of %q was not seen", name)
			continue
		}
		if got, want := s.Drops, uint64(r.Values["drops_total"]); got != want {
			t.Errorf("%s: at its end %d drops are seen, it had %d", name, got, want)
		}
		var pauses uint64
		for _, p := range s.Ports {
			if p.Class != nil {
				pauses += p.Pauses
			}
		}
		if want := uint64(r.Values["pauses_total"]); pauses != want {
			t.Errorf("%s: at its end %d pauses are seen, it had %d", name, pauses, want)
		}
		if s.Time < r.VirtualTime {
			t.Errorf("%s: the last sample is of %v s, the run ended at %v s", name, s.Time, r.VirtualTime)
		}
	}
	return len(f.Runs)
}

// A viewer of a run sees what the meters of links found, link by link.
func TestWatchersSeeLosses(t *testing.T) {
	var last *view.Sample
	var layout *view.Layout
	var group sync.WaitGroup
	f := execute(t, `version: 1
topology: {generate: "leaf-spine(2, 2, 2)", classes: {host: {rate: 10Gbps, delay: 1us}, fabric: {rate: 10Gbps, delay: 1us}}}
switch: {lossradar: {enabled: true, batch: 1ms}}
hosts: {cc: dctcp}
workload:
  - {group: all, kind: poisson, sizes: WebSearch, load: 0.3, stop: 6ms}
faults:
  - {kind: loss, link: "leaf1:spine1", share: 0.05}
duration: 12ms
`, Options{Jobs: 1, Watch: func(src view.Source) {
		layout = src.Layout()
		group.Go(func() {
			for {
				s, err := src.Sample(context.Background())
				if s != nil {
					last = s
				}
				if errors.Is(err, io.EOF) {
					return
				}
			}
		})
	}})
	group.Wait()
	seen, found := map[string]uint64{}, map[string]uint64{}
	for _, l := range last.Losses {
		for _, link := range layout.Links {
			for _, way := range [][2]view.End{{link.A, link.B}, {link.B, link.A}} {
				if way[0] == l.End {
					seen[fmt.Sprintf("%s>%s %s", layout.Nodes[way[0].Node].Name, layout.Nodes[way[1].Node].Name, l.Cause)] += l.Frames
				}
			}
		}
		if l.Last <= 0 || l.Last > 0.012 {
			t.Errorf("%+v", l)
		}
	}
	for _, l := range losses.Found.Of(&f.Runs[0]) {
		found[l.Link+" "+l.Cause] = uint64(l.Frames)
	}
	if len(found) == 0 || !maps.Equal(seen, found) {
		t.Errorf("%v is seen, %v was found", seen, found)
	}
}

// A viewer of a run sees where packets went that hosts marked, while they are on their
// way: through the link that loses some, and not behind it.
func TestWatchersSeeWays(t *testing.T) {
	var layout *view.Layout
	var group sync.WaitGroup
	kinds, last := map[string]int{}, map[string]int{} // of the ways that were seen, and of the nodes where they end
	f := execute(t, `version: 1
topology: {generate: "leaf-spine(2, 3, 2)", classes: {host: {rate: 10Gbps, delay: 1us}, fabric: {rate: 10Gbps, delay: 1us}}}
switch:
  watch: {enabled: true, sessions: [{name: everflow, to: 10.0.2.3, snap: 128, everflow: {sample: 0}}]}
hosts:
  cc: dctcp
  debug: {enabled: true, match: [{name: all, protocol: udp, dst: 10.0.1.2/32}], most: 100000}
workload: [{group: all, kind: flows, flows: [{from: h1, to: h3, size: 4MB}, {from: h2, to: h3, size: 4MB}]}]
faults: [{kind: loss, link: "spine1:leaf2", share: 0.05}, {kind: loss, link: "spine2:leaf2", share: 0.05}]
measure: {traces: [h6]}
duration: 8ms
`, Options{Jobs: 1, Watch: func(src view.Source) {
		layout = src.Layout()
		group.Go(func() {
			for {
				s, err := src.Sample(context.Background())
				if s != nil {
					for _, w := range s.Ways {
						if !strings.HasSuffix(w.Flow, "> 10.0.1.2:4791") {
							continue // a NAK
						}
						kinds[w.Kind]++
						if w.Kind == "lost" {
							last[layout.Nodes[w.Nodes[len(w.Nodes)-1]].Name]++
						} else if n := len(w.Nodes); layout.Nodes[w.Nodes[n-1]].Name != "h3" || n != 5 || layout.Nodes[w.Nodes[1]].Name != "leaf1" {
							t.Errorf("%+v", w)
						}
					}
				}
				if errors.Is(err, io.EOF) {
					return
				}
			}
		})
	}})
	group.Wait()
	if kinds["delivered"] == 0 || kinds["lost"] == 0 || len(kinds) != 2 || last["spine1"]+last["spine2"] != kinds["lost"] || f.Runs[0].Values["traces_lost_total"] < 20 {
		t.Errorf("%v, of these lost behind %v; in all %v are lost", kinds, last, f.Runs[0].Values["traces_lost_total"])
	}
}
