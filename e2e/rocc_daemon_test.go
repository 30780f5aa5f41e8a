package e2e

import (
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gswitch/control/api"
)

// roccPeriod is T of a congestion point at 200 Mb/s, at scale 1: that of 40 Gb/s
// by the scaling law.
const roccPeriod = 8 * time.Millisecond

// roccReference is what it holds in its queue, at any scale.
const roccReference = 150e3

// roccNet is a switch whose port d2 is a congestion point, with three ghosts.
// All links have 200 Mb/s at scale 1.
func roccNet(t *testing.T, s ghostScale) (l *lab, sw, hosts *daemon) {
	l = newLab(t, 3, labOptions{})
	var ports, list strings.Builder
	for i, h := range l.hosts {
		fmt.Fprintf(&ports, "  - {interface: d%d, netns: %s, rate: %s, burst: %s, qos: fair}\n", i, l.sw, s.rate(200), s.time(roccPeriod/4))
		fmt.Fprintf(&list, "- {name: g%d, netns: %s, interface: eth0, address: 10.0.0.%d/24, rate: %s, burst: %s, base_rtt: %s, serve: true}\n",
			i, h.ns, i+1, s.rate(200), s.time(roccPeriod/4), s.time(roccPeriod))
	}
	sw, _ = runConfig(t, "version: 1\nswitches:\n- name: s1\n  id: 7\n  qos: {fair: {queues: [], rocc: {queues: [0], cut: half}}}\n  ports:\n"+ports.String())
	file := filepath.Join(t.TempDir(), "hosts.yaml")
	write(t, file, "version: 1\nhosts:\n"+list.String())
	hosts = launchProgram(t, ghost, filepath.Join(t.TempDir(), "sock"), "-c", file)
	hosts.await()
	return l, sw, hosts
}

// congestionPoint is what show rocc reports of a port.
type congestionPoint struct {
	FairRate, Bytes, Flows, Updates, Cuts, Notices, Unsent, UntrackedFrames uint64
}

// congested is the congestion point of a port.
func congested(d *daemon, port string) (p congestionPoint) {
	found := false
	for _, c := range show(d, &api.Counters{}, "rocc").Counters {
		if c.Port != port {
			continue
		}
		found = true
		switch v := uint64(c.Value); c.Name + " " + c.Kind {
		case "rocc_fair_rate_bytes_per_second ":
			p.FairRate = uint64(8 * c.Value)
		case "rocc_waiting_bytes ":
			p.Bytes = v
		case "rocc_flows ":
			p.Flows = v
		case "rocc_updates_total tuned", "rocc_updates_total halved":
			p.Updates += v
		case "rocc_updates_total cut":
			p.Cuts, p.Updates = v, p.Updates+v
		case "rocc_notices_total sent":
			p.Notices = v
		case "rocc_notices_total unsent":
			p.Unsent = v
		case "rocc_untracked_frames_total ":
			p.UntrackedFrames = v
		}
	}
	if !found {
		d.t.Fatalf("port %s is no congestion point", port)
	}
	return p
}

