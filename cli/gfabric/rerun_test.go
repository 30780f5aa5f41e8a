package gfabric

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gswitch/capture"
	"gswitch/control/cli"
	"gswitch/fabric/results"
	runner "gswitch/fabric/run"
	"gswitch/fabric/scenario"
)

// crowd is a run in which a port of s1 drops, and another switch passes everything.
const crowd = `version: 1
name: crowd
topology: {generate: 'dumbbell(3,2)', classes: {host: {rate: 100Gbps, delay: 1us}, fabric: {rate: 100Gbps, delay: 1us}}}
switch: {buffer: {size: 60KB}}
hosts: {transport: {rto_low: 100us, rto_high: 400us}}
workload: [{group: burst, kind: incast, from: [h1..h3], to: [h4], size: 100KB}]
duration: 5ms
until: done
`

// streams is a run with connections of TCP.
const streams = `version: 1
name: streams
topology: {generate: star(3), classes: {host: {rate: 10Gbps, delay: 1us}}}
hosts: {payload: 1448B, tcp: {enabled: true}}
workload: [{group: long, kind: flows, flows: [{from: h1, to: h3, size: 1MB}, {from: h2, to: h3, size: 1MB}]}]
duration: 200ms
until: done
`

// detour is a run in which leaf1 sends by another spine from some instant on.
const detour = `version: 1
name: detour
topology: {generate: 'leaf-spine(2,2,1)', classes: {host: {rate: 10Gbps, delay: 1us}, fabric: {rate: 10Gbps, delay: 1us}}}
switch: {detours: [{at: leaf1, to: leaf2, via: spine1}, {at: leaf1, to: leaf2, via: spine2, from: 100us}]}
workload: [{group: one, kind: flows, flows: [{from: h1, to: h2, size: 1MB}]}]
duration: 5ms
until: done
`

// moved is a run in which a controller sends what spine1 loses by spine2.
const moved = `version: 1
name: moved
topology: {generate: 'leaf-spine(2,2,2)', classes: {host: {rate: 1Gbps, delay: 1us}, fabric: {rate: 1Gbps, delay: 1us}}}
switch: {flowradar: {enabled: true, flows: 500, slot: 1ms}}
hosts: {transport: {rto_high: 200us}}
workload: [{group: steady, kind: periodic, from: [h1..h2], to: [h3..h4], size: 5KB, every: 200us, stop: 9ms}]
controller: {blackholes: move, takes: 100us}
faults: [{kind: loss, link: "leaf1:spine1", share: 1, start: 1500us}]
duration: 10ms
`

// probing is a run in which h1 sends probes, and else h3 alone sends anything.
const probing = `version: 1
name: probing
topology: {generate: 'leaf-spine(2,2,2)', classes: {host: {rate: 1Gbps, delay: 1us}, fabric: {rate: 1Gbps, delay: 1us}}}
switch:
  watch:
    enabled: true
    sessions: [{name: everflow, to: 10.0.1.2, snap: 192, everflow: {sample: 0}}]
    probes: {from: [10.0.0.0/30]}
workload: [{group: one, kind: flows, flows: [{from: h3, to: h2, size: 5KB}]}]
probes: [{name: there, from: h1, via: [spine1, leaf2], to: spine1, every: 20us, count: 20}]
measure: {traces: [h4]}
duration: 2ms
`

// numberOf is the sum of the numbers that a key has in a message.
func numberOf(t *testing.T, said, key string) (sum float64) {
	t.Helper()
	for _, m := range regexp.MustCompile(`"`+key+`":\s*"?([0-9.e+]+)`).FindAllStringSubmatch(said, -1) {
		v, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += v
	}
	return sum
}

