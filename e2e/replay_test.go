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
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gswitch/wire"
	"gswitch/wire/wiretest"
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

// Two switches on real frames, which between them have every feature, are recorded while
// routes, ports, rates, tables and configurations change, with so little memory that
// frames find none: each replay is the same run to the bit, whatever else the machine does. So
// is that of a recording that begins in the middle of it, from an image of the switch,
// and of which the last is kept.
func TestRecordReplays(t *testing.T) {
	l := newLab(t, 6, labOptions{})
	dir := t.TempDir()
	rng := rand.New(rand.NewPCG(1, 0))
	file := filepath.Join(dir, "s.yaml")
	write(t, file, withEverything(l, dir, rng))
	d := run(t, "-c", file, "--record", dir)
	l.hosts[3].address(t, []string{"10.3.0.2/24"}, "10.3.0.1")
	l.hosts[4].address(t, []string{"10.4.0.2/24", "10.4.0.3/24"}, "10.4.0.1")
	l.hosts[5].address(t, []string{"10.20.0.2/16"}, "10.20.0.1")
	router := wire.MAC{2, 0xaa, 0, 0, 0, 1}
	for i, way := range []struct {
		from, to  int
		src, dst  [4]byte
		via       wire.MAC
		dscp      uint8
		size, pps int
	}{
		{0, 1, [4]byte{10, 0, 0, 1}, [4]byte{10, 0, 0, 2}, wire.MAC{}, 0, 200, 3000},
		{1, 2, [4]byte{10, 0, 0, 2}, [4]byte{10, 0, 0, 3}, wire.MAC{}, 13, 700, 3000},
		{2, 0, [4]byte{10, 0, 0, 3}, [4]byte{10, 0, 0, 1}, wire.MAC{}, 26, 1200, 3000},
		{2, 0, [4]byte{10, 0, 0, 3}, [4]byte{10, 0, 0, 1}, wire.MAC{}, 40, 400, 1000},
		{3, 5, [4]byte{10, 3, 0, 2}, [4]byte{10, 20, 0, 2}, router, 26, 900, 2000},
		{3, 4, [4]byte{10, 3, 0, 2}, [4]byte{10, 4, 0, 2}, router, 8, 600, 2000},
		{0, 3, [4]byte{10, 10, 0, 9}, [4]byte{10, 3, 0, 2}, router, 32, 500, 2000},
		{0, 5, [4]byte{10, 10, 0, 9}, [4]byte{10, 20, 0, 2}, router, 0, 500, 1000},
		// More than d4 can send: some are pushed out.
		{3, 4, [4]byte{10, 3, 0, 2}, [4]byte{10, 4, 0, 2}, router, 8, 64, 20_000},
		// Small frames that take all memory when d0 is slow, before the buffer's limit.
		{2, 0, [4]byte{10, 0, 0, 3}, [4]byte{10, 0, 0, 1}, wire.MAC{}, 56, 64, 2000},
	} {
		startStream(t, l.hosts[way.from], l.hosts[way.to], flow{srcIP: way.src, dstIP: way.dst, dst: way.via, dstPort: uint16(9100 + i), dscp: way.dscp, size: way.size}, way.pps)
	}
	startStream(t, l.hosts[0], l.hosts[1], flow{dst: broadcast, dstPort: 9120, size: 100}, 20_000)
	pause := l.hosts[2].raw(t, etherTest)
	other := filepath.Join(dir, "other.yaml")
	routes := []string{"blackhole", "unreachable", "prohibit", "via 10.9.0.1", "via 10.9.0.1 via 10.9.0.3 choose flowlet"}
	churn := []func(port string){
		func(string) { write(t, other, withEverything(l, dir, rng)); d.do("apply", "-f", other) },
		func(port string) {
			d.do("-S", "s1", "set", "port", port, "--disable")
			d.do("-S", "s1", "set", "port", port, "--enable")
		},
		func(port string) {
			d.do("-S", "s1", "set", "port", port, "--rate", []string{"10Mbps", "400Mbps", "1Gbps"}[rng.IntN(3)])
		},
		func(string) { d.do("-S", "s1", "clear", "fdb") },
		func(port string) {
			d.do("-S", "s1", "add", "fdb", "02:00:00:00:07:07", port, "vlan", "10")
			d.do("-S", "s1", "del", "fdb", "02:00:00:00:07:07/10")
		},
		func(string) { d.do("show", "queues"); d.metrics() },
		func(string) {
			d.do(append([]string{"-S", "s1", "add", "route", "10.61.0.0/16"}, strings.Fields(routes[rng.IntN(len(routes))])...)...)
			d.do("-S", "s1", "del", "route", "10.61.0.0/16")
		},
		func(string) {
			d.do("-S", "s1", "add", "neighbor", "10.3.0.77", "02:00:00:00:07:08")
			d.do("-S", "s1", "del", "neighbor", "10.3.0.77")
		},
		func(port string) {
			d.do("-S", "s1", "set", "port", port, "jitter", "100us")
			d.do("-S", "s1", "set", "port", port, "none")
		},
		func(string) {
			for range 50 {
				if err := pause.send(wiretest.PFC(l.hosts[2].mac, 1<<3, 60_000)); err != nil {
					t.Error(err)
				}
			}
		},
	}
	done, round := make([]int, len(churn)), rng.Perm(len(churn))
	churn = append(churn, func(string) {
		d.do("-S", "s1", "set", "port", l.hosts[0].port(), "--rate", "100kbps")
		before := d.drops()["arena-exhausted"]
		eventually(t, "a frame that finds no memory", func() error {
			if d.drops()["arena-exhausted"] == before {
				return fmt.Errorf("dropped: %v", d.drops())
			}
			return nil
		})
		d.do("-S", "s1", "set", "port", l.hosts[0].port(), "--rate", "1Gbps")
	})
	// A half goes on until each change was made in it.
	for half := range 2 {
		clear(done)
		for began, k := time.Now(), 0; time.Since(began) < *record/2 || slices.Min(done) == 0; k++ {
			what := round[k%len(round)]
			churn[what](l.hosts[rng.IntN(3)].port())
			done[what]++
		}
		if half == 0 {
			d.do("record", "stop")
			d.do("record", "start", "--last", "4MiB", "--on", "drop:queue-tail")
		}
	}
	d.do("record", "save")
	t.Logf("dropped:\n%s", d.reasons(d.metrics()))
	d.stop()
	files, err := filepath.Glob(filepath.Join(dir, "s*.grec"))
	if err != nil || len(files) < 4 {
		t.Fatalf("records %v, %v", files, err)
	}
	failed, kept := 0, 0
	for i, file := range files {
		out, ok := replayOf(t, file)
		t.Log(filepath.Base(file), strings.TrimSpace(out))
		m := regexp.MustCompile(`(\d+) calls, (\d+) frames sent,(?: (\d+) allocations failed,)? (\d+) hashes compared: identical(.*)\n`).FindStringSubmatch(out)
		if !ok || m == nil || i == 0 && len(m[2]) < 4 || m[5] != "" && !strings.HasPrefix(m[5], "; saved here: ") {
			t.Fatalf("the replay says\n%s", out)
		}
		n, _ := strconv.Atoi(m[3])
		failed += n
		if strings.HasPrefix(m[5], "; saved here: ") {
			kept++
		}
	}
	t.Logf("%d allocations failed", failed)
	if kept < 2 {
		t.Errorf("%d files are of what was kept", kept)
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
