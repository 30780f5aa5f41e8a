package dut

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"gswitch/bench/testbed"
)

var gswitchL2 = DUT{
	Name: "gswitch-l2", About: "gswitch as a learning switch, spinning; the sink never sends, so every frame is flooded (to one port)",
	Missing:       built("gswitch"),
	FramesPerCall: framesPerCall,
	Start:         func(b *testbed.Bed, e Env) ([]*testbed.Proc, error) { return gswitchFlags(b, e, "spin") },
}

// The sink never sends, so a learning switch floods what is for it. With the
// address in the forwarding database it does not.
var gswitchUnicast = DUT{
	Name: "gswitch-unicast", About: "gswitch as a learning switch that knows where the sink is, spinning",
	Missing:       built("gswitch"),
	FramesPerCall: framesPerCall,
	Start:         func(b *testbed.Bed, e Env) ([]*testbed.Proc, error) { return gswitchConfig(b, e, writeUnicast) },
}

func writeUnicast(w *bufio.Writer) {
	fmt.Fprintf(w, "switches:\n  - name: unicast\n    ports: [{interface: d0}, {interface: d1}]\n    fdb: {static: [{mac: %q, port: d1}]}\n", testbed.SinkMAC)
}

// What a record costs that one leaves on.
var gswitchRecorded = DUT{
	Name: "gswitch-recorded", About: "the same, recorded to a file",
	Missing:       built("gswitch"),
	FramesPerCall: framesPerCall,
	Start: func(b *testbed.Bed, e Env) ([]*testbed.Proc, error) {
		return gswitchConfig(b, e, writeUnicast, "--record", b.Dir)
	},
}

var gswitchAdaptive = DUT{
	Name: "gswitch-adaptive", About: "gswitch as a learning switch, sleeping when idle",
	Missing:       built("gswitch"),
	FramesPerCall: framesPerCall,
	Start:         func(b *testbed.Bed, e Env) ([]*testbed.Proc, error) { return gswitchFlags(b, e, "adaptive") },
}

func gswitchFlags(b *testbed.Bed, e Env, poll string) ([]*testbed.Proc, error) {
	return one(b, "gswitch", "ready", filepath.Join(e.Bin, "gswitch"), "run", "--port", "d0", "--port", "d1", "--poll", poll, "--cpu", strconv.Itoa(e.CPU), "--name", daemon)
}

// daemon is the name by which a measured gswitch is asked: that of its control
// socket.
const daemon = "gbench"

// framesPerCall asks a running gswitch how many frames it sends in a system call.
func framesPerCall(e Env) (float64, error) {
	out, err := exec.Command(filepath.Join(e.Bin, "gswitch"), "--name", daemon, "show", "workers", "--json").Output()
	if err != nil {
		return 0, fmt.Errorf("gswitch show workers: %w: %s", err, stderr(err))
	}
	var v struct {
		Workers []struct {
			FramesPerKick float64 `json:"frames_per_kick"`
		} `json:"workers"`
	}
	if err := json.Unmarshal(out, &v); err != nil {
		return 0, fmt.Errorf("gswitch show workers: %w", err)
	}
	if len(v.Workers) != 1 {
		return 0, fmt.Errorf("gswitch show workers: %d workers, want 1", len(v.Workers))
	}
	return v.Workers[0].FramesPerKick, nil
}

// stderr is what a program that failed has printed about it.
func stderr(err error) string {
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		return strings.TrimSpace(string(e.Stderr))
	}
	return ""
}

// What the switch with everything on has to look through.
const (
	fullRoutes = 100_000
	fullRules  = 1000
	routerMAC  = "02:00:00:00:0d:01"
	routedIP   = "20.77.77.77" // an address behind one of the routes
)

var gswitchFull = DUT{
	Name: "gswitch-full", About: "gswitch with everything on: routing over 100k routes, 1k ternary ACL entries, 8 queues, PFC, shared buffer, counters",
	Dst: routerMAC, DstIP: routedIP,
	Missing:       built("gswitch"),
	FramesPerCall: framesPerCall,
	Start: func(b *testbed.Bed, e Env) ([]*testbed.Proc, error) {
		return gswitchConfig(b, e, writeFull)
	},
}

var gswitchChain = DUT{
	Name: "gswitch-chain", About: "three learning gswitches in a row over in-process wires, on one worker",
	Missing:       built("gswitch"),
	FramesPerCall: framesPerCall,
	Start: func(b *testbed.Bed, e Env) ([]*testbed.Proc, error) {
		return gswitchConfig(b, e, writeChain)
	},
}

