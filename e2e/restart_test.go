package e2e

import (
	"path/filepath"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// A container that is started again has lost its links, and gets new ones while its switch runs already, one after the
// other: the switch waits for them, and forwards; also where it has ended by itself, or was killed.
func TestRestartBeforeLinks(t *testing.T) {
	l := newLab(t, 2, labOptions{})
	a, b := l.hosts[0], l.hosts[1]
	sock := filepath.Join(t.TempDir(), "sock")
	start := func() *daemon {
		return launch(t, sock, "--netns", l.sw, "--wait", "10m", "--port", "d0", "--port", "d1")
	}
	forwards := func(d *daemon) {
		t.Helper()
		d.await()
		a.address(t, []string{"10.0.0.1/24"})
		b.address(t, []string{"10.0.0.2/24"})
		d.awaitState("d0", "up")
		d.awaitState("d1", "up")
		a.pings(t, "10.0.0.2", 56)
	}
	d := start()
	forwards(d)
	for _, signal := range []unix.Signal{unix.SIGKILL, unix.SIGTERM} {
		if err := d.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		<-d.done
		link(t, l.sw, "d0", netlink.LinkDel)
		link(t, l.sw, "d1", netlink.LinkDel)
		d = start()
		l.cable(t, b)
		l.cable(t, a)
		forwards(d)
	}
	d.stop(l.sw)
}
