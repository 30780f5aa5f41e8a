package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gswitch/control/api"
	"gswitch/fabric/results"
)

// Lossless classes on real frames, however a run is divided into processes, where nodes
// stand still again and again for longer than the headroom of exact nodes lasts.

// stand is how long nodes stand still, in microseconds: an eighth of T. It leaves half of
// what a run on real frames may be late by to the machine.
const stand = 12

// congestedRing is three switches in a ring with a host each. Two hosts send to the third
// until all has arrived; or, in the variants that are circles, each flow crosses two links
// of the ring, as in scenarios/escape/fig4.7-ring.yaml: by pauses alone all that was sent
// waits in the end. Each node stands still again and again.
func congestedRing() string {
	const circle = `duration: 300us, until: time, hosts.ack_class: 7,
      switch.detours: [{at: s1, to: s3, via: s2}, {at: s2, to: s1, via: s3}, {at: s3, to: s2, via: s1}],
      workload: [{group: f1, kind: saturate, from: [h1], to: [h3], size: 100KB}, {group: f2, kind: saturate, from: [h2], to: [h1], size: 100KB},
        {group: f3, kind: saturate, from: [h3], to: [h2], size: 100KB}]`
	var b strings.Builder
	b.WriteString(`version: 1
topology: {generate: "ring(3, 1)", classes: {host: {rate: 10Gbps, delay: 1us}, fabric: {rate: 10Gbps, delay: 1us}}}
pfc: {enabled: true}
switch: {buffer: {size: 2MB, xoff: 20KB, xon_offset: 2KB}}
hosts: {class: 3, base_rtt: 100us, cc: none, params: {window: none}}
workload: [{kind: incast, from: [h1, h2], to: [h3], size: 200KB}]
duration: 5ms
until: done
variants:
  - {name: incast}
  - {name: crossbar, set: {switch.crossbar.enabled: true, switch.crossbar.ingress: 16KB}}
  - {name: circle, set: {` + circle + `}}
  - {name: escape, set: {` + circle + `, switch.escape.enabled: true}}
  - {name: gfc, set: {` + circle + `, switch.gfc.enabled: true}}
expect: [drops_total == 0]
faults:
`)
	for i, n := range []string{"s1", "s2", "s3", "h1", "h2", "h3"} {
		for at := 20 + 7*i; at < 280; at += 41 + 3*i {
			fmt.Fprintf(&b, "  - {kind: pause, node: %s, start: %dus, stop: %dus}\n", n, at, at+stand)
		}
	}
	return b.String()
}

// A run that is divided into processes loses no frame of a lossless class: not if it kept
// its time, nor if no node was ever late by more than the headroom counts in, whatever
// else it says of itself; and one that lost some is invalid. What did not keep its time is
// run again, slower. Exact nodes that stand still as often and as long do lose frames, in
// virtual time, so that it is the headroom which keeps them.
func TestLosslessProcesses(t *testing.T) {
	file := aScenario(t, "lossless", congestedRing())
	lost := 0.0
	for _, r := range losslessRun(t, file).Runs {
		lost += r.Values["drops_headroom_full"]
	}
	if lost == 0 {
		t.Error("in virtual time exact nodes lose nothing: no headroom is needed")
	}
	for _, processes := range []string{"one", "hosts", "each"} {
		t.Run(processes+"/400", func(t *testing.T) { losesNothing(t, file, processes, 400) })
		// At this one those from which all arrives.
		t.Run(processes+"/1000", func(t *testing.T) { losesNothing(t, file, processes, 1000, "incast", "crossbar") })
	}
}

// losslessRun runs variants of a scenario, all if none is named.
func losslessRun(t *testing.T, file string, args ...string) *results.File {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "out")
	c, out := fabricCommand(file, append([]string{"run", file, "--out", dir}, args...)...)
	c.Run()
	f, err := results.Load(dir)
	if err != nil || len(f.Runs) == 0 {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return f
}

// losesNothing runs variants until each has kept its time, each time slower: all, if none is
// named.
func losesNothing(t *testing.T, file, processes string, scale int, variants ...string) {
	for most := 27 * scale; ; scale *= 3 {
		args := []string{"--on", "netns", "--processes", processes, "--scale", fmt.Sprint(scale)}
		for _, v := range variants {
			args = append(args, "--only", v)
		}
		f := losslessRun(t, file, args...)
		variants = nil
		for i := range f.Runs {
			if r := &f.Runs[i]; !checkLossless(t, r) {
				variants = append(variants, r.Name)
			}
		}
		switch {
		case variants == nil || t.Failed():
			return
		case scale == most:
			t.Fatalf("%v did not keep time at scale %d", variants, scale)
		}
		t.Logf("%v did not keep time at scale %d, again slower", variants, scale)
	}
}