// A host of a run shows its connections of TCP at an instant.
func TestConnectionsOfARun(t *testing.T) {
	record, _ := recordedRun(t, streams)
	said, err := replayOf(t, record, "--until", `received{node="h3"} >= 200`, "--", "ghost", "show", "tcp", "--json")
	if err != nil || strings.Count(said, "ESTABLISHED") != 2 || !strings.Contains(said, "10.0.0.1:") || !strings.Contains(said, "10.0.0.2:") {
		t.Errorf("%v: %s", err, said)
	}
	if n := numberOf(t, said, "received"); n < 200 || n >= 264 {
		t.Errorf("%v segments of the 200 frames that were received: %s", n, said)
	}
	said, err = replayOf(t, record, "--node", "h1", "--until", `received{node="h3"} >= 200`, "--", "ghost", "show", "tcp", "--json")
	if n := numberOf(t, said, "acked"); err != nil || strings.Count(said, "ESTABLISHED") != 1 || n <= 0 || n >= 1e6 {
		t.Errorf("%v: %s", err, said)
	}
}

// recordedRun is the record of a whole run, in real time, and what it dropped.
func recordedRun(t *testing.T, document string) (record string, drops int) {
	t.Helper()
	r := resultOf(t, document)
	return r.Record, int(r.Values["drops_total"])
}

// resultOf is what a run with a record came to.
func resultOf(t *testing.T, document string) *results.Run {
	t.Helper()
	file := filepath.Join(t.TempDir(), "crowd.yaml")
	if err := os.WriteFile(file, []byte(document), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := scenario.Load(file, scenario.Options{})
	if err != nil {
		t.Fatal(err)
	}
	out, err := runner.Scenario(context.Background(), s, runner.Options{Version: version, On: runner.Wire, Out: t.TempDir(), Record: true, Live: runner.Live{Workers: 1, Dilation: 50}})
	if err != nil {
		t.Fatal(err)
	}
	return &out.Runs[0]
}

// lives is what --trace --json says.
func lives(t *testing.T, said string) (v []life) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(said[:strings.LastIndex(said, "}\n")+2]))
	for {
		var l life
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			return v
		} else if err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		v = append(v, l)
	}
}