// What RoCC costs: the same ports of 100 Gb/s without and with congestion points.
var gswitchRated = DUT{
	Name: "gswitch-rated", About: "gswitch as a learning switch with links of 100 Gb/s",
	Missing:       built("gswitch"),
	FramesPerCall: framesPerCall,
	Start: func(b *testbed.Bed, e Env) ([]*testbed.Proc, error) {
		return gswitchConfig(b, e, func(w *bufio.Writer) { writeRated(w, "") })
	},
}

// A core cannot keep a queue of 300 KB standing and forward as fast as it can:
// either the link is slower than the core, and both switches forward what the
// link takes, or the queue is empty. So the reference is what a loop leaves
// waiting: nearly every frame finds the queue beyond it and is looked up, and in
// each period the sender is notified. The period is that of a link of 1 Gb/s, which
// is what a core fills with small frames, so that about as many frames come in
// one (a thousand) as on a link of 100 Gb/s (500 of 1000 bytes).
var gswitchRoCC = DUT{
	Name: "gswitch-rocc", About: "the same, all queues working out fair rates (RoCC) and beyond their reference, a notice in 1.6 ms",
	Missing:       built("gswitch"),
	FramesPerCall: framesPerCall,
	Start: func(b *testbed.Bed, e Env) ([]*testbed.Proc, error) {
		return gswitchConfig(b, e, func(w *bufio.Writer) { writeRated(w, congested("1600us")) })
	},
}

// What notices cost that are as frequent as at 100 Gb/s, beside a hundredth of
// its frames.
var gswitchRoCCOften = DUT{
	Name: "gswitch-rocc-often", About: "the same, a notice every 40 us",
	Missing:       built("gswitch"),
	FramesPerCall: framesPerCall,
	Start: func(b *testbed.Bed, e Env) ([]*testbed.Proc, error) {
		return gswitchConfig(b, e, func(w *bufio.Writer) { writeRated(w, congested("40us")) })
	},
}

func congested(period string) string {
	return fmt.Sprintf(", rocc: {queues: [0, 1, 2, 3, 4, 5, 6, 7], qref: 1500B, period: %s}", period)
}

// What choosing a path by load costs: the same fan of two in-process wires by
// flow and frame by frame. A single flow would use one wire where the choice is
// by flow, and what two vectors of half the length cost would be charged to the
// other way to choose.
const fanFlows = 64

var gswitchHash = DUT{
	Name: "gswitch-hash", About: "gswitch routing over two in-process wires by flow to a second switch, links of 100 Gb/s, on one worker",
	Dst: routerMAC, DstIP: routedIP, Flows: fanFlows,
	Missing:       built("gswitch"),
	FramesPerCall: framesPerCall,
	Start: func(b *testbed.Bed, e Env) ([]*testbed.Proc, error) {
		return gswitchConfig(b, e, func(w *bufio.Writer) { writeFan(w, "hash") })
	},
}

var gswitchPaths = DUT{
	Name: "gswitch-paths", About: "the same, each frame on the wire with the least load (DeTail)",
	Dst: routerMAC, DstIP: routedIP, Flows: fanFlows,
	Missing:       built("gswitch"),
	FramesPerCall: framesPerCall,
	Start: func(b *testbed.Bed, e Env) ([]*testbed.Proc, error) {
		return gswitchConfig(b, e, func(w *bufio.Writer) { writeFan(w, "adaptive") })
	},
}

// writeFan writes a switch that routes over two wires, and one that joins them.
func writeFan(w *bufio.Writer, choose string) {
	fmt.Fprintf(w, `switches:
  - name: fan
    mac: %s
    paths: {choose: %s}
    ports:
      - {interface: d0, rate: 100Gbps, address: [%s/24]}
      - {wire: one, rate: 100Gbps, address: [10.3.0.1/24]}
      - {wire: two, rate: 100Gbps, address: [10.4.0.1/24]}
    neighbors:
      - {address: 10.3.0.2, mac: %q}
      - {address: 10.4.0.2, mac: %[4]q}
    routes:
      - {prefix: 20.77.0.0/16, next_hops: [{via: 10.3.0.2}, {via: 10.4.0.2}]}
  - name: join
    ports: [{wire: one}, {wire: two}, {name: out, interface: d1, rate: 100Gbps}]
    fdb: {static: [{mac: %[4]q, port: out}]}
`, routerMAC, choose, testbed.Port0IP, testbed.SinkMAC)
}

