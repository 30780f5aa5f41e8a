package e2e

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gswitch/control/api"
)

var recordedBytes = flag.String("recorded", "3MB", "how much hosts send each other in TestGhostsRecord")

// Two hosts exchange messages over a switch that loses, reorders and marks; all three are recorded.
// Each replay is the same run to the bit, whatever else the machine does, and shows of
// the host what the daemon showed in the end.
func TestGhostsRecord(t *testing.T) {
	l := newLab(t, 2, labOptions{})
	dir := t.TempDir()
	var ports strings.Builder
	for i := range l.hosts {
		fmt.Fprintf(&ports, "  - {interface: d%d, netns: %s, rate: 400Mbps, burst: 20ms, qos: q, faults: {loss: 0.1%%, reorder: 1%%, reorder_delay: 200us, corrupt: 0.05%%, flip: 0.05%%, seed: %d}}\n", i, l.sw, i+1)
	}
	file := filepath.Join(dir, "switch.yaml")
	write(t, file, "version: 1\nswitches:\n- name: s1\n  id: 7\n  qos: {q: {queues: [{queue: 0, ecn: {kmin: 20KB, kmax: 60KB, pmax: 0.5}}]}}\n  ports:\n"+ports.String())
	sw := run(t, "-c", file, "--record", dir)
	file = filepath.Join(dir, "hosts.yaml")
	text := "version: 1\nworkers: [{}, {}]\nhosts:\n"
	for i, h := range l.hosts {
		text += fmt.Sprintf("- {name: g%d, netns: %s, interface: eth0, address: 10.0.0.%d/24, rate: 800Mbps, burst: 5ms, base_rtt: 10ms, telemetry: {format: none}, congestion: dctcp, recovery: irn, serve: true}\n", i, h.ns, i+1)
	}
	write(t, file, text)
	socket := filepath.Join(t.TempDir(), "sock")
	d := launchProgram(t, ghost, socket, "-c", file, "--record", dir)
	d.await()
	sent := asked(d, &api.TransferReport{}, "--host", "g0", "send", "--to", "10.0.0.2", "--size", *recordedBytes).Result
	if sent.Corrupt != 0 || sent.VerifiedBytes == 0 {
		t.Errorf("sent %v", sent)
	}
	d.do("--host", "g1", "perf", "write", "--to", "10.0.0.1", "--size", "50kB", "--count", "5")
	asked(d, &api.TransferReport{}, "--host", "g1", "ping", "10.0.0.1", "-n", "3", "-i", "1ms")
	live := asked(d, &api.HostList{}, "show", "hosts").Hosts
	d.stop()
	sw.stop()
	files, err := filepath.Glob(filepath.Join(dir, "*.grec"))
	if err != nil || len(files) != 3 {
		t.Fatalf("records %v, %v", files, err)
	}
	for _, file := range files {
		out, ok := replayOf(t, file)
		t.Log(strings.TrimSpace(out))
		if m := regexp.MustCompile(`(\d+) calls, (\d+) frames sent,.* (\d+) hashes compared: identical\n$`).FindStringSubmatch(out); !ok || m == nil || len(m[2]) < 3 {
			t.Errorf("the replay says\n%s", out)
		}
		if s, err := os.Stat(file); err != nil || s.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", s, err)
		}
	}
	out, ok := replayOf(t, files[0], "--", "ghost", "--json", "show", "hosts")
	var shown struct{ Hosts []map[string]any }
	if err := json.Unmarshal([]byte(out[strings.Index(out, "{"):]), &shown); !ok || err != nil || len(shown.Hosts) != 1 {
		t.Fatalf("%v: %s", err, out)
	}
	h := shown.Hosts[0]
	if h["name"] != "g0" || fmt.Sprint(h["messages_sent"]) != fmt.Sprint(live[0].MessagesSent) || fmt.Sprint(h["retransmissions"]) != fmt.Sprint(live[0].Retransmissions) {
		t.Errorf("the replay shows %v, the daemon showed %v", h, live[0])
	}
	if out, ok := replayOf(t, files[0], "--until", "retransmissions > 0", "--trace", "10.0.0.2"); !ok || !strings.Contains(out, "eth0") {
		t.Errorf("until something is sent again: %s", out)
	}
	if out, ok := replayOf(t, files[0], "--what-if", file); !ok || !strings.Contains(out, "nothing would have been different") {
		t.Errorf("with its own configuration: %s", out)
	}
	other := filepath.Join(dir, "other.yaml")
	write(t, other, strings.ReplaceAll(text, "rate: 800Mbps", "rate: 50Mbps"))
	if out, ok := replayOf(t, files[0], "--what-if", other); !ok || !strings.Contains(out, "the first frame that would have left otherwise") {
		t.Errorf("at another rate: %s", out)
	}
	// The sender sent something again: an acknowledgement asked for it, or none came.
	out, ok = replayOf(t, files[0], "--until", "retransmissions > 0", "--minimise", "--json")
	var least struct {
		Least  bool
		Needed []struct{ Kind, What string }
	}
	if at := strings.Index(out, "{\n"); !ok || at < 0 || json.Unmarshal([]byte(out[at:]), &least) != nil || !least.Least || len(least.Needed) == 0 {
		t.Errorf("minimised: %s", out)
	}
	for _, wrong := range [][]string{{"--", "gswitch", "show", "ports"}, {"--until", "queue_bytes > 3"}} {
		if out, ok := replayOf(t, append([]string{files[0]}, wrong...)...); ok {
			t.Errorf("%v: %s", wrong, out)
		}
	}
}