// Two hosts with --cc rocc send to a third through a gswitch daemon: it sends
// each half of the link, within 10 %, and holds its queue within 20 % of the
// reference; both get the same. When they are gone it sends the rate of the whole link and
// rests. What is waited for are periods of the switch. Where workers are late, or
// away, for a quarter of one the run is repeated in slow motion, and so it is where
// the rate or the queue is another, as one absence of some periods empties the queue: they
// have to be right at one of the scales at which workers are in time. What does not depend
// on the machine holds at each: no sender exceeds its rate, and both send
// the same.
func TestRoCCDaemons(t *testing.T) {
	scales := []ghostScale{1, 4, 16}
	var wrong []string
	for step, s := range scales {
		l, sw, hosts := roccNet(t, s)
		T := roccPeriod * time.Duration(s)
		var senders []*exec.Cmd
		for i := range 2 {
			c := exec.Command(ghost, "--socket", hosts.socket, "--host", fmt.Sprintf("g%d", i), "send", "--to", "10.0.0.3", "--size", "500MB",
				"--cc", "rocc")
			c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			senders = append(senders, c)
		}
		var both uint64 // periods until both flows were there
		eventually(t, "two hundred periods of both flows", func() error {
			switch p := congested(sw, "d2"); {
			case both == 0 && p.Flows == 2:
				both = p.Updates
				fallthrough
			case both == 0 || p.Updates < both+200:
				return fmt.Errorf("%v", p)
			}
			return nil
		})
		before, ports := congested(sw, "d2"), sw.ports()
		sent := [2]uint64{ports["d0"].RxBytes, ports["d1"].RxBytes}
		stalled := stalls(T / 4)
		var fair, queue, n float64
		for p := before; p.Updates < before.Updates+100; n++ {
			p = congested(sw, "d2")
			fair, queue = fair+float64(p.FairRate), queue+float64(p.Bytes)
		}
		fair, queue = fair/n, queue/n
		ports = sw.ports()
		after := congested(sw, "d2")
		a, b := float64(ports["d0"].RxBytes-sent[0]), float64(ports["d1"].RxBytes-sent[1])

		lost := stalled()
		late := time.Duration(asked(hosts, &api.HostStatus{}, "--host", "g0", "show", "host").Timing.FrameLateP99)
		switchLate := time.Duration(show(sw, &api.Workers{}, "workers").Workers[0].LatenessP99)
		table := sw.do("show", "rocc")
		for _, c := range senders {
			c.Process.Signal(syscall.SIGINT)
			c.Wait()
		}
		// A pacer catches up on a quarter of a period (burst). What its worker
		// is away for longer is lost, and the fair rate rises to make up for it.
		span := float64(after.Updates-before.Updates) * T.Seconds()
		kept := (a + b) * 8 / span / (2 * fair) // what is sent of the fair rate
		if share := a / (a + b); math.Abs(share-0.5) > 0.05 {
			t.Errorf("the first sends %.3f of all, want a half within 10 %%", share)
		}
		if kept > 1.1 {
			t.Errorf("both send %.2f times their rate", kept)
		}
		if notices := after.Notices - before.Notices; notices < after.Updates-before.Updates || after.Unsent != 0 || after.UntrackedFrames != 0 {
			t.Errorf("%d notices in %d periods: %v", notices, after.Updates-before.Updates, after)
		}
		if inTime := max(late, switchLate) <= T/4 && lost <= 0.02 && kept > 0.95; !inTime {
			t.Logf("scale %d is too fast for this machine: frames are %v late, the switch %v, a period is %v; a process loses %.1f %% of its time in longer waits; %.2f of the rate is sent", s, late, switchLate, T, lost*100, kept)
			hosts.stop(l.hosts[0].ns, l.hosts[1].ns, l.hosts[2].ns)
			sw.stop(l.sw)
			if step == len(scales)-1 && wrong == nil {
				t.Log("the fair rate and the queue were not judged")
			}
			continue
		}
		t.Logf("scale %d: %.1f Mb/s are fair, queue %.0f bytes, shares %.2f and %.2f of what is sent; frames %v late, the switch %v; %d of %d periods cut\n%s",
			s, fair*float64(s)/1e6, queue, a/(a+b), b/(a+b), late, switchLate, after.Cuts, after.Updates, table)
		half := 100e6 / float64(s)
		if math.Abs(fair-half) > 0.1*half || math.Abs(queue-roccReference) > 0.2*roccReference {
			wrong = append(wrong, fmt.Sprintf("scale %d: %.1f Mb/s are fair, want %.1f within 10 %%; the queue holds %.0f bytes, want %.0f within 20 %%",
				s, fair/1e6, half/1e6, queue, roccReference))
			hosts.stop(l.hosts[0].ns, l.hosts[1].ns, l.hosts[2].ns)
			sw.stop(l.sw)
			continue
		}
		if !strings.Contains(table, "d2") {
			t.Errorf("show rocc prints\n%s", table)
		}
		eventually(t, "the whole link when both are gone", func() error {
			if p := congested(sw, "d2"); p.FairRate != uint64(200e6/s) || p.Flows != 0 || p.Bytes != 0 {
				return fmt.Errorf("%v", p)
			}
			return nil
		})
		hosts.stop(l.hosts[0].ns, l.hosts[1].ns, l.hosts[2].ns)
		sw.stop(l.sw)
		return
	}
	for _, w := range wrong {
		t.Error(w)
	}
}

// stalls watches how late a process wakes up here until the function that it
// returns is called, which says what share of the time it lost beyond what is
// made up for.
func stalls(madeUp time.Duration) func() float64 {
	end, share := make(chan struct{}), make(chan float64)
	go func() {
		began, lost := time.Now(), time.Duration(0)
		for {
			select {
			case <-end:
				share <- lost.Seconds() / time.Since(began).Seconds()
				return
			default:
			}
			due := time.Now().Add(time.Millisecond)
			time.Sleep(time.Millisecond)
			if late := time.Since(due); late > madeUp {
				lost += late - madeUp
			}
		}
	}()
	return func() float64 {
		close(end)
		return <-share
	}
}
