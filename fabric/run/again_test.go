package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gswitch/fabric/results"
	"gswitch/fabric/scenario"
	"gswitch/fabric/view"
	"gswitch/fabric/vnet"
	"gswitch/frame"
	records "gswitch/replay"
)

// troubled is a network in which links and nodes do all that they can do wrong.
const troubled = `version: 1
name: troubled
topology:
  generate: leaf-spine(2,2,2)
  classes: {host: {rate: 25Gbps, delay: 1us}, fabric: {rate: 25Gbps, delay: 1us}}
switch: {buffer: {size: 200KB}}
pfc: {enabled: true}
hosts: {cc: dcqcn, transport: {mode: irn, rto_low: 100us, rto_high: 400us}}
workload:
  - {group: burst, kind: incast, from: [h1..h3], to: [h4], size: 60KB, count: 2}
  - {group: back, kind: permutation, size: 40KB}
faults:
  - {kind: loss, link: "leaf1:spine1", share: 0.02, both: true}
  - {kind: reorder, link: "leaf2:spine1", share: 0.05, delay: 5us, both: true}
  - {kind: corrupt, link: "leaf1:spine2", share: 0.02}
  - {kind: duplicate, link: "leaf2:spine2", share: 0.03, both: true}
  - {kind: down, link: "leaf1:spine2", start: 100us, stop: 180us}
  - {kind: pause, node: leaf2, start: 200us, stop: 230us}
  - {kind: slow-node, node: h4, gap: 2us, start: 250us, stop: 400us}
  - {kind: reboot, node: spine1, start: 300us, stop: 350us}
measure: {sample: 1us, bin: 10us, queues: [all]}
duration: 1500us
until: done
variants:
  - {name: dcqcn, set: {switch.ecn: {kmin: 10KB, kmax: 40KB, pmax: 0.5}}}
  - {name: hpcc, set: {hosts.cc: hpcc, hosts.transport.mode: go-back-n}}
  - {name: tcp, set: {hosts.transport.mode: go-back-n, hosts.cc: none, hosts.tcp: {enabled: true, min_rto: 200us}}}
`

// quick is a run that takes next to nothing.
const quick = `version: 1
name: quick
topology: {generate: star(3), classes: {host: {rate: 100Gbps, delay: 1us}}}
switch: {buffer: {size: 100KB}}
workload: [{group: burst, kind: incast, from: [h1..h2], to: [h3], size: 50KB}]
duration: 1ms
until: done
`

// recordRun runs a scenario in real time with records.
func recordRun(t *testing.T, text string, o Options) (*results.File, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "s.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := scenario.Load(file, scenario.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if o.Out == "" {
		o.Out = t.TempDir()
	}
	return Scenario(context.Background(), s, o)
}

func replayRun(t *testing.T, b []byte, x *Replay) error {
	t.Helper()
	in, err := records.NewReader(bytes.NewReader(b))
	if err != nil {
		return err
	}
	return x.Again(context.Background(), in)
}

// A run on real frames happens again from its record: all nodes send the same, and what is
// measured is the same, whatever links and nodes did, and however late the worker was.
func TestRunsHappenAgain(t *testing.T) {
	both(t, func(t *testing.T, o Options) {
		o.Record, o.Live.Workers, o.Live.Dilation = true, 1, 100
		f, err := recordRun(t, troubled, o)
		if err != nil {
			t.Fatal(err)
		}
		for i := range f.Runs {
			was := &f.Runs[i]
			b, err := os.ReadFile(was.Record)
			if err != nil {
				t.Fatal(err)
			}
			var x Replay
			if err := replayRun(t, b, &x); err != nil || x.Cut != nil || !x.Player.Ended() {
				t.Errorf("%s: %v, %v", was.Name, err, x.Cut)
				continue
			}
			frames, sums := x.Player.Sent()
			t.Logf("%s: %d frames, %d hashes, %d bytes of record", was.Name, frames, sums, len(b))
			if frames < 500 || sums < 1 {
				t.Errorf("%s: %d frames, %d hashes", was.Name, frames, sums)
			}
			is := x.Result
			for name, v := range was.Values {
				// What links did is not in the record, but in what came.
				if got := is.Values[name]; got != v && !strings.HasPrefix(name, "faults_") && name != "run_seconds" {
					t.Errorf("%s: %s is %v, it was %v", was.Name, name, got, v)
				}
			}
			if !reflect.DeepEqual(is.CDFs, was.CDFs) || !reflect.DeepEqual(is.Buckets, was.Buckets) || is.VirtualTime != was.VirtualTime {
				t.Errorf("%s: distributions differ", was.Name)
			}
		}
	})
}