// Of two hosts the last inputs are kept. Frames of a sender are lost, so that its timer runs
// out, and what led to that goes to a file; a signal asks for one of both. Each replay is
// the same run to the bit, from an image of a host at work on, and ends at the timeout when it is
// asked to.
func TestGhostsKeepTheLast(t *testing.T) {
	l := newLab(t, 2, labOptions{})
	dir := t.TempDir()
	file := filepath.Join(dir, "switch.yaml")
	write(t, file, fmt.Sprintf("version: 1\nswitches:\n- name: s1\n  ports:\n"+
		"  - {interface: %s, netns: %s, faults: {loss: 5%%, seed: 3}}\n  - {interface: %s, netns: %s}\n", l.hosts[0].port(), l.sw, l.hosts[1].port(), l.sw))
	sw := run(t, "-c", file)
	file = filepath.Join(dir, "hosts.yaml")
	text := "version: 1\nhosts:\n"
	for i, h := range l.hosts {
		text += fmt.Sprintf("- {name: g%d, netns: %s, interface: eth0, address: 10.0.0.%d/24, rate: 800Mbps, burst: 5ms, base_rtt: 10ms, telemetry: {format: none}, congestion: dctcp, recovery: irn, serve: true}\n", i, h.ns, i+1)
	}
	write(t, file, text)
	d := launchProgram(t, ghost, filepath.Join(t.TempDir(), "sock"), "-c", file, "--record", dir, "--record-last", "64MiB", "--record-on", "timeout")
	d.await()
	records := func(host string, n int) (files []string) {
		t.Helper()
		eventually(t, fmt.Sprintf("%d records of %s", n, host), func() (err error) {
			if files, err = filepath.Glob(filepath.Join(dir, host+"-*.grec")); err == nil && len(files) < n {
				err = fmt.Errorf("there are %v", files)
			}
			return err
		})
		return files
	}
	// Messages of one packet: only the timer finds that one is lost.
	d.do("--host", "g0", "perf", "write", "--to", "10.0.0.2", "--size", "1kB", "--count", "200")
	records("g0", 1)
	if files, _ := filepath.Glob(filepath.Join(dir, "g1-*.grec")); len(files) > 0 {
		t.Errorf("nothing ran out at the other host, and there is %v", files)
	}
	d.do("--host", "g0", "perf", "write", "--to", "10.0.0.2", "--size", "10kB", "--count", "20")
	if err := d.Process.Signal(unix.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	asked := records("g1", 1)[0]
	first := records("g0", 2)[0]
	d.stop()
	sw.stop()
	for file, why := range map[string]string{first: "timeout", asked: "SIGUSR1"} {
		out, ok := replayOf(t, file)
		t.Log(strings.TrimSpace(out))
		if m := regexp.MustCompile(`(\d+) frames sent,.* (\d+) hashes compared: identical; saved here: ` + why + `\n$`).FindStringSubmatch(out); !ok || m == nil || m[2] == "0" {
			t.Errorf("the replay says\n%s", out)
		}
		if s, err := os.Stat(file); err != nil || s.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", s, err)
		}
	}
	out, ok := replayOf(t, first, "--until", "timeouts > 0", "--", "ghost", "--json", "show", "hosts")
	if !ok || !regexp.MustCompile(`"timeouts": *"?1\b`).MatchString(out) {
		t.Errorf("at the first timeout: %s", out)
	}
}
