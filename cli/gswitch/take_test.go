package gswitch

import (
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"gswitch/dataplane/xsk"
)

// An interface with the default route is taken over only where that is said,
// at the start and while the daemon runs.
func TestTakingOverIsMeant(t *testing.T) {
	l := newLab(t)
	err := xsk.InNetNS(l.ns[0], func() error {
		link, err := netlink.LinkByName("eth1")
		if err != nil {
			return err
		}
		a, err := netlink.ParseAddr("10.9.9.2/24")
		if err != nil {
			return err
		}
		if err := netlink.AddrAdd(link, a); err != nil {
			return err
		}
		if err := netlink.LinkSetUp(link); err != nil {
			return err
		}
		_, all, _ := net.ParseCIDR("0.0.0.0/0")
		return netlink.RouteAdd(&netlink.Route{Dst: all, LinkIndex: link.Attrs().Index, Gw: net.ParseIP("10.9.9.1")})
	})
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(t.TempDir(), "s1.sock")
	for port, want := range map[string]string{"eth1": "carries the default route via 10.9.9.1", "lo": "is the loopback"} {
		out, errs, code := invoke(t, "", "--socket", socket, "run", "--netns", l.ns[0], "--port", port)
		if code != 1 || !strings.Contains(errs, want) || !strings.Contains(errs, "--take") || strings.Contains(out, "ready") {
			t.Errorf("run --port %s: exit code %d, want the reason %q\n%s%s", port, code, want, out, errs)
		}
	}

	file := func(take string) string {
		return write(t, "s1.yaml", "version: 1\nswitches: [{name: s1, ports: [{interface: eth2, netns: "+l.ns[0]+"}, {interface: eth1, netns: "+l.ns[0]+take+"}]}]\n")
	}
	d := startDaemon(t, socket, "--netns", l.ns[0], "--port", "eth2", "--name", "s1")
	if _, errs, code := invoke(t, "", "--socket", socket, "apply", "-f", file("")); code != 1 || !strings.Contains(errs, "take: true") {
		t.Errorf("apply: exit code %d, %s", code, errs)
	}
	if out, _, _ := invoke(t, "", "--socket", socket, "show", "ports"); strings.Contains(out, "eth1") || !strings.Contains(out, "eth2") {
		t.Errorf("after what was refused:\n%s", out)
	}
	if out, errs, code := invoke(t, "", "--socket", socket, "apply", "-f", file(", take: true")); code != 0 || !strings.Contains(out, "applied") {
		t.Errorf("apply with take: exit code %d\n%s%s", code, out, errs)
	}
	d.stop(t, unix.SIGTERM)

	d = startDaemon(t, socket, "--netns", l.ns[0], "--port", "eth1", "--take")
	if code := d.stop(t, unix.SIGTERM); code != 0 {
		t.Errorf("exit code %d with --take", code)
	}
}