// A record of a run that is not whole, or wrong, says so.
func TestRecordsOfRunsDamaged(t *testing.T) {
	f, err := recordRun(t, quick, Options{On: Wire, Record: true, Live: Live{Workers: 1, Dilation: 50}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(f.Runs[0].Record)
	if err != nil {
		t.Fatal(err)
	}
	for i := 20; i < len(b); i += 1 + len(b)/20 {
		bad := bytes.Clone(b)
		bad[i] ^= 4
		var x Replay
		if err := replayRun(t, bad, &x); err == nil {
			t.Errorf("byte %d of %d is wrong, and nobody noticed", i, len(b))
		}
	}
	var cut Replay
	if err := replayRun(t, b[:len(b)-4], &cut); err != nil || !errors.Is(cut.Cut, records.ErrCut) {
		t.Errorf("cut off: %v, %v", err, cut.Cut)
	}
	// At an instant the network is as it was then, and the replay ends.
	at := Replay{Instants: []frame.Time{4 * frame.Microsecond, 10 * frame.Microsecond}}
	var seen []frame.Time
	at.At = func(n *vnet.Network, now frame.Time) error {
		if then := n.Engine.Now(); then > now || then < now/2 {
			t.Errorf("at %v it is %v", now.Duration(), then.Duration())
		}
		seen = append(seen, now)
		look := view.NetworkAt(n, view.NetworkOptions{})
		if s := look.Sample(now, 0); len(s.Ports) != 2*len(n.Topology.Links) || len(s.Flows) == 0 || s.Time != now.Seconds() {
			t.Errorf("at %v: %+v", now.Duration(), s)
		}
		return nil
	}
	if err := replayRun(t, b, &at); err != nil || at.Result != nil || !slices.Equal(seen, at.Instants) {
		t.Errorf("%v, at %v", err, seen)
	}
	at.At = func(*vnet.Network, frame.Time) error { return errors.New("no") }
	if err := replayRun(t, b, &at); err == nil || err.Error() != "no" {
		t.Errorf("%v", err)
	}
}

// The records of runs are kept where there is something to look into, and that of a run on
// several workers is refused, or not made.
func TestRecordsAreKept(t *testing.T) {
	kept := func(text string, o Options) int {
		t.Helper()
		o.On, o.Out = Wire, t.TempDir()
		f, err := recordRun(t, text, o)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for i := range f.Runs {
			if f.Runs[i].Record != "" {
				n++
			}
		}
		files, err := filepath.Glob(filepath.Join(o.Out, "records", "*.grec"))
		if err != nil || len(files) != n {
			t.Errorf("%d files, %d in the results, %v", len(files), n, err)
		}
		return n
	}
	one := Live{Workers: 1, Dilation: 20, Bound: frame.Second}
	if n := kept(quick, Options{Live: one}); n != 0 {
		t.Errorf("%d records are kept of runs with nothing to look into", n)
	}
	if n := kept(quick+"expect: [drops_total < 0]\n", Options{Live: one}); n != 1 {
		t.Errorf("%d records are kept where an expectation does not hold", n)
	}
	if n := kept(quick, Options{Live: Live{Workers: 1, Dilation: 20, Bound: 1}}); n != 1 {
		t.Errorf("%d records are kept of runs that did not keep time", n)
	}
	if n := kept(quick+"expect: [drops_total < 0]\n", Options{Live: Live{Workers: 2, Dilation: 20}}); n != 0 {
		t.Errorf("%d records of runs on two workers", n)
	}
	// One that replaces a file does not keep its mode.
	o := Options{On: Wire, Record: true, Out: t.TempDir(), Live: one}
	file := filepath.Join(o.Out, "records", "quick-seed-1.grec")
	if err := errors.Join(os.Mkdir(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("old"), 0o600), os.Chmod(file, 0o644)); err != nil {
		t.Fatal(err)
	}
	f, err := recordRun(t, quick, o)
	if err != nil || f.Runs[0].Record != file {
		t.Fatalf("%v, %v", f, err)
	}
	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 || st.Size() < 1000 {
		t.Errorf("%v, %v", st, err)
	}
	if _, err := recordRun(t, quick, Options{On: Wire, Record: true, Live: Live{Workers: 2, Dilation: 20}}); err == nil || !strings.Contains(err.Error(), "--workers 1") {
		t.Errorf("two workers: %v", err)
	}
	if _, err := recordRun(t, quick, Options{On: Wire, Record: true, Out: fmt.Sprintf("/proc/%d/none", os.Getpid())}); err == nil {
		t.Error("a record went nowhere")
	}
}
