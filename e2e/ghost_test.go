package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"gswitch/control/api"
)

// ghostNet is a switch that stamps telemetry, with ghosts on hosts 0 and 1.
type ghostNet struct {
	*lab
	sw     *daemon
	ghosts [2]*daemon
}

// ghostScale is a scenario in slow motion: rates divided, times multiplied.
type ghostScale int

func (s ghostScale) rate(mbps int) string        { return fmt.Sprintf("%dkbps", mbps*1000/int(s)) }
func (s ghostScale) time(d time.Duration) string { return (d * time.Duration(s)).String() }

// T of the networks here, at scale 1: it dwarfs the time that a worker needs
// to wake up.
const ghostT = 20 * time.Millisecond

// newGhostNet makes links of 200 Mb/s with a round trip of almost T. Hosts
// have twice the rate of the switch's ports: what they send too fast queues there.
func newGhostNet(t *testing.T, hosts int, s ghostScale) *ghostNet {
	n := &ghostNet{lab: newLab(t, hosts, labOptions{})}
	var ports strings.Builder
	for i := range hosts {
		fmt.Fprintf(&ports, "  - {interface: d%d, netns: %s, rate: %s, delay: %s, burst: %s}\n", i, n.lab.sw, s.rate(200), s.time(ghostT*9/20), s.time(ghostT))
	}
	n.sw, _ = runConfig(t, fmt.Sprintf("version: 1\nswitches:\n- name: s1\n  id: 7\n  telemetry: {int: true, links: [%s]}\n  ports:\n%s", s.rate(200), ports.String()))
	for i := range n.ghosts {
		n.ghosts[i] = n.start(t, i, s, filepath.Join(t.TempDir(), "sock"))
		n.ghosts[i].await()
	}
	return n
}

// start starts the ghost of a host.
func (n *ghostNet) start(t *testing.T, i int, s ghostScale, socket string) *daemon {
	file := filepath.Join(t.TempDir(), "host.yaml")
	write(t, file, fmt.Sprintf(`version: 1
name: g%d
netns: %s
interface: eth0
address: 10.0.0.%d/24
rate: %s
burst: %s
base_rtt: %s
telemetry: {links: [%s]}
serve: true
`, i, n.hosts[i].ns, i+1, s.rate(400), s.time(ghostT/4), s.time(ghostT), s.rate(200)))
	return launchProgram(t, ghost, socket, "-c", file)
}

// asked reads what a verb prints with --json.
func asked[M proto.Message](d *daemon, m M, args ...string) M {
	d.t.Helper()
	out := d.do(append(args, "--json")...)
	if err := protojson.Unmarshal([]byte(out), m); err != nil {
		d.t.Fatalf("%v: %v in\n%s", args, err, out)
	}
	return m
}

// Messages arrive as they were sent, pings show the switch on the way, reads
// and writes reach memory, and what is shown agrees; a kernel is answered.
func TestGhost(t *testing.T) {
	n := newGhostNet(t, 3, 1)
	a, b := n.ghosts[0], n.ghosts[1]

	p := asked(a, &api.TransferReport{}, "ping", "10.0.0.2", "-n", "9", "-i", "1ms")
	if len(p.Samples) != 9 {
		t.Fatalf("%d of 9 pings were answered", len(p.Samples))
	}
	for _, s := range p.Samples {
		if len(s.Hops) != 1 || s.Hops[0].Switch != 7 || s.Hops[0].Rate != 200e6 {
			t.Errorf("ping: %v", s)
		}
	}
	// The cables take nine tenths of T. A round trip by itself may look shorter
	// where a worker was kept from its processor after it had read the clock;
	// most are right.
	if rtt := p.Result.Rtt.P50; rtt < uint64(ghostT*17/20) {
		t.Errorf("the median round trip is %v: cables alone take %v", time.Duration(rtt), ghostT*9/10)
	}

	m := asked(a, &api.TransferReport{}, "send", "--to", "10.0.0.2", "--size", "200kB", "--count", "4", "--depth", "2")
	if r := m.Result; len(m.Samples) != 4 || r.Bytes != 800e3 || r.VerifiedBytes != 800e3 || r.ReceivedMessages != 4 || r.Corrupt != 0 || len(r.Path) != 1 || r.Bdp != 500e3 {
		t.Errorf("send: %v", m)
	}
	if got := asked(b, &api.HostStatus{}, "show", "host"); got.MessagesReceived < 4 || !got.Serving || got.Address != "10.0.0.2/24" {
		t.Errorf("the receiver: %v", got)
	}
	for _, cc := range []string{"dcqcn", "timely", "dctcp", "none"} {
		r := asked(a, &api.TransferReport{}, "send", "--to", "10.0.0.2", "--size", "20kB", "--cc", cc, "--recovery", "irn").Result
		if r.VerifiedBytes != 20e3 || r.Corrupt != 0 || r.Congestion != cc || r.Recovery != "irn" {
			t.Errorf("%s: %v", cc, r)
		}
	}
	for _, op := range []string{"write", "read", "send"} {
		var rows []struct {
			Bytes, Iterations, Corrupt uint64
			Bits                       float64 `json:"bits_per_second"`
			Median                     uint64  `json:"latency_p50"`
		}
		if err := json.Unmarshal([]byte(a.do("perf", op, "--to", "10.0.0.2", "-n", "4", "-s", "4kB", "-s", "16kB", "--json")), &rows); err != nil {
			t.Fatal(err)
		}
		if len(rows) != 2 || rows[1].Bytes != 16e3 || rows[1].Iterations != 4 || rows[1].Corrupt != 0 || rows[1].Bits <= 0 || rows[1].Median < uint64(ghostT*17/20) {
			t.Errorf("perf %s: %+v", op, rows)
		}
	}
	for _, verb := range []string{"qps", "cc", "pfc", "drops"} {
		if out := a.do("show", verb, "--json"); !json.Valid([]byte(out)) {
			t.Errorf("show %s: %s", verb, out)
		}
		a.do("show", verb)
	}

	// Host 2 is a kernel.
	n.hosts[2].address(t, []string{"10.0.0.3/24"})
	n.hosts[2].pings(t, "10.0.0.1", 56)
	out, code := a.try("send", "--to", "10.0.0.3")
	if code != 1 || !strings.Contains(out, "10.0.0.3 does not answer on UDP port 18515") {
		t.Errorf("sending to a kernel: exit code %d, %s", code, out)
	}
	out, code = a.try("send", "--to", "10.0.0.99")
	if code != 1 || !strings.Contains(out, "10.0.0.99 does not answer ARP") {
		t.Errorf("sending to nobody: exit code %d, %s", code, out)
	}
	a.stop(n.hosts[0].ns)
	b.stop(n.hosts[1].ns)
}

