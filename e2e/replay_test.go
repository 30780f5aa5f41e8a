package e2e

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

var record = flag.Duration("record", 4*time.Second, "how long TestRecordReplays runs")

// replayOf runs gfabric replay and returns what it said, and whether it ended well.
func replayOf(t *testing.T, args ...string) (string, bool) {
	t.Helper()
	var out bytes.Buffer
	c := exec.Command(gfabric, append([]string{"replay"}, args...)...)
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	return out.String(), err == nil
}

// A switch on real frames is recorded while routes, ports, rates, tables and
// configurations change, with little memory: the replay is the same run to the
// bit, whatever else the machine does. So is that of a recording that begins in
// the middle of it, from an image of the switch, and of which the last is kept.
func TestRecordReplays(t *testing.T) {
	l := newLab(t, 3, labOptions{})
	dir := t.TempDir()
	rng := rand.New(rand.NewPCG(1, 0))
	doc := func() string {
		var b strings.Builder
		fmt.Fprintf(&b, "version: 1\nmemory: {frames: 3000}\nswitches:\n  - name: s1\n    ports:\n")
		for i, h := range l.hosts {
			fmt.Fprintf(&b, "      - {interface: %s, netns: %s, rate: %s, qos: q, trust: dscp, acl: edge, storm_control: {broadcast: 20Mbps}}\n", h.port(), l.sw, []string{"20Mbps", "5Mbps", "100Mbps"}[(i+rng.IntN(2))%3])
		}
		b.WriteString("    loopback: [10.255.0.1]\n    telemetry: {int: true}\n    qos:\n      q:\n        queues: [{queue: 0, weight: 1}, {queue: 3, weight: 3, ecn: {kmin: 20KB, kmax: 60KB, pmax: 0.2}}, " +
			"{queue: 5, weight: 1, pi: {ref: 15KB, a: 4e-6, b: 3.9e-6, max: 0.1, period: 40us}}, {queue: 6, strict: true, max_rate: 10Mbps}]\n" +
			"        rocc: {queues: [3], qref: 15KB, qmid: 30KB, qmax: 36KB}\n        qcn: {queues: [1], set_point: 6KB, sample: 15KB}\n")
		fmt.Fprintf(&b, "    buffer: {size: 2MB, limit: %dKB}\n", 100+rng.IntN(100))
		fmt.Fprintf(&b, "    pfc: {classes: [3], watchdog: {detect: 20ms, restore: 10ms, action: drop}}\n    routes: [{prefix: 10.60.%d.0/24, blackhole: true}]\n    acls: {edge: [{seq: 10, match: {dst: 10.%d.0.0/16}, action: drop}]}\n", rng.IntN(100), 100+rng.IntN(100))
		return b.String()
	}
	file := filepath.Join(dir, "s.yaml")
	write(t, file, doc())
	d := run(t, "-c", file, "--record", dir)
	for i, pair := range [][2]int{{0, 1}, {1, 2}, {2, 0}} {
		startStream(t, l.hosts[pair[0]], l.hosts[pair[1]], flow{srcIP: [4]byte{10, 0, 0, byte(pair[0] + 1)}, dstIP: [4]byte{10, 0, 0, byte(pair[1] + 1)},
			dstPort: uint16(9100 + i), dscp: uint8(13 * i), size: 200 + 500*i}, 3000)
	}
	startStream(t, l.hosts[0], l.hosts[1], flow{dst: broadcast, dstPort: 9110, size: 100}, 20_000)
	other := filepath.Join(dir, "other.yaml")
	for began, half := time.Now(), 0; half < 2; {
		port := l.hosts[rng.IntN(3)].port()
		switch rng.IntN(7) {
		case 6:
			d.do("add", "route", "10.61.0.0/16", []string{"blackhole", "unreachable", "prohibit"}[rng.IntN(3)])
			d.do("del", "route", "10.61.0.0/16")
		case 0:
			write(t, other, doc())
			d.do("apply", "-f", other)
		case 1:
			d.do("set", "port", port, "--disable")
			d.do("set", "port", port, "--enable")
		case 2:
			d.do("set", "port", port, "--rate", []string{"10Mbps", "400Mbps", "1Gbps"}[rng.IntN(3)])
		case 3:
			d.do("clear", "fdb")
		case 4:
			d.do("add", "fdb", "02:00:00:00:07:07", port)
			d.do("del", "fdb", "02:00:00:00:07:07")
		case 5:
			d.do("show", "queues")
			d.metrics()
		}
		if time.Since(began) > *record/2 {
			if began, half = time.Now(), half+1; half == 1 {
				d.do("record", "stop")
				d.do("record", "start", "--last", "4MiB", "--on", "drop:queue-tail")
			}
		}
	}
	d.do("record", "save")
	d.stop()
	files, err := filepath.Glob(filepath.Join(dir, "*.grec"))
	if err != nil || len(files) < 2 {
		t.Fatalf("records %v, %v", files, err)
	}
	for i, file := range files {
		out, ok := replayOf(t, file)
		t.Log(strings.TrimSpace(out))
		m := regexp.MustCompile(`(\d+) calls, (\d+) frames sent,.* (\d+) hashes compared: identical(.*)\n$`).FindStringSubmatch(out)
		if !ok || m == nil || i == 0 && len(m[2]) < 4 || (m[4] != "") != (i > 0) || i > 0 && !strings.HasPrefix(m[4], "; saved here: ") {
			t.Fatalf("the replay says\n%s", out)
		}
	}

	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	bad, cut := filepath.Join(dir, "bad"), filepath.Join(dir, "cut")
	write(t, cut, string(b[:len(b)-50]))
	b[len(b)/2] ^= 1
	write(t, bad, string(b))
	if out, ok := replayOf(t, bad); ok || !strings.Contains(out, "damaged behind step") {
		t.Errorf("a wrong byte: %s", out)
	}
	if out, ok := replayOf(t, cut); !ok || !strings.Contains(out, "identical; the record is cut off here") {
		t.Errorf("cut off: %s", out)
	}
	if out, ok := replayOf(t, files[0], "--at", "1s", "--", "gswitch", "show", "ports"); !ok || !strings.Contains(out, l.hosts[0].port()) || !strings.Contains(out, "replayed ") {
		t.Errorf("show ports at 1 s: %s", out)
	}
	if out, ok := replayOf(t, files[0], "--until", "drop:nonsense"); ok || !strings.Contains(out, "there is no reason") {
		t.Errorf("an unknown reason: %s", out)
	}
}
