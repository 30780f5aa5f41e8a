package e2e

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// metrics reads /metrics and adds up each metric over the labels that are not
// asked for: "name" and "name/port".
func (d *daemon) metrics() map[string]float64 {
	d.t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", d.socket)
	}}}
	r, err := client.Get("http://gswitch/metrics")
	if err != nil {
		d.t.Fatal(err)
	}
	defer r.Body.Close()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(io.Reader(r.Body))
	if err != nil {
		d.t.Fatal(err)
	}
	m := map[string]float64{}
	for name, f := range families {
		for _, e := range f.Metric {
			v := e.GetCounter().GetValue() + e.GetGauge().GetValue() + e.GetUntyped().GetValue()
			m[name] += v
			for _, l := range e.Label {
				if l.GetName() == "port" || l.GetName() == "host" || name == "gswitch_drops_total" && l.GetName() == "reason" || name == "gswitch_export_reports_total" {
					m[name+"/"+l.GetValue()] += v
				}
			}
		}
	}
	return m
}

// reasons lists what was dropped, why.
func (d *daemon) reasons(m map[string]float64) string {
	var b strings.Builder
	for name, v := range m {
		if strings.HasPrefix(name, "gswitch_drops_total/") && v > 0 {
			fmt.Fprintf(&b, "%s %.0f\n", name, v)
		}
	}
	return b.String()
}

// footprint is what a process holds.
type footprint struct {
	files, threads int
	resident       uint64
}

func (d *daemon) footprint() (f footprint) {
	d.t.Helper()
	count := func(dir string) int {
		e, err := os.ReadDir(fmt.Sprintf("/proc/%d/%s", d.Process.Pid, dir))
		if err != nil {
			d.t.Fatal(err)
		}
		return len(e)
	}
	f.files, f.threads = count("fd"), count("task")
	f.resident, _ = d.resident()
	return f
}

// churnFeatures are sections of a switch, of which a document has some. No port of it shuts by
// itself, and no station gets anything that it could take for a frame of its streams.
var churnFeatures = []string{
	"lldp: {interval: 1s}",
	"loops: {interval: 1s, shut: 1s}",
	"flowradar: {mode: both, slot: 10ms, flows: 64}",
	"telemetry: {int: true}",
	"buffer: {alpha: 4}",
	"pfc: {classes: [3]}",
	"watch: {sessions: [{name: w, port: %s, snap: 128, one_in: 200}]}",
}

// churnQueues are how queue 0 of a port is served: the order of a queue that has frames changes,
// too.
var churnQueues = []string{
	"weight: 2", "ecn: {kmin: 10KB, kmax: 20KB}", "order: {kind: fq}", "rank: dscp, order: {kind: ranked}", "rank: dscp, order: {kind: packs}", "admission: {kind: codel}",
	"policy: {text: \"q = Queue(256KB); q.admPrio = value; q.procPrio = value;\"}", "shadow: {text: \"q = Queue(16KB);\"}",
}

// churnConfig has four ports with traffic and one that comes and goes, on so many workers. With
// one it has a clock, too, which needs all ports there; one that came or went would make the
// switch anew, without its counters.
func churnConfig(l *lab, rng *rand.Rand, workers int) string {
	rate := []string{"20Mbps", "100Mbps", "1Gbps"}[rng.IntN(3)]
	var b strings.Builder
	fmt.Fprintf(&b, "version: 1\nworkers: [{poll: adaptive}, {poll: sleep}]\nswitches:\n  - name: s1\n    ports:\n")
	for i, h := range l.hosts {
		vlan := "{access: 1}"
		if rng.IntN(3) == 0 {
			vlan = "{trunk: [1, 30], native: 1}"
		}
		fmt.Fprintf(&b, "      - {interface: %s, netns: %s, workers: [%d], rate: %s, acl: edge, trust: dscp, qos: q%d, vlan: %s}\n", h.port(), l.sw, i%workers, rate, i, vlan)
	}
	b.WriteString("    qos:\n")
	for i := range l.hosts {
		fmt.Fprintf(&b, "      q%d: {queues: [{queue: 0, %s}]}\n", i, churnQueues[rng.IntN(len(churnQueues))])
	}
	if workers == 1 {
		b.WriteString("    clock: {root: true}\n")
	}
	for _, f := range churnFeatures {
		if rng.IntN(2) == 0 {
			fmt.Fprintf(&b, "    %s\n", strings.ReplaceAll(f, "%s", l.hosts[4].port()))
		}
	}
	b.WriteString("    vlans: [{id: 1}, {id: 30}]\n    acls:\n      edge:\n")
	for i := range 1 + rng.IntN(20) {
		fmt.Fprintf(&b, "        - {seq: %d, match: {dst: 10.%d.0.0/16}, action: drop}\n", 10*(i+1), 100+i)
	}
	if rng.IntN(2) == 0 {
		b.WriteString("        - {seq: 900, match: {protocol: udp, dst_port: 9103}, police: {rate: 1Mbps, burst: 64KiB}}\n")
	}
	b.WriteString("    fdb:\n      static:\n")
	for _, h := range l.hosts {
		fmt.Fprintf(&b, "        - {mac: \"%s\", port: %s}\n", h.mac, h.port())
	}
	return b.String()
}

