package dataplane

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// In a namespace of the test: a default route, one with two next hops, the way
// to the other end of SSH, loopback, and an interface that carries nothing.
func TestCarries(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a network namespace needs root")
	}
	runtime.LockOSThread() // never unlocked: the thread keeps the namespace and ends with the test
	ns, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	for name, address := range map[string]string{"up0": "10.1.0.2/24", "up1": "10.2.0.2/24", "spare": "10.3.0.2/24"} {
		at := netlink.NewLinkAttrs()
		at.Name = name
		if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: at, PeerName: name + "p"}); err != nil {
			t.Fatal(err)
		}
		for _, end := range []string{name, name + "p"} {
			l, err := netlink.LinkByName(end)
			if err != nil {
				t.Fatal(err)
			}
			if err := netlink.LinkSetUp(l); err != nil {
				t.Fatal(err)
			}
		}
		l, _ := netlink.LinkByName(name)
		a, _ := netlink.ParseAddr(address)
		if err := netlink.AddrAdd(l, a); err != nil {
			t.Fatal(err)
		}
	}
	index := func(name string) int {
		l, err := netlink.LinkByName(name)
		if err != nil {
			t.Fatal(err)
		}
		return l.Attrs().Index
	}
	expect := func(when, name, want string) {
		t.Helper()
		if got, err := carries(name, net.ParseIP("10.3.0.9")); err != nil || got != want && (want == "" || !strings.Contains(got, want)) {
			t.Errorf("%s, %s %q, want %q (%v)", when, name, got, want, err)
		}
	}
	expect("without routes", "lo", "is the loopback")
	expect("without routes", "up0", "")
	expect("the way to the client", "spare", "SSH session from 10.3.0.9")
	if got, err := carries("spare", nil); err != nil || got != "" {
		t.Errorf("without a session, spare %q, %v", got, err)
	}

	_, all, _ := net.ParseCIDR("0.0.0.0/0")
	one := &netlink.Route{Dst: all, LinkIndex: index("up0"), Gw: net.ParseIP("10.1.0.1")}
	if err := netlink.RouteAdd(one); err != nil {
		t.Fatal(err)
	}
	expect("with a default route", "up0", "default route via 10.1.0.1")
	expect("with a default route", "up1", "")
	two := &netlink.Route{Dst: all, MultiPath: []*netlink.NexthopInfo{{LinkIndex: index("up0"), Gw: net.ParseIP("10.1.0.1")}, {LinkIndex: index("up1"), Gw: net.ParseIP("10.2.0.1")}}}
	if err := netlink.RouteReplace(two); err != nil {
		t.Fatal(err)
	}
	expect("with two next hops", "up0", "via 10.1.0.1")
	expect("with two next hops", "up1", "via 10.2.0.1")
	if _, err := carries("absent", nil); !errors.As(err, new(netlink.LinkNotFoundError)) {
		t.Errorf("an interface that is not there: %v", err)
	}
}

// The session is found where a parent has it, as sudo's children have none of their own.
func TestSessionOfSSH(t *testing.T) {
	proc := t.TempDir()
	process := func(pid, parent int, name, environ string) {
		dir := filepath.Join(proc, strconv.Itoa(pid))
		for file, text := range map[string]string{"stat": fmt.Sprintf("%d (%s) S %d 1 1 0 -1", pid, name, parent), "environ": environ} {
			if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
	}
	process(1, 0, "init", "")
	process(2, 1, "sshd", "")
	process(3, 2, "bash", "HOME=/home/a\x00SSH_CONNECTION=10.3.0.9 50000 10.3.0.2 22\x00TERM=vt100\x00")
	process(4, 3, "sudo) S 1", "SUDO=1\x00")
	process(5, 4, "gswitch", "SUDO_USER=a\x00XSSH_CONNECTION=10.9.9.9 1 2 3\x00")
	process(6, 1, "gswitch", "HOME=/\x00")
	process(7, 7, "own parent", "")
	process(8, 99, "orphan", "")
	for pid, want := range map[int]string{3: "10.3.0.9", 4: "10.3.0.9", 5: "10.3.0.9", 2: "", 6: "", 7: "", 8: "", 98: ""} {
		if got := sshClient(proc, pid); got != want {
			t.Errorf("process %d: %q, want %q", pid, got, want)
		}
	}
}