// The record of a whole run is looked at as that of one node is: in all of its nodes, in
// the order of time, up to where something comes; and one of its switches is replayed with
// other settings, and with fewer inputs.
func TestReplayOfAWholeRun(t *testing.T) {
	record, drops := recordedRun(t, crowd)
	if drops == 0 {
		t.Fatal("nothing was dropped")
	}
	t.Run("until", func(t *testing.T) {
		for what, most := range map[string]int{"drop": 64, fmt.Sprintf(`drops{node="s1"} >= %d`, drops/2): drops/2 + 64, "drop:queue-tail": 64} {
			said, err := replayOf(t, record, "--until", what, "--", "gswitch", "show", "drops")
			n := 0
			for _, port := range []string{"h1", "h2", "h3"} {
				n += column(t, said, port, 2)
			}
			if err != nil || n < 1 || n > most || !strings.Contains(said, ", at s1\n") {
				t.Errorf("--until %s: %v, %d drops of %d: %s", what, err, n, drops, said)
			}
		}
		// There is a hash behind the first 1024 frames, and a vector of 64 at most.
		for _, c := range [][2]string{
			{"sent >= 600", ` 6[0-6]\d frames sent, 0 hashes compared: nothing to compare: the record has no hash of what was sent up to here\n`},
			{"sent >= 1200", ` 12[0-6]\d frames sent, 1 hashes compared: identical\n`},
			{"retransmissions > 0", `^replayed `},
		} {
			said, err := replayOf(t, record, "--until", c[0])
			if err != nil || !regexp.MustCompile(c[1]).MatchString(said) || !strings.Contains(said, c[0]+" comes at ") {
				t.Errorf("--until %s: %v: %s", c[0], err, said)
			}
		}
		for _, c := range [][]string{
			{"--until", `drops{node="s9"} > 0`}, {"--until", "drops > 1e9"}, {"--until", `drops{node="s2"} > 0`}, {"--until", "drop", "--", "ghost", "show", "flows"},
			{"--at", "1h"}, {"--node", "s9", "--at", "1us", "--", "gswitch", "show", "drops"}, {"--at", "1us", "--", "gswitch", "show", "drops"},
		} {
			if said, err := replayOf(t, append([]string{record}, c...)...); err == nil {
				t.Errorf("%v: %s", c, said)
			}
		}
	})
	t.Run("refused", func(t *testing.T) {
		for _, c := range []struct {
			args []string
			want string
		}{
			{[]string{"--node", "s9", "--at", "1us", "--", "gswitch", "show", "drops"}, `--node: the run has no switch "s9", it has s1, s2`},
			{[]string{"--node", "s9", "--trace", "10.0.0.1"}, `--node: the run has no switch or host "s9", it has s1, s2, h1, h2, h3, h4, h5`},
			{[]string{"--node", "h1", "--", "gswitch", "show", "drops"}, "h1 has no verbs of gswitch; those of the run that have are s1, s2"},
			{[]string{"--", "gswitch", "show", "drops"}, "which switch is to be shown? Choose it with --node: s1, s2"},
			{[]string{"--node", "s9", "--set", "switch.buffer.size=1MB"}, `the run has no switch or host "s9", it has s1, s2, and h1, h2`},
			{[]string{"--node", "s1", "--", "gswitch", "run", "-c", "none.yaml"}, `a verb that shows something, as in -- gswitch show queues; "gswitch run -c none.yaml" does something else`},
			{[]string{"--node", "h1", "--", "ghost", "perf"}, "as in -- ghost show flows"},
			{[]string{"--node", "h1", "--", "ghost", "shou"}, "unknown command"},
		} {
			said, err := replayOf(t, append([]string{record}, c.args...)...)
			if err == nil || cli.ExitCode(err) != exitUsage && !strings.Contains(c.want, "and h1") || !strings.Contains(err.Error(), c.want) || strings.Contains(said, "replayed ") {
				t.Errorf("%v: %v: %s", c.args, err, said)
			}
		}
		said, err := replayOf(t, record, "--trace", "10.9.9.9:5", "--to", "20us")
		if err != nil || !strings.Contains(said, "--trace 10.9.9.9:5: no frame from or to it came, left or was dropped, in that time\n") {
			t.Errorf("%v: %s", err, said)
		}
		if said, err = replayOf(t, record, "--trace", "10.0.0.1", "--to", "20us"); err != nil || strings.Contains(said, "no frame") {
			t.Errorf("%v: %s", err, said)
		}
	})
	t.Run("hosts", func(t *testing.T) {
		// Behind the call in which h4 has had half of the frames of three flows.
		at := []string{"--until", `received{node="h4"} >= 150`}
		said, err := replayOf(t, slices.Concat([]string{record}, at, []string{"--", "ghost", "show", "host", "--json"})...)
		if n := numberOf(t, said, "rx_frames"); err != nil || n < 150 || n >= 214 || !strings.Contains(said, `"name": "h4"`) || !strings.Contains(said, `"congestion": "none"`) {
			t.Errorf("%v, %v frames: %s", err, n, said)
		}
		said, err = replayOf(t, slices.Concat([]string{record}, at, []string{"--", "ghost", "show", "flows"})...)
		for _, from := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"} {
			if err != nil || !strings.Contains(said, from) {
				t.Errorf("%v: no flow from %s: %s", err, from, said)
			}
		}
		sent := 0
		for _, h := range []string{"h1", "h2", "h3"} {
			said, err := replayOf(t, slices.Concat([]string{record, "--node", h}, at, []string{"--", "ghost", "show", "qps", "--json"})...)
			if acked := numberOf(t, said, "acked"); err != nil || acked <= 0 || acked > 100_000 {
				t.Errorf("%s: %v, %v bytes are acknowledged: %s", h, err, acked, said)
			}
			sent += int(numberOf(t, said, "tx_frames"))
		}
		if sent < 150 {
			t.Errorf("h4 has had 150 frames, of %d that were sent", sent)
		}
		for want, c := range map[string][]string{
			"no verbs of ghost":   {"--node", "s1", "--", "ghost", "show", "flows"},
			"no verbs of gswitch": {"--node", "h1", "--", "gswitch", "show", "queues"},
			"--node":              {"--", "ghost", "show", "flows"},
			"scenario":            {"--node", "h1", "--", "ghost", "show", "config"},
		} {
			if said, err := replayOf(t, slices.Concat([]string{record, "--at", "1us"}, c)...); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v: %v, want %q: %s", c, err, want, said)
			}
		}
	})
	t.Run("trace", func(t *testing.T) {
		said, err := replayOf(t, record, "--trace", "10.0.0.4", "--json")
		if err != nil {
			t.Fatal(err)
		}
		v := lives(t, said)
		if !slices.IsSortedFunc(v, func(a, b life) int {
			if a.At < b.At {
				return -1
			} else if a.At > b.At {
				return 1
			}
			return 0
		}) {
			t.Error("not in the order of time")
		}
		// What a node got by a port is what the neighbour there sent: no link lost anything.
		count := map[string]int{}
		for _, l := range v {
			count[l.What+" "+l.Node+" "+l.Port]++
		}
		for _, way := range [][2]string{{"out h1 s1", "in s1 h1"}, {"out s1 s2", "in s2 s1"}, {"out s2 h4", "in h4 s2"}, {"out h4 s2", "in s2 h4"}, {"out s1 h1", "in h1 s1"}} {
			if count[way[0]] == 0 || count[way[0]] != count[way[1]] {
				t.Errorf("%d times %s, %d times %s", count[way[0]], way[0], count[way[1]], way[1])
			}
		}
		came, dropped := 0, 0
		for _, h := range []string{"h1", "h2", "h3"} {
			came, dropped = came+count["in s1 "+h], dropped+count["drop s1 "+h]
		}
		if came-count["out s1 s2"] != drops || dropped != drops {
			t.Errorf("%d of %d frames left s1, %d drops are traced, there were %d: %v", count["out s1 s2"], came, dropped, drops, count)
		}
		text, err := replayOf(t, record, "--until", "drop", "--trace", "10.0.0.1", "--from", "1us")
		if err != nil || !strings.Contains(text, " out  h1:s1 ") || !strings.Contains(text, " in   s1:h1 ") {
			t.Errorf("%v: %s", err, text)
		}
	})
	t.Run("pcap", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "frames.pcapng")
		if said, err := replayOf(t, record, "--pcap", file); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		r, err := capture.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		dropped := 0
		for {
			rec, _, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if rec.Dir == capture.DirDrop {
				dropped++
			}
		}
		names := map[string]bool{}
		for _, i := range r.Interfaces() {
			names[i.Name] = true
		}
		if dropped != drops || !names["s1:s2"] || !names["s2:s1"] || !names["h4:s2"] || !names["s1:h3"] {
			t.Errorf("%d of %d drops, of %v", dropped, drops, names)
		}
	})
	t.Run("what-if", func(t *testing.T) {
		said, err := replayOf(t, record, "--node", "s1", "--set", "switch.buffer.size=60KB")
		if err != nil || !strings.Contains(said, "nothing would have been different") {
			t.Errorf("with its own settings: %v: %s", err, said)
		}
		said, err = replayOf(t, record, "--node", "s1", "--set", "switch.buffer.size=4MB", "--json")
		var d difference
		if err := errors.Join(err, json.Unmarshal([]byte(said), &d)); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		was := 0
		for _, r := range d.Rows {
			if strings.HasPrefix(r.What, "drops of what came in") {
				was += int(r.Was.(float64))
				if r.Would != 0.0 {
					t.Errorf("with enough room: %+v", r)
				}
			}
		}
		if was == 0 || d.First <= 0 { // of the freely paced switch, which is never late
			t.Errorf("%d drops were, of %d: %s", was, drops, said)
		}
		for _, c := range [][]string{
			{"--set", "switch.buffer.size=4MB"}, {"--node", "s9", "--set", "switch.buffer.size=4MB"}, {"--node", "h1", "--set", "switch.buffer.size=4MB"},
			{"--node", "s1", "--set", "hosts.cc=dcqcn"}, {"--node", "s1", "--what-if", "s1.yaml"}, {"--node", "s1", "--set", "switch.bufer=1"},
			{"--node", "h1", "--set", "hosts.payload=512B"}, {"--node", "h1", "--set", "hosts.cc=none-such"}, {"--node", "h1", "--set", "workload[0].size=1KB"},
			{"--node", "h1", "--set", "hosts.cc=dcqcn", "--until", "drop"},
		} {
			if said, err := replayOf(t, append([]string{record}, c...)...); err == nil {
				t.Errorf("%v: %s", c, said)
			}
		}
	})
	t.Run("minimise", func(t *testing.T) {
		said, err := replayOf(t, record, "--node", "s1", "--until", "drop", "--minimise", "--json")
		var m minimised
		if err := errors.Join(err, json.Unmarshal([]byte(said[strings.Index(said, "{"):]), &m)); err != nil || !m.Least || len(m.Needed) == 0 {
			t.Fatalf("%v: %s", err, said)
		}
		bytes := 0
		for _, x := range m.Needed {
			if x.Kind == "frame" {
				bytes += 1100 * int(x.Count)
			}
		}
		if bytes < 10_000 { // dynamic thresholds leave one queue part of it
			t.Errorf("a buffer of 60 kB is full with %d bytes: %s", bytes, said)
		}
		if said, err := replayOf(t, record, "--until", "drop", "--minimise"); err == nil || !strings.Contains(err.Error(), "--node") {
			t.Errorf("%v: %s", err, said)
		}
	})
}

