package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gswitch/control/api"
)

// reloadScale leaves the rings of an interface half a second of frames, so that
// what is lost is lost by a reload.
const reloadScale = ghostScale(5)

// document is the file of a host, with lines in place of or beside its own.
func (n *ghostNet) document(i int, more ...string) string {
	keys := [][2]string{
		{"version", "1"}, {"name", fmt.Sprintf("g%d", i)}, {"netns", n.hosts[i].ns}, {"interface", "eth0"}, {"address", fmt.Sprintf("10.0.0.%d/24", i+1)},
		{"rate", reloadScale.rate(400)}, {"burst", reloadScale.time(ghostT / 4)}, {"base_rtt", reloadScale.time(ghostT)},
		{"telemetry", "{links: [" + reloadScale.rate(200) + "]}"}, {"serve", "true"}, {"region", "64KiB"},
	}
	var b strings.Builder
	for _, k := range keys {
		said := false
		for _, m := range more {
			said = said || strings.HasPrefix(m, k[0]+":")
		}
		if !said {
			fmt.Fprintf(&b, "%s: %s\n", k[0], k[1])
		}
	}
	return b.String() + strings.Join(more, "\n") + "\n"
}

// ghostGeneration is that of the configuration of a ghost.
func ghostGeneration(d *daemon) uint64 {
	d.t.Helper()
	return asked(d, &api.HostStatus{}, "show", "host").Generation
}

// flowOf returns the only flow that a ghost shows.
func flowOf(d *daemon) (*api.Flow, error) {
	d.t.Helper()
	f := asked(d, &api.Flows{}, "show", "flows").Flows
	if len(f) != 1 {
		return nil, fmt.Errorf("%d flows: %v", len(f), f)
	}
	return f[0], nil
}

