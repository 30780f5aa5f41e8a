package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// pair makes a veth pair in the namespace of this process and returns its ends.
func pair(t *testing.T, name string) (a, b string) {
	t.Helper()
	a, b = fmt.Sprintf("%sa%d", name, os.Getpid()), fmt.Sprintf("%sb%d", name, os.Getpid())
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: a}, PeerName: b}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if l, err := netlink.LinkByName(a); err == nil {
			netlink.LinkDel(l)
		}
	})
	return a, b
}

// status returns lines of /proc/PID/status of all threads of a process, each
// once.
func (d *daemon) status(key string) (values []string) {
	d.t.Helper()
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", d.Process.Pid))
	seen := map[string]bool{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			continue // a thread that has ended
		}
		for line := range strings.Lines(string(text)) {
			if v, ok := strings.CutPrefix(line, key+":"); ok && !seen[v] {
				seen[v] = true
				values = append(values, strings.TrimSpace(v))
			}
		}
	}
	return values
}

// Once it runs, a daemon that root started has the capabilities that its
// configuration needs; with these it does what it is asked to later, all but
// enter other namespaces.
func TestPrivilegesAreDropped(t *testing.T) {
	l := newLab(t, 1, labOptions{})
	a, b := pair(t, "pr")
	dir := t.TempDir()
	file, copies := filepath.Join(dir, "s.yaml"), filepath.Join(dir, "out.pcap")
	const head = "version: 1\nswitches:\n  - name: s1\n    ports:\n      - {name: a, interface: %s}\n"
	write(t, file, fmt.Sprintf(head, a))
	d := launch(t, filepath.Join(dir, "sock"), "-c", file)
	d.await()
	// NET_ADMIN 12, NET_RAW 13, IPC_LOCK 14, PERFMON 38, BPF 39.
	for key, want := range map[string]string{"CapPrm": "000000c000007000", "CapBnd": "000000c000007000", "NoNewPrivs": "1", "Seccomp": "2"} {
		if v := d.status(key); len(v) != 1 || v[0] != want {
			t.Errorf("%s of its threads: %v, not %s", key, v, want)
		}
	}
	// A port that is added, one that writes a file, and the file read again.
	write(t, file, fmt.Sprintf(head, a)+fmt.Sprintf("      - {name: b, interface: %s, rate: 1Gbps}\n      - {name: f, pcap: {write: %s}}\n", b, copies))
	d.Process.Signal(unix.SIGHUP)
	eventually(t, "the file is read again", func() error {
		if log := d.log.String(); !strings.Contains(log, "msg=reloaded") {
			return errors.New(log)
		}
		return nil
	})
	d.do("set", "port", "b", "--rate", "2Gbps")
	d.awaitState("b", "up")
	if _, err := os.Stat(copies); err != nil {
		t.Error(err)
	}
	// An interface of another namespace would take CAP_SYS_ADMIN.
	other := filepath.Join(dir, "other.yaml")
	write(t, other, fmt.Sprintf(head, a)+fmt.Sprintf("      - {name: n, interface: %s, netns: %s}\n", l.hosts[0].port(), l.sw))
	if out, code := d.try("apply", "-f", other); code == 0 || !strings.Contains(out, "dropped what its configuration did not need") || !strings.Contains(out, "--keep-privileges") {
		t.Errorf("exit code %d, %s", code, out)
	}
	d.stop("")

	k := launch(t, filepath.Join(dir, "kept"), "-c", file, "--keep-privileges")
	k.await()
	if v := k.status("Seccomp"); len(v) != 1 || v[0] != "0" {
		t.Errorf("Seccomp with --keep-privileges: %v", v)
	}
	k.do("apply", "-f", other)
	k.awaitState("n", "up")
	k.stop(l.sw)

	// With namespaces from the beginning it may enter more of them.
	n := launch(t, filepath.Join(dir, "more"), "-c", other)
	n.await()
	if v := n.status("CapPrm"); len(v) != 1 || v[0] != "000000c000207000" {
		t.Errorf("CapPrm with namespaces: %v", v)
	}
	n.stop(l.sw)
}