// A host of a run is replayed with what reached it and the messages that it was given: the
// same with its own settings, otherwise with others, and with fewer inputs.
func TestHostOfARun(t *testing.T) {
	record, drops := recordedRun(t, crowd)
	if drops == 0 {
		t.Fatal("nothing was dropped")
	}
	for _, host := range []string{"h1", "h2", "h3", "h4"} {
		if said, err := replayOf(t, record, "--node", host, "--set", "hosts.transport.rto_low=100us"); err != nil || !strings.Contains(said, "nothing would have been different") {
			t.Errorf("%s with its own settings: %v: %s", host, err, said)
		}
	}
	// The senders of what was dropped, of which at least one waited for a timer or sent again.
	said, err := replayOf(t, record, "--until", "retransmissions > 0")
	late := regexp.MustCompile(`, at (h[123])\n`).FindStringSubmatch(said)
	if err != nil || late == nil {
		t.Fatalf("%v: %s", err, said)
	}
	t.Run("what-if", func(t *testing.T) {
		said, err := replayOf(t, record, "--node", late[1], "--set", "hosts.params.window=none", "--json") // 100 kB are more than the window
		var d difference
		if err := errors.Join(err, json.Unmarshal([]byte(said), &d)); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		if d.First <= 0 || d.First > 100e-6 {
			t.Errorf("without a window nothing leaves otherwise: %s", said)
		}
	})
	t.Run("minimise", func(t *testing.T) {
		said, err := replayOf(t, record, "--node", late[1], "--until", "retransmissions > 0", "--minimise", "--json")
		m := leastOf(t, said, err)
		if of := kindsOf(m); of["command"] != 2 || of["frame"] > 1 { // none where a timer was first
			t.Errorf("a host sends again what it was given, by what comes of one flow: %s", said)
		}
		// One connection is enough for acknowledgements, whatever the number of its queue pair.
		said, err = replayOf(t, record, "--node", "h4", "--until", "sent > 0", "--minimise", "--json")
		m = leastOf(t, said, err)
		if of := kindsOf(m); of["command"] != 1 || of["frame"] != 1 || len(m.Needed) != 2 || m.Given < 4 {
			t.Errorf("a host acknowledges what comes of one flow: %s", said)
		}
	})
}

