package gswitch

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gswitch/capture/capturetest"
	"gswitch/control"
	"gswitch/control/api"
	"gswitch/wire"
	"gswitch/wire/wiretest"
)

const twoWires = `version: 1
workers: [{poll: sleep}]
memory: {frames: 8192}
switches:
  - name: s1
    ports:
      - {name: p1, wire: a, rate: 10Gbps, qos: fair}
      - {name: p2, wire: b, rate: 10Gbps, qos: fair}
    qos: {fair: {queues: [{queue: 0, weight: 10}]}}
  - name: s2
    ports: [{name: p1, wire: a}, {name: p2, wire: b}]
`

// Every verb of policies against a daemon, one after the other.
func TestPolicyVerbs(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s1.sock")
	d := startDaemon(t, socket, "-c", write(t, "wires.yaml", twoWires))
	gold := write(t, "gold.oq", "policy gold;\nq = Queue(64KB);\nq.procPrio = value;\n")
	tail := write(t, "tail.oq", "q[1..2] = Queue(128 pkts);\nout = Port(100%, q[1..2]);\n")
	both := write(t, "both.oq", "q[1..2] = Queue(8KB); b = Buffer(8KB, q[1..2]); o1 = Port(100%, q[1]); o2 = Port(100%, q[2]);\n")
	bad := write(t, "bad.oq", "q = Queue(64KB);\nq.procPrio = valu;\n")
	for _, tc := range []struct {
		args string
		code int
		want string
	}{
		{"policy check " + gold, 0, "q: 64000 bytes, served by value (lists by value), gives up by fifo (list)"},
		{"policy check " + bad, 2, `bad.oq:2:14: there is no definition "valu"; did you mean value?`},
		{"policy check " + gold + " --json --cost", 0, `"measured_ns": `},
		{"policy show", 0, "no egress queue has a policy"},
		{"policy apply " + bad + " --port p1 -S s1", 2, "did you mean value?"},
		{"policy apply " + gold + " --port nosuch -S s1", 2, "there is no port nosuch; there are p1, p2"},
		{"policy apply " + gold + " --port p1 -S s1 --queue 9", 2, "there is no queue 9"},
		{"policy apply " + gold + " --port p1,p1 -S s1", 2, "--port names p1 twice"},
		{"policy apply " + gold + " --port= -S s1", 2, "--port names no port"},
		{"policy apply " + gold + " --port p1 -S s2", 2, "port p1 has no rate"},
		{"policy apply " + gold + " --port p1 -S s1 --dry-run", 0, "nothing was changed"},
		{"policy apply " + gold + " --port p1 -S s1", 0, "applied"},
		{"policy apply " + gold + " --port p1 -S s1", 0, "nothing changes"},
		{"policy show", 0, "p1        0  live  q          64000B"},
		{"show queues --order", 0, "policy(gold)"},
		{"policy diff " + tail + " --port p1 -S s1", 0, "- policy gold;\n- q = Queue(64KB);\n- q.procPrio = value;\n+ q[1..2] = Queue(128 pkts);\n+ out = Port(100%, q[1..2]);\n"},
		{"policy apply " + tail + " --port p1 -S s1", 0, "applied"},
		{"policy show --tc", 0, "qdisc openqueue dev p1 queue 0\nQueue: q[1], Max: 128, Curr: 0, Dropped: 0, Total: 0\n"},
		{"policy shadow " + gold + " --port p1 -S s1", 0, "applied"},
		{"policy show", 0, "shadow  q"},
		{"policy shadow --off --port p1 -S s1", 0, "applied"},
		{"policy rollback --port p1 -S s1", 0, "applied"},
		{"show queues --order", 0, "policy(gold)"},
		{"policy rollback --port p2 -S s1", 2, "queue 0 of port p2: there is no policy before the one in force"},
		{"show config", 0, "port-p1"},
		{"policy check " + both + " --cost", 0, "1 queue, 1 shared buffer, port o2, which shares with other ports"},
		{"policy trace " + both + " --pcap none", 2, "has 2 ports, and a capture does not say by which a packet leaves"},
		{"policy shadow " + both + " --port p1 -S s1", 2, "a shadow is of one queue"},
		{"policy apply " + both + " --port p1 -S s1", 2, "has 2 ports, and the switch has 1 with it (p1)"},
		{"policy diff " + both + " --port p1,p2 -S s1", 0, "port p2:\n- \n+ q[1..2] = Queue(8KB);"},
		{"policy apply " + both + " --port p1,p2 -S s1", 0, "applied"},
		{"policy show", 0, "p2        0  live  q[2]"},
		{"policy apply " + tail + " --port p2 -S s1", 2, "has 2 ports, and the switch has 1 with it (p1)"},
	} {
		args := append(strings.Fields(tc.args), "--socket", socket)
		stdout, stderr, code := invoke(t, "", args...)
		if code != tc.code || !strings.Contains(stdout+stderr, tc.want) {
			t.Errorf("%s: exit code %d\n%s%s\nwant %d and %s", tc.args, code, stdout, stderr, tc.code, tc.want)
		}
	}
	if code := d.stop(t, unix.SIGTERM); code != 0 {
		t.Errorf("exit code %d; log:\n%s", code, d.log.String())
	}
}

