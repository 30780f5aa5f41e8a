package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"gswitch/clocktime"
)

// Three switches, a daemon each, every one with a link to both others. The root is killed: the
// backup root takes over, and the third switch turns to it. Every interval that a page says
// holds the time of the root that it follows, at every look, also of one that is dead: all
// oscillators are the machine's, so its time goes on as its page says. The same where the
// link between the two roots has failed before, so that the backup root had turned.
//
// Timeouts are so long that no machine is late by them.
func TestTakeoverOnRealFrames(t *testing.T) {
	for _, turned := range []bool{false, true} {
		t.Run(map[bool]string{false: "at-once", true: "behind-a-turn"}[turned], func(t *testing.T) {
			l := newLab(t, 3, labOptions{})
			const times = "interval: 20ms, timeout: 500ms"
			follower := func(name, times, up, side, sideNS string) string {
				return fmt.Sprintf(`version: 1
switches:
- name: %s
  clock: {parent: up, second: side, %s}
  ports:
  - {name: up, interface: eth0, netns: %s}
  - {name: side, interface: %s, netns: %s}
`, name, times, up, side, sideNS)
			}
			a, _ := runConfig(t, fmt.Sprintf(`version: 1
switches:
- name: s1
  clock: {root: true, %s}
  ports:
  - {interface: d0, netns: %s}
  - {interface: d1, netns: %[2]s}
`, times, l.sw))
			b, _ := runConfig(t, follower("s2", times+", takeover: 2s", l.hosts[0].ns, "d2", l.sw))
			c, _ := runConfig(t, follower("s3", times, l.hosts[1].ns, "eth0", l.hosts[2].ns))
			root, deputy, third := clockPage(t, a, "s1"), clockPage(t, b, "s2"), clockPage(t, c, "s3")
			state := func() string { return b.do("show", "clock") + c.do("show", "clock") }
			boundHolds(t, 30, root, []*clocktime.Clock{deputy, third}, state)
			if turned {
				link(t, l.hosts[0].ns, "eth0", netlink.LinkSetDown)
				eventually(t, "the backup root turns", func() error {
					if m := image(t, deputy); m.State != clocktime.Backup {
						return fmt.Errorf("%+v", m)
					}
					return nil
				})
				boundHolds(t, 30, root, []*clocktime.Clock{deputy, third}, state)
			}
			first := image(t, root)
			if first.State != clocktime.Root {
				t.Fatalf("%+v", first)
			}
			if err := a.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			<-a.done
			for looks := 1; ; looks++ {
				first, heir, m := image(t, root), image(t, deputy), image(t, third)
				within(t, "the backup root", &first, &heir)
				within(t, "the third switch", &first, &m)
				within(t, "the third switch", &heir, &m)
				if heir.State == clocktime.Root && m.State == clocktime.Backup && m.Root == heir.Root && m.Eps >= 0 {
					break
				}
				if looks%1000 == 0 {
					t.Log(state())
				}
				time.Sleep(3 * time.Millisecond)
			}
			boundHolds(t, 30, deputy, []*clocktime.Clock{third}, state)
			if n := clockCounter(b, "clock_turns_total", "elected"); n != 1 {
				t.Errorf("the backup root took over %.0f times", n)
			}
			if n := clockCounter(c, "clock_turns_total", "evicted") + clockCounter(b, "clock_turns_total", "evicted"); n != 0 {
				t.Errorf("%.0f clocks found themselves broken", n)
			}
		})
	}
}

// within fails where a clock follows a root, and its interval does not hold the root's time.
func within(t *testing.T, who string, root, m *clocktime.Image) {
	t.Helper()
	if m.Eps < 0 || m.Root != root.Root || root.State != clocktime.Root || m.State == clocktime.Root {
		return
	}
	at := max(m.At, root.At)
	least, most, err := root.Between(at)
	from, to, err2 := m.Between(at)
	if err != nil || err2 != nil || least < from || most > to {
		t.Fatalf("%s says %d to %d, and its root %d to %d: %+v, %+v (%v, %v)", who, from, to, least, most, m, root, err, err2)
	}
}