// leastOf is what --minimise --json says.
func leastOf(t *testing.T, said string, err error) (m minimised) {
	t.Helper()
	if err == nil {
		err = json.Unmarshal([]byte(said[strings.Index(said, "{"):]), &m)
	}
	if err != nil || !m.Least {
		t.Fatalf("%v: %s", err, said)
	}
	return m
}

// kindsOf counts the inputs that are needed by their kinds.
func kindsOf(m minimised) map[string]int {
	of := map[string]int{}
	for _, x := range m.Needed {
		of[x.Kind]++
	}
	return of
}

// A switch whose routes change during the run, by a detour or by a controller, is replayed
// with the change: without, it would send by the other spine.
func TestSwitchOfARunWithOtherRoutes(t *testing.T) {
	record, _ := recordedRun(t, detour)
	same := func(record, node string) {
		t.Helper()
		said, err := replayOf(t, record, "--node", node, "--set", "switch.buffer.size=32MiB")
		if err != nil || !strings.Contains(said, "nothing would have been different") {
			t.Errorf("%s with its own settings: %v: %s", node, err, said)
		}
	}
	same(record, "leaf1")
	same(record, "spine2")
	said, err := replayOf(t, record, "--node", "leaf1", "--until", `sent{port="spine2"} > 0`, "--minimise", "--json")
	if of := kindsOf(leastOf(t, said, err)); of["command"] != 1 || of["frame"] != 1 || !strings.Contains(said, "command add route 10.") {
		t.Errorf("a route leads to spine2, and a packet goes by it: %s", said)
	}
	r := resultOf(t, moved)
	if r.Values["flow_moved_total"] == 0 {
		t.Error("no flow was moved")
	}
	same(r.Record, "leaf1")
}