// checkLossless holds a run against what it may be late by, and reports whether it kept
// its time.
func checkLossless(t *testing.T, r *results.Run) bool {
	t.Helper()
	v, g := r.Values, r.Timing
	lost := v["drops_headroom_full"]
	t.Logf("%s: %v pauses, %v lost, nodes late by up to %.0f us, frames by %.0f us, of %.0f us", r.Name, v["pauses_total"], lost, g.LateMax*1e6, g.TransitMax*1e6, g.Bound*1e6)
	// A node that stands still may not be late by its own account.
	if late := max(g.LateMax, g.TransitMax) + stand*1e-6; lost > 0 && late <= g.Bound {
		t.Errorf("%s lost %v lossless frames, and no node was late by more than the headroom counts in", r.Name, lost)
	}
	if !g.Valid {
		return false
	}
	switch {
	case lost > 0:
		t.Errorf("%s lost %v lossless frames and calls itself valid", r.Name, lost)
	case v["drops_total"] != 0 || v["retransmissions_total"] != 0 || v["late_frames_total"] != 0 || g.RingDrops != 0:
		t.Errorf("%s: %v frames dropped, %v sent again, %v late, %d lost in rings", r.Name, v["drops_total"], v["retransmissions_total"], v["late_frames_total"], g.RingDrops)
	case (r.Name == "incast" || r.Name == "crossbar") && (len(r.Flows) != 2 || v["flows_unfinished_total"] != 0):
		t.Errorf("%s: %d flows, of which %v did not end", r.Name, len(r.Flows), v["flows_unfinished_total"])
	case v["pauses_total"] == 0 || v["pause_frames_total"] == 0:
		t.Errorf("%s: nothing was paused, so that nothing was tried", r.Name)
	}
	return true
}

// response is what daemons of pausedNet are told that both ends of a link take to act on a
// pause, at scale 1: many times what a worker here needs to wake up.
const response = 100 * time.Millisecond

// pausedNet is a switch with three hosts, whose class 3 is lossless. All links have
// 200 Mb/s at scale 1, but for the one to the last host, which has a quarter of that.
// lossless is what the switch is told of its lossless classes.
func pausedNet(t *testing.T, s ghostScale, lossless string) (l *lab, sw, hosts *daemon) {
	l = newLab(t, 3, labOptions{})
	var ports, list strings.Builder
	for i, h := range l.hosts {
		rate := s.rate(200)
		if i == 2 {
			rate = s.rate(50)
		}
		fmt.Fprintf(&ports, "  - {interface: d%d, netns: %s, rate: %s, delay: 1us}\n", i, l.sw, rate)
		fmt.Fprintf(&list, "- {name: g%d, netns: %s, interface: eth0, address: 10.0.0.%d/24, rate: %s, base_rtt: %s, class: 3, pfc: {classes: [3]}, serve: true}\n",
			i, h.ns, i+1, rate, s.time(200*time.Millisecond))
	}
	sw, _ = runConfig(t, fmt.Sprintf("version: 1\nmemory: {frames: 32768}\nswitches:\n- name: s1\n  pfc: {classes: [3]}\n  buffer: {size: 16MB, lossless: {xoff: 100KB, hysteresis: 10KB%s}}\n  ports:\n%s",
		lossless, ports.String()))
	file := filepath.Join(t.TempDir(), "hosts.yaml")
	write(t, file, "version: 1\nhosts:\n"+list.String())
	hosts = launchProgram(t, ghost, filepath.Join(t.TempDir(), "sock"), "-c", file)
	hosts.await()
	return l, sw, hosts
}