// While a message is under way its queue pair and congestion control show, and
// /metrics count. A sender that is killed leaves nothing, and the next one
// starts at once and sends to the same receiver.
func TestGhostKill(t *testing.T) {
	n := newGhostNet(t, 2, 1)
	a, b := n.ghosts[0], n.ghosts[1]
	c := exec.Command(ghost, "--socket", a.socket, "send", "--to", "10.0.0.2", "--size", "500MB")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Wait()
	eventually(t, "queue pairs at both ends", func() error {
		for i, d := range n.ghosts {
			q := asked(d, &api.QueuePairs{}, "show", "qps").QueuePairs
			if len(q) != 1 || q[0].Congestion != "hpcc" || q[0].Role != []string{"active", "passive"}[i] || q[0].TxFrames+q[0].RxFrames < 100 {
				return fmt.Errorf("host %d has %v", i, q)
			}
			if i == 0 && len(q[0].Internals) == 0 {
				return errors.New("HPCC shows nothing")
			}
		}
		return nil
	})
	text := scrape(t, a)
	for _, want := range []string{`gswitch_host_queue_pairs{host="g0"} 1`, `gswitch_host_up{host="g0"} 1`, `gswitch_host_frame_lateness_seconds_count{host="g0"}`,
		`gswitch_worker_lateness_seconds_count{worker="0"}`, `gswitch_xsk_kicks_total{port="eth0",switch="g0",worker="0"}`} {
		if !strings.Contains(text, want) {
			t.Errorf("/metrics has no %s", want)
		}
	}
	a.Process.Kill()
	<-a.done
	if left := xdpPrograms(t, n.hosts[0].ns); left != nil {
		t.Errorf("programs are left on %v", left)
	}
	a = n.start(t, 0, 1, a.socket)
	a.await()
	if r := asked(a, &api.TransferReport{}, "send", "--to", "10.0.0.2", "--size", "50kB").Result; r.VerifiedBytes != 50e3 || r.Corrupt != 0 {
		t.Errorf("after it was killed: %v", r)
	}
	a.stop(n.hosts[0].ns)
	b.stop(n.hosts[1].ns)
}