// A host that probes are injected at is replayed with them.
func TestHostOfARunThatProbes(t *testing.T) {
	r := resultOf(t, probing)
	if r.Values["probe_there_sent_total"] != 20 {
		t.Errorf("%v probes are sent", r.Values["probe_there_sent_total"])
	}
	said, err := replayOf(t, r.Record, "--node", "h1", "--set", "hosts.class=0")
	if err != nil || !strings.Contains(said, "nothing would have been different") {
		t.Errorf("%v: %s", err, said)
	}
	said, err = replayOf(t, r.Record, "--node", "h1", "--until", "sent > 0", "--minimise", "--json")
	if of := kindsOf(leastOf(t, said, err)); of["command"] != 1 || !strings.Contains(said, `"frame of 98 bytes"`) {
		t.Errorf("a probe is sent: %s", said)
	}
}

// A host with connections of TCP is replayed by itself like others.
func TestHostOfARunWithStreams(t *testing.T) {
	record, _ := recordedRun(t, streams)
	for host, want := range map[string]string{"h1": "the first frame that would have left otherwise", "h3": "nothing would have been different"} {
		said, err := replayOf(t, record, "--node", host, "--set", "hosts.tcp.initial_window=2") // it matters to the sender
		if err != nil || !strings.Contains(said, want) {
			t.Errorf("%s: %v: %s", host, err, said)
		}
	}
	// The connection of a host that has no TCP any more cannot be opened, and so it gets no messages.
	said, err := replayOf(t, record, "--node", "h1", "--set", "hosts.tcp.enabled=false")
	if err != nil || !strings.Contains(said, " commands would have been refused, the first: open of connection 1 from h1 to h3: ") {
		t.Errorf("%v: %s", err, said)
	}
	said, err = replayOf(t, record, "--node", "h3", "--until", "sent > 0", "--minimise", "--json")
	if of := kindsOf(leastOf(t, said, err)); of["command"] != 1 || of["frame"] != 1 {
		t.Errorf("a host acknowledges what comes of one connection: %s", said)
	}
}

// A host is replayed with another congestion control, which gets none of the options of the one that
// it had.
func TestHostWithAnotherControl(t *testing.T) {
	record, _ := recordedRun(t, strings.Replace(crowd, "hosts: {", "hosts: {cc: hpcc, params: {maxStage: 5}, ", 1))
	said, err := replayOf(t, record, "--node", "h2", "--set", "hosts.cc=hpcc")
	if err != nil || !strings.Contains(said, "nothing would have been different") {
		t.Errorf("its own: %v: %s", err, said)
	}
	said, err = replayOf(t, record, "--node", "h2", "--set", "hosts.cc=dcqcn", "--json")
	var d difference
	if err := errors.Join(err, json.Unmarshal([]byte(said), &d)); err != nil || d.First < 0 || len(d.Rows) == 0 {
		t.Errorf("another: %v: %s", err, said)
	}
	if said, err = replayOf(t, record, "--node", "h2", "--set", "hosts.cc=dcqcn", "--set", "hosts.params.maxStage=5"); err == nil || !strings.Contains(err.Error(), `hosts.params: dcqcn: unknown option "maxStage"`) {
		t.Errorf("an option that it does not have: %v: %s", err, said)
	}
}

