package e2e

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"gswitch/control/api"
	"gswitch/wire"
)

var lossyFor = flag.Duration("lossy", 10*time.Second, "how long frames pass the lossy cable of TestLossyCable")

// One of three cables in a row loses one frame in a hundred. The collector reports
// 1 +- 0.2 % there and names each frame that its two ends miss; on the others and in the
// other direction it reports nothing.
func TestLossyCable(t *testing.T) {
	const perSecond = 2000
	frames := int(lossyFor.Seconds() * perSecond)
	l := newLab(t, 2, labOptions{})
	l.wire(t, "x0", "x1")
	l.wire(t, "y0", "y1")
	file := filepath.Join(t.TempDir(), "fabric.yaml")
	write(t, file, "version: 1\nname: line\nmode: l2\nhosts: [h1, h2]\nswitches: [s1, s2, s3]\n"+
		"links: [{a: h1, b: s1}, {a: h2, b: s3}, {a: s1, b: s2, rate: 10Gbps}, {a: s2, b: s3, rate: 10Gbps}]\n")
	at := freePort(t)
	c := newCollector(t, file, "--reports", at)
	d, _ := runConfig(t, fmt.Sprintf(`version: 1
export: {to: %[2]q}
switches:
  - name: s1
    qos: {metered: {lossradar: {queues: [0], batch: 50ms}}}
    ports:
      - {name: h1, interface: d0, netns: %[1]s}
      - {name: s2, interface: x0, netns: %[1]s, qos: metered, faults: {loss: 1%%, seed: 5}}
  - name: s2
    qos: {metered: {lossradar: {queues: [0], batch: 50ms}}}
    ports:
      - {name: s1, interface: x1, netns: %[1]s, qos: metered}
      - {name: s3, interface: y0, netns: %[1]s, qos: metered}
  - name: s3
    qos: {metered: {lossradar: {queues: [0], batch: 50ms}}}
    ports:
      - {name: h2, interface: d1, netns: %[1]s}
      - {name: s2, interface: y1, netns: %[1]s, qos: metered}
`, l.sw, at))
	a, b := l.hosts[0], l.hosts[1]
	from, to := a.raw(t, wire.EtherTypeIPv4), b.raw(t, wire.EtherTypeIPv4)
	f := flow{dst: b.mac, src: a.mac, srcIP: [4]byte{10, 0, 0, 1}, dstIP: [4]byte{10, 0, 0, 2}, dstPort: 7777, srcPort: 1, size: 100}
	back := flow{dst: a.mac, src: b.mac, srcIP: f.dstIP, dstIP: f.srcIP, dstPort: 7778, srcPort: 1, size: 100}
	send := func(r *raw, f *flow, k int) {
		x := f.frame(uint64(k))
		binary.BigEndian.PutUint16(x[18:], uint16(k)) // identification
		binary.BigEndian.PutUint16(x[24:], 0)
		binary.BigEndian.PutUint16(x[24:], wire.Checksum(x[14:34]))
		if err := r.send(x); err != nil {
			t.Fatal(err)
		}
	}
	for k := 1; k <= frames; k++ {
		send(from, &f, k)
		send(to, &back, k)
		if k%20 == 0 {
			time.Sleep(20 * time.Second / perSecond)
		}
	}
	counted := func(name, port string) (n float64) {
		for _, c := range show(d, &api.Counters{}, "losses").Counters {
			if c.Name == name && c.Switch+"/"+c.Port == port {
				n += c.Value
			}
		}
		return n
	}
	var named, seen uint64
	eventually(t, "all losses are named", func() error {
		v, err := c.events("loss")
		if err != nil {
			return err
		}
		named = 0
		for _, e := range v {
			if e.Where != "s1>s2" || e.DstPort != 7777 {
				t.Fatalf("a loss elsewhere: %v", e)
			}
			named += e.Packets
		}
		seen = uint64(counted("lossradar_sent_frames_total", "s1/s2") - counted("lossradar_arrived_frames_total", "s2/s1"))
		if named != seen {
			return fmt.Errorf("%d losses are named, the ends of the cable miss %d", named, seen)
		}
		return nil
	})
	sent := counted("lossradar_sent_frames_total", "s1/s2")
	share := 100 * float64(named) / sent
	t.Logf("%d of %.0f frames, %.3f %%, are named", named, sent, share)
	if int(sent) < frames || math.Abs(share-1) > 0.2 {
		t.Errorf("%.3f %% of %.0f frames are reported as lost, want 1 +- 0.2", share, sent)
	}
	d.stop(l.sw)
}