// A capture through a policy: what leaves first, and who is dropped.
func TestPolicyTrace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "in.pcapng")
	f := capturetest.Create(t, file, "p1")
	for i, tos := range []uint8{0, 0, 0, 63 << 2, 0} {
		b := wiretest.Frame(wiretest.Eth(wire.MAC{2, 0, 0, 0, 0, 2}, wire.MAC{2, 0, 0, 0, 0, 1}), wiretest.IPv4("10.0.0.1", "10.0.0.2", wiretest.TOS(tos)), wiretest.UDP(1, 2), wiretest.Zeros(958))
		f.Add(int64(i), b)
	}
	f.Close()
	policy := write(t, "p.oq", "q = Queue(3 pkts); q.admPrio = value; q.procPrio = value;")
	stdout, stderr, code := invoke(t, "", "policy", "trace", policy, "--pcap", file, "--rate", "8Mbps")
	const want = `0.000000000  #1  1000 bytes  q  value 0  sent after 0ns
0.000000004  #5  1000 bytes  q  value 0  dropped as it came
0.001000000  #4  1000 bytes  q  value 63  sent after 1ms
0.002000000  #2  1000 bytes  q  value 0  sent after 2ms
0.003000000  #3  1000 bytes  q  value 0  sent after 3ms
QUEUE  MAX  ADMITTED  REFUSED  LATE  PUSHED OUT  SENT  SENT BYTES  VALUE  LOST VALUE  MARKED  NOTICES
q        3         4        1     0           0     4        4000     63           0       0        0
`
	if code != 0 || stdout != want {
		t.Errorf("exit code %d, %s\n%s\nwant\n%s", code, stderr, stdout, want)
	}
}