// The records of a fabric are replayed side by side.
func TestReplayOfADirectory(t *testing.T) {
	dir := t.TempDir()
	first, _, _ := recordedSwitchOf(t, "s1", dir)
	recordedSwitchOf(t, "s2", dir)
	said, err := replayOf(t, dir)
	if err != nil || strings.Count(said, ": identical") != 2 {
		t.Errorf("%v: %s", err, said)
	}
	for _, c := range [][]string{{"--node", "s9", "--at", "1ms"}, {"--node", "s9", "--", "gswitch", "show", "drops"}, {"--node", "s9", "--until", "drop"}} {
		if said, err := replayOf(t, append([]string{dir}, c...)...); err == nil || !strings.Contains(err.Error(), "--node s9: the records are of s1, s2") || strings.Contains(said, "replayed ") {
			t.Errorf("%v: %v: %s", c, err, said)
		}
	}
	said, err = replayOf(t, dir, "--trace", "10.9.9.9")
	if err != nil || !strings.Contains(said, "--trace 10.9.9.9: no frame from or to it came, left or was dropped\n") {
		t.Errorf("%v: %s", err, said)
	}
	said, err = replayOf(t, dir, "--trace", "10.0.0.2", "--json")
	if err != nil {
		t.Fatal(err)
	}
	v := lives(t, said)
	count, last := map[string]int{}, 0.0
	for _, l := range v {
		if l.At < last {
			t.Fatalf("%v comes behind %v", l.At, last)
		}
		last = l.At
		count[l.What+" "+l.Node]++
	}
	for _, node := range []string{"s1", "s2"} {
		if count["in "+node] != 300 || count["drop "+node] == 0 || count["out "+node]+count["drop "+node] < 279 { // 20 kB wait at the end
			t.Errorf("of %s: %v", node, count)
		}
	}
	// s2 began when s1 had ended.
	if i := slices.IndexFunc(v, func(l life) bool { return l.Node == "s2" }); i < 300 || slices.ContainsFunc(v[i:], func(l life) bool { return l.Node == "s1" }) {
		t.Errorf("the first of s2 is number %d", i)
	}
	said, err = replayOf(t, dir, "--until", `drops{node="s2"} > 5`, "--", "gswitch", "show", "drops")
	if n := column(t, said, "in", 2); err != nil || n <= 5 || n > 69 || !strings.Contains(said, ", at s2\n") {
		t.Errorf("%v: %s", err, said)
	}
	said, err = replayOf(t, dir, "--node", "s1", "--until", `drops{node="s2"} > 5`, "--", "gswitch", "show", "drops")
	if all := column(t, said, "in", 2); err != nil || all != count["drop s1"] {
		t.Errorf("%v: s1 dropped %d, here %d: %s", err, count["drop s1"], all, said)
	}
	said, err = replayOf(t, dir, "--node", "s2", "--set", "buffer.limit=1MB")
	if err != nil || !strings.Contains(said, "queue-tail") {
		t.Errorf("%v: %s", err, said)
	}
	for _, c := range [][]string{{"--set", "buffer.limit=1MB"}, {"--node", "s3", "--set", "buffer.limit=1MB"}, {"--until", "drop", "--minimise"}, {"--serve", "127.0.0.1:0"},
		{"--", "gswitch", "show", "drops"}, {"--", "ghost", "show", "flows"}, {"--until", `drops{node="s9"} > 0`}, {"--until", "drops > 1e9"}} {
		if said, err := replayOf(t, append([]string{dir}, c...)...); err == nil {
			t.Errorf("%v: %s", c, said)
		}
	}
	if said, err := replayOf(t, t.TempDir()); err == nil {
		t.Errorf("an empty directory: %s", said)
	}
	if said, err := replayOf(t, first, "--node", "s2"); err == nil {
		t.Errorf("of another node: %s", said)
	}
}
