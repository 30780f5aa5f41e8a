package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
)

// A port whose interface vanishes, and one whose cable is pulled, do not
// disturb the others, and come back.
func TestPortLoss(t *testing.T) {
	l := newLab(t, 3, labOptions{})
	d := run(t, "--netns", l.sw, "--port", "d0", "--port", "d1", "--port", "d2")
	a, b, c := l.hosts[0], l.hosts[1], l.hosts[2]
	// Both are learned, so that the stream is not flooded.
	for _, h := range []*host{a, b} {
		if err := h.raw(t, etherTest).send(testFrame(broadcast, h.mac, -1, 1, 64)); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "addresses are learned", func() error {
		if p := d.ports(); p["d0"].RxFrames == 0 || p["d1"].RxFrames == 0 {
			return fmt.Errorf("nothing received")
		}
		return nil
	})
	s := startStream(t, a, b, flow{dstPort: 9002, size: 200}, 2000)
	s.flowing(100)

	reaches := func(number uint64) {
		t.Helper()
		r := c.raw(t, etherTest)
		from := a.raw(t, etherTest)
		eventually(t, "host 2 is reached", func() error {
			if err := from.send(testFrame(broadcast, a.mac, -1, number, 64)); err != nil {
				return err
			}
			if f, _ := r.recv(100 * time.Millisecond); f == nil {
				return fmt.Errorf("nothing arrives")
			}
			return nil
		})
		if err := r.send(testFrame(b.mac, c.mac, -1, number, 64)); err != nil {
			t.Fatal(err)
		}
	}
	reaches(10)
	for i := range 4 {
		link(t, l.sw, "d2", netlink.LinkDel)
		d.awaitState("d2", "down: interface was deleted")
		s.flowing(50)
		l.cable(t, c)
		d.awaitState("d2", "up")
		reaches(uint64(20 + i))
	}
	for i := range 4 {
		link(t, c.ns, "eth0", netlink.LinkSetDown)
		d.awaitState("d2", "down")
		s.flowing(50)
		link(t, c.ns, "eth0", netlink.LinkSetUp)
		d.awaitState("d2", "up")
		reaches(uint64(30 + i))
	}
	for i := range 2 {
		link(t, l.sw, "d2", netlink.LinkSetDown)
		d.awaitState("d2", "down")
		s.flowing(50)
		link(t, l.sw, "d2", netlink.LinkSetUp)
		d.awaitState("d2", "up")
		reaches(uint64(40 + i))
	}
	if n := d.ports()["d2"].Reopened; n != 4 {
		t.Errorf("reopened %d times, want 4", n)
	}
	s.perfect(d)
	d.stop(l.sw)
}