func writeRated(w *bufio.Writer, more string) {
	fmt.Fprintf(w, `switches:
  - name: rated
    ports: [{interface: d0, rate: 100Gbps, qos: plain}, {interface: d1, rate: 100Gbps, qos: plain}]
    qos: {plain: {queues: []%s}}
`, more)
}

// What telemetry costs: the same pair of switches without and with all three
// systems, in both of them, and their reports on the way to a collector.
var gswitchPair = DUT{
	Name: "gswitch-pair", About: "two gswitches in a row over an in-process wire, links of 100 Gb/s, on one worker", Flows: fanFlows,
	Missing:       built("gswitch"),
	FramesPerCall: framesPerCall,
	Start: func(b *testbed.Bed, e Env) ([]*testbed.Proc, error) {
		return gswitchConfig(b, e, func(w *bufio.Writer) { writePair(w, "", "", "") })
	},
}

var gswitchTelemetry = DUT{
	Name: "gswitch-telemetry", About: "the same with Everflow's rules, flows in exact tables (FlowRadar) and meters at both ends of the wire (LossRadar)", Flows: fanFlows,
	Missing:       built("gswitch"),
	FramesPerCall: framesPerCall,
	Start: func(b *testbed.Bed, e Env) ([]*testbed.Proc, error) {
		return gswitchConfig(b, e, func(w *bufio.Writer) { writeTelemetry(w, "exact") })
	},
}

var gswitchTelemetryEncoded = DUT{
	Name: "gswitch-telemetry-encoded", About: "the same with flows in encoded tables", Flows: fanFlows,
	Missing:       built("gswitch"),
	FramesPerCall: framesPerCall,
	Start: func(b *testbed.Bed, e Env) ([]*testbed.Proc, error) {
		return gswitchConfig(b, e, func(w *bufio.Writer) { writeTelemetry(w, "encoded") })
	},
}

var gswitchTelemetryOnce = DUT{
	Name: "gswitch-telemetry-once", About: "the same with Everflow and FlowRadar in the first of the two switches alone: each system once a frame", Flows: fanFlows,
	Missing:       built("gswitch"),
	FramesPerCall: framesPerCall,
	Start: func(b *testbed.Bed, e Env) ([]*testbed.Proc, error) {
		return gswitchConfig(b, e, func(w *bufio.Writer) {
			watching := watches("exact")
			writeReports(w)
			writePair(w, metersOfAll, watching, "")
		})
	},
}

// writeTelemetry writes the pair with all of it. Nobody listens where the
// reports go: they are made, kept, and counted as lost in the end.
func writeTelemetry(w *bufio.Writer, tables string) {
	watching := watches(tables)
	writeReports(w)
	writePair(w, metersOfAll, watching, watching)
}

const metersOfAll = "lossradar: {queues: [0, 1, 2, 3, 4, 5, 6, 7]}"

func writeReports(w *bufio.Writer) {
	fmt.Fprint(w, "export: {to: \"127.0.0.1:9\", memory: 16MiB}\n")
}

// watches are Everflow's rules and FlowRadar's tables in a switch.
func watches(tables string) string {
	return fmt.Sprintf(`
    watch: {sessions: [{name: everflow, to: 10.9.0.1, from: 10.10.0.10, snap: 128, rate: 1Gbps, everflow: {}}]}
    flowradar: {mode: %s}`, tables)
}

// writePair writes two switches in a row that know where the sink is.
func writePair(w *bufio.Writer, metered, inNear, inFar string) {
	fmt.Fprintf(w, `switches:
  - name: near
    qos: {metered: {%[1]s}}
    ports: [{interface: d0, rate: 100Gbps}, {wire: one, rate: 100Gbps, qos: metered}]
    fdb: {static: [{mac: %[2]q, port: one}]}%[3]s
  - name: far
    qos: {metered: {%[1]s}}
    ports: [{wire: one, rate: 100Gbps, qos: metered}, {name: out, interface: d1, rate: 100Gbps}]
    fdb: {static: [{mac: %[2]q, port: out}]}%[4]s
`, metered, testbed.SinkMAC, inNear, inFar)
}

// gswitchConfig starts a gswitch with a configuration, and with more flags.
func gswitchConfig(b *testbed.Bed, e Env, write func(*bufio.Writer), flags ...string) ([]*testbed.Proc, error) {
	path := filepath.Join(b.Dir, "switch.yaml")
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	w := bufio.NewWriter(f)
	fmt.Fprintf(w, "version: 1\nworkers: [{cpu: %d, poll: spin}]\ncontrol: {socket: /run/gswitch/%s.sock}\n", e.CPU, daemon)
	write(w)
	if err := w.Flush(); err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	return one(b, "gswitch", "ready", append([]string{filepath.Join(e.Bin, "gswitch"), "run", "-c", path}, flags...)...)
}

