// Package compare measures forwarders against each other on a test bed: in
// turn, round after round, so that a drift of the machine affects all alike.
package compare

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"gswitch/bench/dut"
	"gswitch/bench/meter"
	"gswitch/bench/testbed"
	"gswitch/bench/traffic"
)

// Mode says what is measured.
type Mode string

// The modes.
const (
	Throughput Mode = "throughput" // frames that arrive of as many as the generator can send
	Paced      Mode = "paced"      // frames that arrive, and are lost, of a given rate
	Latency    Mode = "latency"    // round trips of single probes
	Idle       Mode = "idle"       // what it costs when nothing arrives
)

// Options are what is measured and how.
type Options struct {
	Mode    Mode
	Rounds  int
	Sizes   []int // bytes with FCS
	Seconds float64
	Rate    float64 // frames/s offered in mode Paced, else 0
	Flows   int
	Queues  int
	Probes  int
	Gap     time.Duration // between probes
	Perf    string        // file for a profile of the forwarder's core, or ""; each run overwrites it
	Env     dut.Env
}

// Result is one run of one forwarder.
type Result struct {
	DUT     string `json:"dut"`
	Size    int    `json:"size"`
	Round   int    `json:"round"`
	Invalid string `json:"invalid,omitempty"` // why it does not count

	Kpps     float64 `json:"kpps,omitempty"`    // that reached the sink
	Gbps     float64 `json:"gbps,omitempty"`    // of bytes without FCS
	Offered  float64 `json:"offered,omitempty"` // kpps of the generator over the whole run
	Sent     uint64  `json:"sent,omitempty"`
	Received uint64  `json:"received,omitempty"` // of those, over the whole run
	UserNS   float64 `json:"user_ns,omitempty"`  // user time of the forwarder a frame

	PerCall float64 `json:"frames_per_call,omitempty"` // frames sent in a system call, where the forwarder reports it

	Cores    []meter.Core `json:"cores,omitempty"`
	Use      meter.Use    `json:"use"`
	Resident int64        `json:"resident,omitempty"` // bytes

	RTT *traffic.RTT `json:"rtt,omitempty"`
}

// Bounds beyond which a run says nothing of the forwarder.
const (
	maxWaiting = 7   // percent of the time in which the forwarder's busiest thread wanted its core and another task had it
	minOffered = 400 // kpps of an unlimited generator: below it has stalled
)

const (
	settle    = 300 * time.Millisecond // after a forwarder is ready
	warm      = 700 * time.Millisecond // after the first frame reached the sink
	firstWait = 8 * time.Second        // for that first frame
	drain     = 200 * time.Millisecond // for frames on their way when the generator has ended
)

// Run measures one forwarder once.
func Run(o Options, d dut.DUT, size, round int) Result {
	r := Result{DUT: d.Name, Size: size, Round: round}
	if err := r.run(o, d); err != nil {
		r.Invalid = err.Error()
	}
	return r
}

func (r *Result) run(o Options, d dut.DUT) (err error) {
	bed, err := testbed.New(o.Queues)
	if err != nil {
		return err
	}
	defer func() {
		if e := bed.Close(); err == nil {
			err = e
		}
	}()
	switch o.Mode {
	case Latency:
		return r.latency(o, d, bed)
	case Idle:
		return r.idle(o, d, bed)
	default:
		return r.throughput(o, d, bed)
	}
}

// self starts a subcommand of this program in the generator's namespace, that
// sends the frames of the run.
func (r *Result) self(bed *testbed.Bed, d dut.DUT, name string, args ...string) (*testbed.Proc, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return bed.Start(testbed.Gen, name, append([]string{exe, name, "-device", "g0",
		"-dst", cmp.Or(d.Dst, testbed.SinkMAC), "-dstip", cmp.Or(d.DstIP, testbed.SinkIP), "-size", strconv.Itoa(r.Size)}, args...)...)
}