// scrape reads the metrics of a ghost.
func scrape(t *testing.T, d *daemon) string {
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", d.socket)
	}}}
	r, err := client.Get("http://ghost/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(r.Body); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// With HPCC the switch's queue stays below a fifth of the bandwidth-delay
// product, where a sender that only keeps a rate fills it. On a machine that
// cannot keep real time the same runs in slow motion, by the scaling law:
// rates divided, times multiplied, bytes as they are.
func TestGhostQueues(t *testing.T) {
	for _, s := range []ghostScale{1, 5, 20, 50} {
		n := newGhostNet(t, 2, s)
		a := n.ghosts[0]
		controlled := asked(a, &api.TransferReport{}, "send", "--to", "10.0.0.2", "--size", "6MB", "--cc", "hpcc").Result
		rated := asked(a, &api.TransferReport{}, "send", "--to", "10.0.0.2", "--size", "6MB", "--cc", "none", "--int", "hpcc", "--rate", s.rate(300)).Result
		// Lateness of both runs counts: a fiftieth of T is a fiftieth of the
		// product in the queue, a tenth of what the bound allows. Without control 6 MB take the link's 200
		// Mb/s to 167 of payload; one that gets less was kept from its processor.
		late := time.Duration(asked(a, &api.HostStatus{}, "show", "host").Timing.FrameLateP99)
		switchLate := time.Duration(show(n.sw, &api.Workers{}, "workers").Workers[0].LatenessP99)
		T := ghostT * time.Duration(s)
		if filled := rated.Goodput * float64(s) / 1e6; late > T/50 || switchLate > T/50 || filled < 160 {
			t.Logf("scale %d is too fast for this machine: frames are %v late, the switch %v, T is %v; without control %.1f Mb/s", s, late, switchLate, T, filled)
			a.stop(n.hosts[0].ns)
			n.ghosts[1].stop(n.hosts[1].ns)
			n.sw.stop(n.lab.sw)
			continue
		}
		q, r := controlled.Path[0], rated.Path[0]
		t.Logf("scale %d, BDP %d B: HPCC p50 %d B p95 %d B, goodput %.1f Mb/s; rate only p50 %d B p95 %d B; frames %v late, the switch %v",
			s, controlled.Bdp, q.QueueP50, q.QueueP95, controlled.Goodput*float64(s)/1e6, r.QueueP50, r.QueueP95, late, switchLate)
		// The first round trip, in which HPCC sends at its own link's rate, is
		// less than half of the transfer: the median is the steady state.
		if bound := controlled.Bdp / 5; q.QueueP50 >= bound {
			t.Errorf("HPCC keeps %d B in the queue, more than %d", q.QueueP50, bound)
		}
		if r.QueueP50 <= rated.Bdp/2 {
			t.Errorf("a sender that only keeps its rate has %d B in the queue, not more than half of %d", r.QueueP50, rated.Bdp)
		}
		for _, x := range []*api.TransferResult{controlled, rated} {
			if x.VerifiedBytes != 6e6 || x.Corrupt != 0 {
				t.Errorf("received: %v", x)
			}
		}
		return
	}
	t.Error("this machine cannot run even the slowest scale in time")
}

// What is wrong is said with its place and what to do, and touches nothing.
func TestGhostErrors(t *testing.T) {
	l := newLab(t, 1, labOptions{})
	dir, err := os.MkdirTemp("", "ghost-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for _, d := range []string{dir, filepath.Dir(ghost)} {
		if err := os.Chmod(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "host.yaml")
	write(t, file, "version: 1\ninterface: eth0\naddress: 10.0.0.1/24\ncongestion: hppc\nrat: 10Gbps\n")
	ns := l.hosts[0].ns
	flags := func(more ...string) []string {
		return append([]string{"--socket", filepath.Join(dir, "sock"), "run", "--netns", ns}, more...)
	}
	for _, c := range []struct {
		want string
		code int
		user uint32
		args []string
	}{
		{"host.yaml:5:1: rat: unknown key; did you mean \"rate\"?", 2, 0, []string{"run", "-c", file}},
		{"there is no interface eth9 in network namespace " + ns + "; there are eth0", 1, 0, flags("--port", "eth9", "--addr", "10.0.0.1/24")},
		{"a host needs an interface and an address", 2, 0, flags("--port", "eth0")},
		{`--addr: "10.0.0.1" is not an address with prefix length`, 2, 0, flags("--port", "eth0", "--addr", "10.0.0.1")},
		{"congestion control \"hppc\" is not known", 2, 0, flags("--port", "eth0", "--addr", "10.0.0.1/24", "--cc", "hppc")},
		{"the MTU of eth0 is 1500: lower payload", 2, 0, flags("--port", "eth0", "--addr", "10.0.0.1/24", "--payload", "1450")},
		{"hpcc needs telemetry", 2, 0, flags("--port", "eth0", "--addr", "10.0.0.1/24", "--int", "none")},
		{"missing privilege: ports over interfaces need CAP_NET_ADMIN", 1, 65534, flags("--port", "eth0", "--addr", "10.0.0.1/24")},
		{"no daemon listens at " + filepath.Join(dir, "none"), 1, 0, []string{"--socket", filepath.Join(dir, "none"), "show", "qps"}},
		{"--to is missing", 2, 0, []string{"send"}},
	} {
		cmd := exec.Command(ghost, c.args...)
		if c.user != 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: c.user, Gid: c.user}}
		}
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(string(out), c.want) || !strings.HasPrefix(string(out), "ghost: ") {
			t.Errorf("ghost %v: exit code %d, want %d and %q; it says\n%s", c.args, code, c.code, c.want, out)
		}
	}
	if left := xdpPrograms(t, ns); left != nil {
		t.Errorf("programs are left on %v", left)
	}
}