func writeChain(w *bufio.Writer) {
	fmt.Fprint(w, `switches:
  - {name: first, ports: [{interface: d0}, {wire: one}]}
  - {name: second, ports: [{wire: one}, {wire: two}]}
  - {name: third, ports: [{wire: two}, {interface: d1}]}
`)
}

func writeFull(w *bufio.Writer) {
	fmt.Fprintf(w, `switches:
  - name: full
    mac: %s
    ports:
      - {name: in, interface: d0, address: [%s/24], trust: dscp, acl: edge, qos: mixed}
      - {name: out, interface: d1, address: [%s/24], trust: dscp, acl: edge, qos: mixed}
    qos:
      mixed:
        queues:
          - {queue: 0, weight: 10}
          - {queue: 1, weight: 10}
          - {queue: 2, weight: 10}
          - {queue: 3, weight: 40, ecn: {kmin: 100KB, kmax: 400KB, pmax: 0.2}}
          - {queue: 4, weight: 20}
          - {queue: 5, weight: 10}
          - {queue: 6, strict: true}
          - {queue: 7, strict: true}
    buffer: {alpha: 1, reserve: 2KiB, lossless: {alpha: 0.5}}
    pfc: {classes: [3], watchdog: {}}
    neighbors:
      - {address: %s, mac: %q}
      - {address: %s, mac: %q}
`, routerMAC, testbed.Port0IP, testbed.Port1IP, testbed.GenIP, testbed.GenMAC, testbed.SinkIP, testbed.SinkMAC)
	writeRules(w)
	writeRoutes(w)
}

// writeRules writes an access list over many combinations of masks. None but
// the last rule matches the generator's frames; that one puts them into the
// lossless class.
func writeRules(w *bufio.Writer) {
	fmt.Fprint(w, "    acls:\n      edge:\n")
	srcBits, dstBits := []int{8, 16, 24, 32}, []int{12, 16, 24, 32}
	for i := range fullRules - 1 {
		// Networks of 100.64.0.0/10 and 172.16.0.0/12, which no frame of the test comes from.
		src, dst := uint32(0x64400000|i<<7), uint32(0xac100000|i<<9)
		s, d := srcBits[i%len(srcBits)], dstBits[i/len(srcBits)%len(dstBits)]
		match := fmt.Sprintf("src: %s/%d, dst: %s/%d", dotted(src, s), s, dotted(dst, d), d)
		switch i % 3 {
		case 0:
			match += fmt.Sprintf(", protocol: tcp, dst_port: %d, dscp: 46", 1000+i)
		case 1:
			match += fmt.Sprintf(", protocol: udp, dst_port: %d", 1000+i)
		case 2:
			match += fmt.Sprintf(", protocol: tcp, src_port: %d", 1000+i)
		}
		action := "drop"
		if i%2 == 0 {
			action = "permit"
		}
		fmt.Fprintf(w, "        - {match: {%s}, action: %s}\n", match, action)
	}
	fmt.Fprintf(w, "        - {match: {protocol: udp, dst_port: 9}, set_class: 3}\n")
}

// writeRoutes writes routes of the lengths that the Internet's table has most
// of, all towards the sink. Each /16 below holds 256 of them or more.
func writeRoutes(w *bufio.Writer) {
	fmt.Fprint(w, "    routes:\n")
	n := 0
	add := func(addr uint32, bits int) {
		if n < fullRoutes {
			fmt.Fprintf(w, "      - {prefix: %s/%d, via: %s}\n", dotted(addr, bits), bits, testbed.SinkIP)
			n++
		}
	}
	for net := uint32(0); n < fullRoutes; net++ {
		base := uint32(20)<<24 + net<<16
		add(base, 16)
		for third := range uint32(256) {
			add(base|third<<8, 24)
			if third%8 == 0 {
				add(base|third<<8, 21)
			}
			if third%16 == 0 {
				add(base|third<<8|16, 28)
			}
		}
	}
}

// dotted writes the network of addr with the given length.
func dotted(addr uint32, bits int) string {
	addr &= ^uint32(0) << (32 - bits)
	return fmt.Sprintf("%d.%d.%d.%d", addr>>24, addr>>16&255, addr>>8&255, addr&255)
}