// A policy takes the place of another a hundred times while frames pass, over AF_XDP:
// every frame arrives, and in its order. Nor does the port rest for a millisecond. What a
// change takes of the worker is judged on any machine, by how long its thread ran, of
// which nine in ten count: a virtual machine may be stopped at any time. That frames
// arrive is judged where they do when nothing changes: on a busy machine they rest
// whatever is applied, so that each change is followed by one that changes nothing. How
// long the link itself rests is for package policy to show.
func TestPolicySwappedUnderLoad(t *testing.T) {
	l := newLab(t)
	texts := []string{"q = Queue(300 pkts);", "q = Queue(300KB); q.admPrio = value; q.procPrio = value;",
		"x(a, b) = a.value * 3 + a.size < b.value * 3 + b.size; q = Queue(300 pkts); q.procPrio = x; q.admPrio = value;",
		"q[1..4] = Queue(300 pkts); b = Buffer(300 pkts, q); out = Port(100%, q); out.schedPrio = drr; out.queueSelect = class;"}
	doc := func(text string) string {
		return fmt.Sprintf(`version: 1
workers: [{poll: adaptive}]
memory: {frames: 16384}
switches:
  - name: s1
    ports:
      - {name: p1, interface: eth1, netns: %s}
      - {name: p2, interface: eth2, netns: %s, rate: 50Mbps, qos: q}
    qos: {q: {queues: [{queue: 0, policy: {text: %q}}]}}
`, l.ns[0], l.ns[0], text)
	}
	socket := filepath.Join(t.TempDir(), "s1.sock")
	d := startDaemon(t, socket, "-c", write(t, "switch.yaml", doc(texts[0])))
	client := control.Dial(socket)
	l.send(t, 1, 0, 0) // teaches the switch where host 2 is
	if _, err := l.receive(0); err != nil {
		t.Fatal(err)
	}
	const swaps, inFlight = 100, 200
	credit, done := make(chan struct{}, inFlight), make(chan error, 1)
	var rests rests
	var over atomic.Bool
	const last = 1 << 31
	go func() {
		for want := uint32(0); ; want++ {
			got, when, err := l.receiveStamped(1)
			if err == nil && got&^last != want {
				err = fmt.Errorf("frame %d arrived in place of %d", got&^last, want)
			}
			rests.arrived(when)
			if err != nil || got&last != 0 {
				done <- err
				return
			}
			<-credit
		}
	}()
	applied := make(chan error, 1)
	go func() {
		defer over.Store(true)
		for i := 1; i <= swaps; i++ {
			for _, changes := range []bool{true, false} {
				began := time.Now()
				r, err := client.Apply(context.Background(), &api.ApplyRequest{Yaml: doc(texts[i%len(texts)]), File: "swap"})
				rests.add(applying{changes, began, time.Now()})
				if err == nil && (len(r.Changes) != 0) != changes {
					err = fmt.Errorf("swap %d changes %v, want changes: %v", i, r.Changes, changes)
				}
				if err != nil {
					applied <- err
					return
				}
			}
		}
		applied <- nil
	}()
	sent := uint32(0)
	for stop := false; !stop; sent++ {
		stop = over.Load()
		n := sent
		if stop {
			n |= last
		}
		select {
		case credit <- struct{}{}:
			l.send(t, 0, 1, n)
		case err := <-done:
			t.Fatalf("%v; log:\n%s", err, d.log.String())
		}
	}
	if err := <-done; err != nil {
		t.Errorf("%v; log:\n%s", err, d.log.String())
	}
	if err := <-applied; err != nil {
		t.Error(err)
	}
	with, gap, took := rests.unbroken(true)
	without, idleGap, idleTook := rests.unbroken(false)
	t.Logf("frames arrived at least each millisecond during %d of %d changes of the policy, and %d times when nothing changed", with, swaps, without)
	t.Logf("medians: longest gap %v of changes that took %v, %v of %v when nothing changed", gap, took, idleGap, idleTook)
	if with < swaps/2 && without >= swaps*9/10 {
		t.Error("the port rests while its policy is changed")
	}
	adopted, quick, sum := adoptions(t, scrape(t, socket))
	t.Logf("taking over a change kept the thread of the worker for 1.05 ms at most %v times of %v, for %.3f ms on average", quick, adopted, 1000*sum/adopted)
	if adopted < swaps || quick < 0.9*adopted {
		t.Errorf("%v changes were taken over, %v of them within 1.05 ms of the worker's thread", adopted, quick)
	}
	m, err := client.ListQueues(context.Background(), &api.ListRequest{Port: "p2"})
	if err != nil {
		t.Fatal(err)
	}
	if q := m.Queues[0]; q.DequeuedFrames < uint64(sent) || q.Drops+q.PushedOut+q.Draining != 0 || len(q.Policy) != 1 {
		t.Errorf("%d frames were sent: %v", sent, q)
	}
	if sent < swaps {
		t.Errorf("only %d frames passed while %d policies came", sent, swaps)
	}
	if code := d.stop(t, unix.SIGTERM); code != 0 || strings.Contains(d.log.String(), "still held by nodes or lost") {
		t.Errorf("exit code %d; log:\n%s", code, d.log.String())
	}
}

// adoptions returns how many changes a worker has taken over, how many of them kept its
// thread for 1.05 ms at most, and the seconds of all.
func adoptions(t *testing.T, metrics string) (n, quick, sum float64) {
	const name = "gswitch_worker_adoption_seconds"
	return sample(t, metrics, name+`_count{worker="0"}`), sample(t, metrics, name+`_bucket{worker="0",le="0.001048576"}`), sample(t, metrics, name+`_sum{worker="0"}`)
}

// rests returns during which applications of a configuration frames kept arriving.
type rests struct {
	mu      sync.Mutex
	frames  []time.Time
	applies []applying
}

type applying struct {
	changes      bool
	began, ended time.Time
}

func (r *rests) arrived(at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.frames = append(r.frames, at)
}

func (r *rests) add(a applying) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.applies = append(r.applies, a)
}

// unbroken counts those, of those that changed something or of the others, from whose
// beginning to whose end no two frames arrived more than a millisecond apart. It also
// returns the median of the longest gaps between two frames, and how long half of the
// applications took at most.
func (r *rests) unbroken(changes bool) (n int, gap, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var gaps, all []time.Duration
	for _, a := range r.applies {
		if a.changes != changes {
			continue
		}
		all = append(all, a.ended.Sub(a.began))
		from, _ := slices.BinarySearchFunc(r.frames, a.began, time.Time.Compare)
		to, _ := slices.BinarySearchFunc(r.frames, a.ended, time.Time.Compare)
		if from == 0 || to == len(r.frames) {
			continue // the frames before or after are not there yet
		}
		longest := time.Duration(0)
		for i := from; i <= to; i++ {
			longest = max(longest, r.frames[i].Sub(r.frames[i-1]))
		}
		gaps = append(gaps, longest)
		if longest <= time.Millisecond {
			n++
		}
	}
	return n, median(gaps), median(all)
}

func median(v []time.Duration) time.Duration {
	if len(v) == 0 {
		return 0
	}
	slices.Sort(v)
	return v[len(v)/2]
}