func (r *Result) throughput(o Options, d dut.DUT, bed *testbed.Bed) error {
	h, closeHandle, err := testbed.Handle(testbed.Sink)
	if err != nil {
		return err
	}
	defer closeHandle()
	// What loads a BPF program comes before the forwarder, which may spin and
	// so delay what waits for RCU.
	sink, err := traffic.NewSink(h, "s0")
	if err != nil {
		return err
	}
	defer sink.Close()
	gen, err := r.self(bed, d, "gen", "-wait", "-flows", strconv.Itoa(max(o.Flows, d.Flows)), "-rate", strconv.FormatFloat(o.Rate, 'f', -1, 64), "-cpu", strconv.Itoa(o.Env.GenCPU))
	if err != nil {
		return err
	}
	if err := gen.Ready("ready", 10*time.Second); err != nil {
		return err
	}
	procs, err := d.Start(bed, o.Env)
	if err != nil {
		return err
	}
	time.Sleep(settle)
	var perf *testbed.Proc
	if o.Perf != "" {
		// A clock, since virtual machines often have no hardware counters.
		perf, err = bed.Start(testbed.DUT, "perf", "perf", "record", "-q", "-C", strconv.Itoa(o.Env.CPU), "-e", "cpu-clock", "-F", "1999", "-g", "-o", o.Perf)
		if err != nil {
			return err
		}
	}
	if err := gen.Go(); err != nil {
		return err
	}
	for end := time.Now().Add(firstWait); ; time.Sleep(time.Millisecond) {
		n, _, err := sink.Count()
		if err != nil {
			return err
		}
		if n > 0 {
			break
		}
		if time.Now().After(end) {
			return fmt.Errorf("no frame reached the sink within %v", firstWait)
		}
	}
	time.Sleep(warm)

	before, err := meter.Read(pids(procs))
	if err != nil {
		return err
	}
	f0, b0, err := sink.Count()
	if err != nil {
		return err
	}
	time.Sleep(time.Duration(o.Seconds * float64(time.Second)))
	f1, b1, err := sink.Count()
	if err != nil {
		return err
	}
	after, err := meter.Read(pids(procs))
	if err != nil {
		return err
	}
	var span time.Duration
	r.Cores, r.Use, span = after.Since(before)
	r.Kpps = float64(f1-f0) / span.Seconds() / 1e3
	r.Gbps = float64(b1-b0) * 8 / span.Seconds() / 1e9
	if f1 > f0 && len(procs) > 0 {
		r.UserNS = r.Use.User / 100 * span.Seconds() * 1e9 / float64(f1-f0)
	}
	r.resident(procs)
	if d.FramesPerCall != nil {
		if r.PerCall, err = d.FramesPerCall(o.Env); err != nil {
			return err
		}
	}

	if perf != nil {
		perf.Stop()
	}
	gen.Stop()
	var sent traffic.Sent
	if err := lastLine(gen.Log, &sent); err != nil {
		return err
	}
	time.Sleep(drain)
	if r.Received, _, err = sink.Count(); err != nil {
		return err
	}
	r.Sent = sent.Frames
	r.Offered = float64(sent.Frames) / sent.Seconds / 1e3
	want := float64(minOffered)
	if o.Rate > 0 {
		want = o.Rate / 2e3
	}
	switch {
	case r.Offered < want:
		return fmt.Errorf("generator stalled: %.0f kpps", r.Offered)
	case r.Use.Waiting > maxWaiting:
		return fmt.Errorf("disturbed: waited %.0f %% of the time for its core", r.Use.Waiting)
	}
	return nil
}

func (r *Result) latency(o Options, d dut.DUT, bed *testbed.Bed) error {
	ns, device := testbed.Sink, "s0"
	if d.Name == dut.Direct {
		ns, device = testbed.DUT, "d0"
	}
	h, closeHandle, err := testbed.Handle(ns)
	if err != nil {
		return err
	}
	defer closeHandle()
	refl, err := traffic.NewReflector(h, device)
	if err != nil {
		return err
	}
	defer refl.Close()
	var procs []*testbed.Proc
	if d.Start != nil {
		if procs, err = d.Start(bed, o.Env); err != nil {
			return err
		}
	}
	time.Sleep(settle)
	before, err := meter.Read(pids(procs))
	if err != nil {
		return err
	}
	ping, err := r.self(bed, d, "ping", "-count", strconv.Itoa(o.Probes), "-gap", o.Gap.String(), "-cpu", strconv.Itoa(o.Env.GenCPU))
	if err != nil {
		return err
	}
	// A lost probe costs a tenth of a second.
	within := time.Duration(o.Probes+200)*(o.Gap+time.Millisecond)*2 + 30*time.Second
	select {
	case <-ping.Ended():
	case <-time.After(within):
		return fmt.Errorf("the pinger did not end within %v", within)
	}
	after, err := meter.Read(pids(procs))
	if err != nil {
		return err
	}
	r.Cores, r.Use, _ = after.Since(before)
	r.RTT = &traffic.RTT{}
	if err := lastLine(ping.Log, r.RTT); err != nil {
		return err
	}
	switch {
	case r.RTT.N == 0:
		return fmt.Errorf("no probe came back")
	case r.Use.Waiting > maxWaiting:
		return fmt.Errorf("disturbed: waited %.0f %% of the time for its core", r.Use.Waiting)
	}
	return nil
}

func (r *Result) idle(o Options, d dut.DUT, bed *testbed.Bed) error {
	procs, err := d.Start(bed, o.Env)
	if err != nil {
		return err
	}
	time.Sleep(settle + warm)
	before, err := meter.Read(pids(procs))
	if err != nil {
		return err
	}
	time.Sleep(time.Duration(o.Seconds * float64(time.Second)))
	after, err := meter.Read(pids(procs))
	if err != nil {
		return err
	}
	r.Cores, r.Use, _ = after.Since(before)
	r.resident(procs)
	return nil
}

func (r *Result) resident(procs []*testbed.Proc) {
	for _, p := range procs {
		if n, err := meter.Resident(p.PID()); err == nil { // it may have crashed: the frames show
			r.Resident += n
		}
	}
}

func pids(procs []*testbed.Proc) (ids []int) {
	for _, p := range procs {
		ids = append(ids, p.PID())
	}
	return ids
}

// lastLine decodes the last line of a log, which is what a subcommand of ours found.
func lastLine(log string, into any) error {
	b, err := os.ReadFile(log)
	if err != nil {
		return err
	}
	s := strings.TrimSpace(string(b))
	if err := json.Unmarshal([]byte(s[strings.LastIndexByte(s, '\n')+1:]), into); err != nil {
		return fmt.Errorf("%s: %s", log, s)
	}
	return nil
}