// While a message is under way the configuration changes again and again. What
// can change does, at once or for what comes; the message loses no frame and
// waits for nothing. What cannot is refused, and changes nothing.
func TestGhostReload(t *testing.T) {
	n := newGhostNet(t, 2, reloadScale)
	b := n.ghosts[1]
	n.ghosts[0].stop(n.hosts[0].ns)
	dir := t.TempDir()
	file := filepath.Join(dir, "host.yaml")
	write(t, file, n.document(0))
	a := launchProgram(t, ghost, filepath.Join(dir, "sock"), "-c", file)
	a.await()

	send := exec.Command(ghost, "--socket", a.socket, "send", "--to", "10.0.0.2", "--size", "500MB")
	var said syncBuffer
	send.Stderr = &said
	if err := send.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { send.Process.Kill(); send.Wait() }()
	moved := func(more uint64) *api.Flow {
		t.Helper()
		from := uint64(0)
		var f *api.Flow
		eventually(t, "the message moves", func() (err error) {
			if f, err = flowOf(a); err != nil {
				return err
			}
			if from == 0 {
				from = f.Bytes + 1
			}
			if f.Bytes < from+more {
				return fmt.Errorf("%d bytes of %d", f.Bytes, from+more)
			}
			return nil
		})
		return f
	}
	f := moved(100e3)
	if f.Direction != "tx" || f.Source != "10.0.0.1" || f.Destination != "10.0.0.2" || f.SourcePort < 0xc000 || f.DestinationPort != 4793 || f.Total != 500e6 ||
		f.Congestion != "hpcc" || f.Rate <= 0 || f.Window <= 0 || f.RttP50 < uint64(ghostT*time.Duration(reloadScale))*8/10 || f.BottleneckHop != 1 || f.Bottleneck.Rate != 40e6 {
		t.Errorf("the flow is %v", f)
	}
	if r, err := flowOf(b); err != nil || r.Direction != "rx" || r.Source != "10.0.0.1" || r.Destination != "10.0.0.2" || r.Bytes == 0 {
		t.Errorf("%v: the receiver shows %v", err, r)
	}

	// Keys that the message has nothing to do with, by both ways.
	other := filepath.Join(dir, "other.yaml")
	generation := ghostGeneration(a)
	variants := []string{
		n.document(0, "congestion: dctcp", "region: 256KiB", "class: 3", "pfc: {classes: [5]}"),
		n.document(0, "congestion: timely", "congestion_options: {tlow: 5ms, thigh: 50ms}", "serve: false", "gateway: 10.0.0.254", "cnp: true"),
	}
	for i := range 20 {
		text := variants[i%2]
		if i%4 < 2 {
			write(t, other, text)
			if out := a.do("apply", "-f", other, "--dry-run"); !strings.Contains(out, "nothing was changed (dry run)") || !strings.Contains(out, "~ hosts[g0].congestion: ") {
				t.Fatalf("a dry run printed:\n%s", out)
			}
			if out := a.do("apply", "-f", other); !strings.Contains(out, "applied (generation ") {
				t.Fatalf("apply printed:\n%s", out)
			}
		} else {
			write(t, file, text)
			if err := a.Process.Signal(unix.SIGHUP); err != nil {
				t.Fatal(err)
			}
		}
		generation++
		eventually(t, "it is applied", func() error {
			if g := ghostGeneration(a); g != generation {
				return fmt.Errorf("generation %d, want %d", g, generation)
			}
			return nil
		})
		moved(20e3)
	}
	if f := moved(20e3); f.Retransmitted != 0 || f.Congestion != "hpcc" {
		t.Errorf("the message was disturbed: %v", f)
	}
	for i, d := range []*daemon{a, b} {
		if h := asked(d, &api.HostStatus{}, "show", "host"); len(h.Drops) != 0 || h.Timeouts != 0 {
			t.Errorf("host %d drops %v, %d timeouts", i, h.Drops, h.Timeouts)
		}
	}
	if drops := n.sw.losses(); len(drops) != 0 {
		t.Errorf("the switch drops %v", drops)
	}
	if r := asked(a, &api.TransferReport{}, "send", "--to", "10.0.0.2", "--size", "2kB").Result; r.Congestion != "timely" || r.VerifiedBytes != 2000 {
		t.Errorf("a new message uses %v", r)
	}

	// The link's rate is one that the open message has to do with: within a
	// second it sends no more than that, and what a late worker may catch up.
	write(t, other, n.document(0, "rate: 10Mbps"))
	a.do("apply", "-f", other)
	p := asked(a, &api.Ports{}, "watch", "-n", "1", "-i", "1s").Ports[0]
	if most := 10e6 * (1 + (ghostT / 4 * time.Duration(reloadScale)).Seconds()); p.TxBitsPerSecond > most || p.TxBitsPerSecond == 0 {
		t.Errorf("%.0f bit/s on a link of 10 Mb/s, more than %.0f", p.TxBitsPerSecond, most)
	}

	// A larger region is served to those that come then.
	region := filepath.Join(dir, "region.yaml")
	write(t, region, n.document(1))
	b.do("apply", "-f", region)
	if out, code := a.try("perf", "write", "--to", "10.0.0.2", "-n", "1", "-s", "100kB"); code != 1 || !strings.Contains(out, "smaller than the message") {
		t.Errorf("writing beyond a region: exit code %d, %s", code, out)
	}
	write(t, region, n.document(1, "region: 128KiB"))
	if out := b.do("apply", "-f", region); !strings.Contains(out, "~ hosts[g1].region: 64KiB -> 128KiB") {
		t.Errorf("apply printed:\n%s", out)
	}
	a.do("perf", "write", "--to", "10.0.0.2", "-n", "1", "-s", "100kB")

	// What is wrong changes nothing.
	generation = ghostGeneration(a)
	before := a.do("show", "config")
	for _, tc := range []struct {
		text, want string
		code       int
	}{
		{n.document(0, "rat: 1Gbps"), `bad.yaml:12:1: rat: unknown key; did you mean "rate"?`, 2},
		{n.document(0, "congestion: hppc"), `congestion control "hppc" is not known`, 2},
		{n.document(0, "worker: {poll: spin}"), "workers, memory and control cannot change while the daemon runs; restart it", 1},
		{n.document(0, "interface: eth9"), "there is no interface eth9", 1},
		{n.document(0, "payload: 1400"), "lower payload to 1396, or raise the MTU to 1502", 2},
		{n.document(0, "payload: 3000"), "restart", 1},
	} {
		bad := filepath.Join(dir, "bad.yaml")
		write(t, bad, tc.text)
		if out, code := a.try("apply", "-f", bad); code != tc.code || !strings.Contains(out, tc.want) {
			t.Errorf("exit code %d, want %d and %q:\n%s", code, tc.code, tc.want, out)
		}
	}
	if g, after := ghostGeneration(a), a.do("show", "config"); g != generation || after != before {
		t.Errorf("generation %d, was %d; the configuration was\n%s\nand is\n%s", g, generation, before, after)
	}
	moved(10e3)

	// Another address builds the host anew, which is said; the message ends.
	write(t, other, n.document(0, "address: 10.0.0.7/24"))
	if out := a.do("apply", "-f", other); !strings.Contains(out, "! host g0: is built anew, since address changes; its queue pair ends") {
		t.Errorf("apply printed:\n%s", out)
	}
	if err := send.Wait(); err == nil || send.ProcessState.ExitCode() != 1 || !strings.Contains(said.String(), "this host is being taken down") {
		t.Errorf("the message ended with %v: %s", err, said.String())
	}
	if p := asked(b, &api.TransferReport{}, "ping", "10.0.0.7", "-n", "1"); len(p.Samples) != 1 {
		t.Errorf("the new address does not answer: %v", p)
	}
	a.stop(n.hosts[0].ns)
	b.stop(n.hosts[1].ns)
}