// Two hosts with meters on a switch, whose link to one of them loses three frames in a
// hundred. What the ends of each link miss the collector names, in its direction, from the
// reports of the switch and of the hosts.
func TestLossyHostLink(t *testing.T) {
	l := newLab(t, 2, labOptions{})
	file := filepath.Join(t.TempDir(), "fabric.yaml")
	write(t, file, "version: 1\nname: star\nmode: l2\nhosts: [g0, g1]\nswitches: [s1]\nlinks: [{a: g0, b: s1, rate: 100Mbps}, {a: g1, b: s1, rate: 100Mbps}]\n")
	at := freePort(t)
	c := newCollector(t, file, "--reports", at)
	sw, _ := runConfig(t, fmt.Sprintf(`version: 1
export: {to: %[2]q}
switches:
  - name: s1
    qos: {metered: {lossradar: {queues: [0, 1, 2, 3, 4, 5, 6, 7], batch: 50ms}}}
    ports:
      - {name: g0, interface: d0, netns: %[1]s, qos: metered}
      - {name: g1, interface: d1, netns: %[1]s, qos: metered, faults: {loss: 3%%, seed: 5}}
`, l.sw, at))
	text := fmt.Sprintf("version: 1\nexport: {to: %q}\nhosts:\n", at)
	for i, h := range l.hosts {
		text += fmt.Sprintf("- {name: g%d, netns: %s, interface: eth0, address: 10.0.0.%d/24, rate: 40Mbps, congestion: none, telemetry: {format: none}, base_rtt: 20ms, lossradar: {batch: 50ms}, serve: true}\n", i, h.ns, i+1)
	}
	doc := filepath.Join(t.TempDir(), "hosts.yaml")
	write(t, doc, text)
	d := launchProgram(t, ghost, filepath.Join(t.TempDir(), "sock"), "-c", doc)
	d.await()
	if r := asked(d, &api.TransferReport{}, "--host", "g0", "send", "--to", "10.0.0.2", "--size", "500kB", "-n", "4").Result; r.VerifiedBytes != 2e6 || r.Corrupt != 0 {
		t.Errorf("g0 sends to g1: %v", r)
	}
	atSwitch := func(name, port string) (n int) {
		for _, c := range show(sw, &api.Counters{}, "losses").Counters {
			if c.Name == name && c.Port == port {
				n += int(c.Value)
			}
		}
		return n
	}
	atHost := func(name, host string) int {
		return int(d.metrics()["gswitch_host_"+name+"/"+host])
	}
	eventually(t, "all losses are named", func() error {
		named := map[string]int{}
		v, err := c.events("loss")
		if err != nil {
			return err
		}
		for _, e := range v {
			named[e.Where] += int(e.Packets)
		}
		for _, g := range []string{"g0", "g1"} {
			up := atHost("lossradar_sent_frames_total", g) - atSwitch("lossradar_arrived_frames_total", g)
			down := atSwitch("lossradar_sent_frames_total", g) - atHost("lossradar_arrived_frames_total", g)
			if named[g+">s1"] != up || named["s1>"+g] != down {
				return fmt.Errorf("%s: the link misses %d up and %d down, %v are named", g, up, down, named)
			}
		}
		if sent := atSwitch("lossradar_sent_frames_total", "g1"); sent < 2000 || named["s1>g1"] < sent/50 {
			return fmt.Errorf("of %d frames to g1 %d are named as lost", sent, named["s1>g1"])
		}
		return nil
	})
	d.stop(l.hosts[0].ns, l.hosts[1].ns)
	sw.stop(l.sw)
}