// Everything that an operator does, at random, under load: at the end every
// frame is accounted for and the process is as it was.
func TestChurn(t *testing.T) {
	l := newLab(t, 5, labOptions{})
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	workers := 1 + rng.IntN(2)
	d, file := runConfig(t, churnConfig(l, rng, workers))
	other := filepath.Join(filepath.Dir(file), "other.yaml")

	// A ring of streams over the four ports, and one to the port that comes
	// and goes.
	var streams []*stream
	for i, pair := range [][2]int{{0, 1}, {1, 2}, {2, 3}, {3, 0}, {0, 4}} {
		streams = append(streams, startStream(t, l.hosts[pair[0]], l.hosts[pair[1]], flow{srcIP: [4]byte{10, 0, 0, byte(pair[0] + 1)}, dstIP: [4]byte{10, 0, 0, byte(pair[1] + 1)},
			dstPort: uint16(9100 + i), dscp: uint8(8 * i), size: 64 + 300*i}, 2000))
	}
	spare := l.hosts[4]
	var running *dump
	present := true
	ops := []struct {
		name string
		do   func()
	}{
		{"port", func() {
			p := l.hosts[rng.IntN(5)].port()
			d.do("set", "port", p, "--disable")
			if rng.IntN(2) == 0 {
				time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond)
			}
			d.do("set", "port", p, "--enable")
		}},
		{"rate", func() {
			rate := []string{"10Mbps", "unlimited", "1Gbps"}[rng.IntN(3)]
			out, code := d.try("set", "port", l.hosts[rng.IntN(5)].port(), "--rate", rate)
			if refused := rate == "unlimited" && code == 2 && strings.Contains(out, "has no rate"); code != 0 && !refused { // an order needs one
				t.Errorf("rate %s: exit code %d\n%s", rate, code, out)
			}
		}},
		{"link", func() {
			if !present {
				return
			}
			ns, name := spare.ns, "eth0"
			if rng.IntN(2) == 0 {
				ns, name = l.sw, spare.port()
			}
			link(t, ns, name, netlink.LinkSetDown)
			time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond)
			link(t, ns, name, netlink.LinkSetUp)
		}},
		{"interface", func() {
			if present {
				link(t, l.sw, spare.port(), netlink.LinkDel)
			} else {
				l.cable(t, spare)
			}
			present = !present
		}},
		{"apply", func() {
			if !present {
				return // a new document may have to open the port anew
			}
			write(t, other, churnConfig(l, rng, workers))
			d.do("apply", "-f", other)
		}},
		{"hangup", func() {
			if !present {
				return
			}
			write(t, file, churnConfig(l, rng, workers))
			// It is waited for: carried out later, its document would take away
			// what another operation has just added.
			carriedOut := func() int {
				return strings.Count(d.log.String(), "msg=reloaded ") + strings.Count(d.log.String(), "nothing was changed")
			}
			before := carriedOut()
			d.Process.Signal(unix.SIGHUP)
			eventually(t, "SIGHUP is done", func() error {
				if carriedOut() == before {
					return fmt.Errorf("%d reloads are logged, as before", before)
				}
				return nil
			})
		}},
		{"bad file", func() {
			write(t, other, "version: 1\nswitches: [{name: s1, ports: [{interface: d0, nonsense: 1}]}]\n")
			if out, code := d.try("apply", "-f", other); code != 2 {
				t.Errorf("a bad file: exit code %d\n%s", code, out)
			}
		}},
		{"table", func() {
			d.do("add", "fdb", "02:00:00:00:07:07", "d1")
			d.do("add", "acl", "edge", "{seq: 950, match: {dst: 10.98.0.0/16}, action: drop}")
			d.do("del", "acl", "edge", "950")
			d.do("del", "fdb", "02:00:00:00:07:07")
		}},
		{"capture", func() {
			if running == nil {
				running = d.capture("--drops")
			} else {
				running.end()
				running = nil
			}
		}},
		{"clear", func() { d.do("clear", []string{"counters", "fdb"}[rng.IntN(2)]) }},
		{"show", func() {
			d.do("show", []string{"ports", "queues", "drops", "workers", "buffer", "fdb", "acl"}[rng.IntN(7)], "--json")
			d.metrics()
		}},
	}
	done := map[string]int{}
	perform := func() {
		op := ops[rng.IntN(len(ops))]
		op.do()
		done[op.name]++
	}
	// What is made once, at the first time, is made.
	for range 2 {
		for _, op := range ops {
			op.do()
		}
	}
	eventually(t, "the first round is over", func() error {
		if running != nil || !present {
			return fmt.Errorf("capture %v, port %v", running != nil, present)
		}
		return nil
	})
	d.awaitState("d4", "up")
	first := d.footprint()
	for start := time.Now(); time.Since(start) < *churnFor; {
		perform()
	}
	if running != nil {
		running.end()
	}
	if !present {
		l.cable(t, spare)
	}
	d.awaitState("d4", "up")
	var sent, received [5]uint64 // by flow
	for i, s := range streams {
		s.stop()
		sent[i], received[i] = s.sent.Load(), s.received.Load()+s.to.dropped()
	}
	t.Logf("done: %v; sent %v, received %v", done, sent, received)

	// Into the switch, through it, out of it. Queues have run empty when as
	// much has left and been dropped as came.
	var m map[string]float64
	eventually(t, "every frame is accounted for", func() error {
		m = d.metrics()
		in, made, out, dropped := m["gswitch_port_receive_packets_total"], m["gswitch_made_packets_total"], m["gswitch_port_transmit_packets_total"], m["gswitch_drops_total"]
		if held := m["gswitch_queue_packets"]; in+made != out+dropped || held != 0 {
			return fmt.Errorf("%.0f came, %.0f were made, %.0f left, %.0f were dropped, %.0f wait: %+.0f; %.0f flooded\n%s", in, made, out, dropped, held, in+made-out-dropped,
				m["gswitch_flooded_packets_total"], d.reasons(m))
		}
		return nil
	})
	// Every destination is a static address of every document: a flooded frame
	// found a table in the middle of an update.
	if n := m["gswitch_flooded_packets_total"]; n != 0 {
		t.Errorf("%.0f frames were flooded", n)
	}
	made := uint64(m["gswitch_made_packets_total"])
	if made == 0 {
		t.Error("the switch made no frame: no document had what it takes")
	}
	t.Logf("%.0f came, %d were made, %.0f left, %.0f were dropped", m["gswitch_port_receive_packets_total"], made, m["gswitch_port_transmit_packets_total"], m["gswitch_drops_total"])
	into := [4]uint64{sent[0] + sent[4], sent[1], sent[2], sent[3]}
	outOf := [4]uint64{received[3], received[0], received[1], received[2]}
	for i, h := range l.hosts[:4] {
		rx, tx, lost := uint64(m["gswitch_port_receive_packets_total/"+h.port()]), uint64(m["gswitch_port_transmit_packets_total/"+h.port()]), uint64(m["gswitch_port_transmit_lost_packets_total/"+h.port()])
		if kernel := h.lost(t); rx > into[i] || into[i] > rx+kernel || outOf[i]+lost > tx || tx > outOf[i]+lost+kernel+made {
			t.Errorf("%s: host sent %d, switch received %d; switch sent %d, lost %d on the way, host received %d; the kernel dropped %d", h.port(), into[i], rx, tx, lost, outOf[i], kernel)
		}
	}
	var last footprint
	eventually(t, "the process is as it was", func() error {
		last = d.footprint()
		if last.files > first.files+2 || last.threads > first.threads+8 || last.resident > first.resident+32<<20 {
			return fmt.Errorf("%+v, was %+v", last, first)
		}
		return nil
	})
	t.Logf("footprint %+v, was %+v", last, first)
	d.stop(l.sw)
}