// Daemons on veth pairs lose no frame of a lossless class at a port to which eight times as
// much is sent as it can send, while both ends of a link act on a pause within the time
// that the switch says in its log. It is given headroom for that, and says how much. Where
// the machine kept a program waiting for longer it is done again in slow motion.
func TestLosslessDaemons(t *testing.T) {
	for _, s := range []ghostScale{1, 4, 16} {
		l, sw, hosts := pausedNet(t, s, fmt.Sprintf(", response: %s", s.time(response)))
		headroom := headroomOf(t, s)
		for _, want := range []string{fmt.Sprintf("msg=\"headroom of lossless classes\" switch=s1 ports=d0,d1 bytes=%d computed=true rate=%s", headroom, "200Mbps"),
			fmt.Sprintf("assumes=\"both ends of a link act on a pause within %v (buffer.lossless.response)\"", response*time.Duration(s))} {
			if log := sw.log.String(); s == 1 && !strings.Contains(log, want) {
				t.Errorf("the log does not say %q:\n%s", want, log)
			}
		}
		late := congest(t, sw, hosts, 2000/int(s))
		lost := sw.losses()
		if len(lost) != 0 && 2*late > response*time.Duration(s) {
			t.Logf("scale %d: %v lost, programs were late by up to %v; again slower", s, lost, late)
			sw.stop(l.sw)
			continue
		}
		if len(lost) != 0 {
			t.Errorf("lost %v; programs were late by up to %v", lost, late)
		}
		pauses := uint64(0)
		for _, c := range show(sw, &api.PFC{}, "pfc").Classes {
			pauses += c.TxXoff
		}
		for _, g := range show(sw, &api.Buffers{}, "buffer").Groups {
			if g.Class != 3 || g.Port == "d2" {
				continue
			}
			t.Logf("%s: %d bytes of headroom were used at most, of %d; programs late by up to %v", g.Port, g.HeadroomPeak, g.HeadroomSize, late)
			if g.HeadroomSize != headroom || g.HeadroomPeak == 0 || g.Drops != 0 {
				t.Errorf("the buffer says %v, and gfabric headroom %d bytes", g, headroom)
			}
		}
		if pauses == 0 {
			t.Error("nothing was paused, so that nothing was tried")
		}
		return
	}
	t.Fatal("programs were never in time")
}

// congest has two hosts of pausedNet send so many kilobytes each to the third, and returns
// how late programs were at most.
func congest(t *testing.T, sw, hosts *daemon, kB int) (late time.Duration) {
	t.Helper()
	var senders []*exec.Cmd
	var out [2]bytes.Buffer
	for i := range out {
		c := exec.Command(ghost, "--socket", hosts.socket, "--host", fmt.Sprintf("g%d", i), "send", "--to", "10.0.0.3", "--size", fmt.Sprintf("%dkB", kB), "--cc", "none", "--json")
		c.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
		c.Stdout, c.Stderr = &out[i], &out[i]
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		senders = append(senders, c)
	}
	for i, c := range senders {
		if err := c.Wait(); err != nil {
			t.Errorf("g%d: %v\n%s", i, err, out[i].String())
		}
	}
	late = time.Duration(show(sw, &api.Workers{}, "workers").Workers[0].LatenessMax)
	for _, h := range asked(hosts, &api.HostList{}, "show", "hosts").Hosts {
		late = max(late, time.Duration(max(h.Timing.TimerLateMax, h.Timing.FrameLateMax)))
	}
	return late
}

// A switch that is told nothing of how fast both ends of a link act on a pause allows for
// workers that wait for their turn on a busy machine, and loses nothing unless they are later
// than that. With headroom for one byte it loses what comes after a pause was asked for, and
// says so in its log.
func TestLosslessByDefault(t *testing.T) {
	const allowed = 20 * time.Millisecond
	const warning = `msg="lossless classes lose frames: a pause took longer to act than headroom allows for" port=s1/d`
	_, sw, hosts := pausedNet(t, 1, "")
	if log := sw.log.String(); !strings.Contains(log, "within 20ms (buffer.lossless.response)") {
		t.Errorf("the log:\n%s", log)
	}
	late := congest(t, sw, hosts, 1000)
	if lost := sw.losses(); len(lost) != 0 && 2*late <= allowed {
		t.Errorf("lost %v; programs were late by up to %v", lost, late)
	} else if len(lost) == 0 && strings.Contains(sw.log.String(), warning) {
		t.Errorf("nothing was lost:\n%s", sw.log.String())
	}

	_, sw, hosts = pausedNet(t, 1, ", headroom: 1B, allow_loss: true")
	congest(t, sw, hosts, 1000)
	if lost := sw.losses(); len(lost) == 0 {
		t.Fatal("nothing was lost, with headroom for a byte")
	}
	eventually(t, "the warning", func() error {
		if log := sw.log.String(); !strings.Contains(log, warning) || !strings.Contains(log, "reason=headroom-full response=50µs") {
			return fmt.Errorf("the log does not say so:\n%s", log)
		}
		return nil
	})
}

// headroomOf is what gfabric headroom says of the link of a host of pausedNet.
func headroomOf(t *testing.T, s ghostScale) uint64 {
	t.Helper()
	out, err := exec.Command(gfabric, "headroom", "--rate", s.rate(200), "--delay", "1us", "--response", s.time(response), "--json").Output()
	var v struct {
		Lines []struct {
			Name  string
			Bytes uint64
		}
	}
	if err := json.Unmarshal(out, &v); err != nil {
		t.Fatal(err)
	}
	for _, l := range v.Lines {
		if l.Name == "headroom" {
			return l.Bytes
		}
	}
	t.Fatalf("%v: no headroom in\n%s", err, out)
	return 0
}