// A cable that loses frames is reported as lossy when a batch and 5 ms have passed, wherever
// the machine keeps its programs waiting no longer: for five batches it does not. What is
// lost is lost there, in that direction, alone.
func TestLossyWithinABatch(t *testing.T) {
	const batch, bound, enough = 50 * time.Millisecond, 5 * time.Millisecond, 5
	l := newLab(t, 2, labOptions{})
	l.wire(t, "x0", "x1")
	l.wire(t, "y0", "y1")
	file := filepath.Join(t.TempDir(), "fabric.yaml")
	write(t, file, "version: 1\nname: line\nmode: l2\nhosts: [h1, h2]\nswitches: [s1, s2, s3]\n"+
		"links: [{a: h1, b: s1}, {a: h2, b: s3}, {a: s1, b: s2, rate: 10Gbps}, {a: s2, b: s3, rate: 10Gbps}]\n")
	at := freePort(t)
	c := newCollector(t, file, "--reports", at)
	d, _ := runConfig(t, fmt.Sprintf(`version: 1
export: {to: %[2]q}
switches:
  - name: s1
    qos: {metered: {lossradar: {queues: [0], batch: 50ms, timeout: 1ms}}}
    ports:
      - {name: h1, interface: d0, netns: %[1]s}
      - {name: s2, interface: x0, netns: %[1]s, qos: metered, faults: {loss: 5%%, seed: 5}}
  - name: s2
    qos: {metered: {lossradar: {queues: [0], batch: 50ms, timeout: 1ms}}}
    ports:
      - {name: s1, interface: x1, netns: %[1]s, qos: metered}
      - {name: s3, interface: y0, netns: %[1]s, qos: metered}
  - name: s3
    qos: {metered: {lossradar: {queues: [0], batch: 50ms, timeout: 1ms}}}
    ports:
      - {name: h2, interface: d1, netns: %[1]s}
      - {name: s2, interface: y1, netns: %[1]s, qos: metered}
`, l.sw, at))
	a, b := l.hosts[0], l.hosts[1]
	from, to := a.raw(t, wire.EtherTypeIPv4), b.raw(t, wire.EtherTypeIPv4)
	f := flow{dst: b.mac, src: a.mac, srcIP: [4]byte{10, 0, 0, 1}, dstIP: [4]byte{10, 0, 0, 2}, dstPort: 7777, srcPort: 1, size: 100}
	back := flow{dst: a.mac, src: b.mac, srcIP: f.dstIP, dstIP: f.srcIP, dstPort: 7778, srcPort: 1, size: 100}
	sent := 0
	send := func(r *raw, f *flow) {
		x := f.frame(uint64(sent))
		binary.BigEndian.PutUint16(x[18:], uint16(sent)) // identification
		binary.BigEndian.PutUint16(x[24:], 0)
		binary.BigEndian.PutUint16(x[24:], wire.Checksum(x[14:34]))
		if err := r.send(x); err != nil {
			t.Fatal(err)
		}
	}
	var after []time.Duration // by which a batch that lost frames was over before that was known
	eventually(t, "batches are reported in time", func() error {
		for range 1500 {
			sent++
			send(from, &f)
			send(to, &back)
			time.Sleep(time.Millisecond)
		}
		v, err := c.events("lossy")
		if err != nil {
			return err
		}
		after = after[:0]
		for _, e := range v {
			if e.Where == "s1>s2" {
				after = append(after, e.Known.Sub(e.Until))
			}
			if e.Until.Sub(e.At) != batch {
				t.Errorf("a batch that lost frames has %v: %v", e.Until.Sub(e.At), e)
			}
		}
		if slices.Sort(after); len(after) < enough || after[enough-1] > bound {
			return fmt.Errorf("batches are known to be lossy %v after they are over", after)
		}
		return nil
	})
	t.Logf("of %d batches that lost frames half were reported within %v and nine in ten within %v after they were over", len(after), after[len(after)/2], after[len(after)*9/10])
	v, err := c.events("loss")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range v {
		if e.Where != "s1>s2" || e.DstPort != 7777 {
			t.Errorf("a loss elsewhere: %v", e)
		}
	}
	d.stop(l.sw)
}
