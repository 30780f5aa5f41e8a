package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"gswitch/clocktime"
	"gswitch/control"
)

// busy has programs take every processor of the machine, several each, for the time of the
// test.
func busy(t *testing.T) {
	t.Helper()
	for range 3 * runtime.NumCPU() {
		c := exec.Command("sh", "-c", "while :; do :; done")
		c.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
		started := make(chan error)
		go func() {
			runtime.LockOSThread() // the signal comes when the thread dies
			err := c.Start()
			started <- err
			if err == nil {
				c.Wait()
			}
		}()
		if err := <-started; err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Process.Kill() })
	}
}

// clockPage opens that of a switch or host.
func clockPage(t *testing.T, d *daemon, name string) *clocktime.Clock {
	t.Helper()
	c, err := clocktime.Open(control.PagePath(d.socket, name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// image is what a page says. A writer that has no processor for a second is waited for.
func image(t *testing.T, c *clocktime.Clock) clocktime.Image {
	t.Helper()
	for {
		m, err := c.Image()
		if err == nil {
			return m
		}
		t.Log(err)
	}
}

// A root, a switch that follows it and a host that follows that one are daemons of their
// own on a machine that has far more to do than it can. As all oscillators are the
// machine's, the root's time is known at any instant: it lies in the interval that each page
// says, at every sample, however late the frames, the stamps of departure and the
// workers are, and also while a link has failed.
func TestBoundOnRealFrames(t *testing.T) {
	l := newLab(t, 2, labOptions{})
	a, _ := runConfig(t, "version: 1\nswitches: [{name: s1, clock: {root: true}, ports: [{interface: d0, netns: "+l.sw+"}]}]\n")
	b, _ := runConfig(t, fmt.Sprintf(`version: 1
switches:
- name: s2
  clock: {parent: up}
  ports:
  - {name: up, interface: eth0, netns: %s}
  - {interface: d1, netns: %s}
`, l.hosts[0].ns, l.sw))
	file := filepath.Join(t.TempDir(), "host.yaml")
	write(t, file, fmt.Sprintf("version: 1\nname: h1\nnetns: %s\ninterface: eth0\naddress: 10.0.0.2/24\nclock: {}\n", l.hosts[1].ns))
	h := launchProgram(t, ghost, filepath.Join(t.TempDir(), "sock"), "-c", file)
	h.await()
	busy(t)
	root, followers := clockPage(t, a, "s1"), []*clocktime.Clock{clockPage(t, b, "s2"), clockPage(t, h, "h1")}
	state := func() string { return b.do("show", "clock") + h.do("show", "host") }
	boundHolds(t, 300, root, followers, state)
	// The link from the root fails: both go on by their own oscillators, and say so.
	known := image(t, followers[1])
	link(t, l.hosts[0].ns, "eth0", netlink.LinkSetDown)
	eventually(t, "the switch receives no sync messages", func() error {
		if m := image(t, followers[0]); m.State != clocktime.Holdover {
			return fmt.Errorf("%+v", m)
		}
		return nil
	})
	boundHolds(t, 50, root, followers, state)
	alone := image(t, followers[0])
	boundHolds(t, 50, root, followers, state)
	if m := image(t, followers[0]); m.Eps <= alone.Eps {
		t.Errorf("a clock that receives nothing was uncertain by %d ns and then by %d", alone.Eps, m.Eps)
	}
	// It works again. The plan of a document has no second way: the state is still that of
	// a clock that has turned to its second parent.
	valid := clockCounter(b, "clock_messages_total", "valid")
	link(t, l.hosts[0].ns, "eth0", netlink.LinkSetUp)
	eventually(t, "both follow again", func() error {
		n := clockCounter(b, "clock_messages_total", "valid") - valid
		if m := image(t, followers[1]); n < 20 || m.State != clocktime.Primary && m.State != clocktime.Backup || m.Root != known.Root {
			return fmt.Errorf("%.0f messages, %+v", n, m)
		}
		return nil
	})
	boundHolds(t, 100, root, followers, state)
}

// boundHolds reads the pages of a root and of clocks that follow it, the first one hop away,
// the second two and so on, until each has shown its bound so many times: that holds all of
// what the root's page says, which is its time to the few nanoseconds in which the two clocks
// of the kernel are compared. state, called now and then, fails where a daemon has ended.
func boundHolds(t *testing.T, samples int, root *clocktime.Clock, followers []*clocktime.Clock, state func() string) {
	t.Helper()
	type seen struct {
		at       int64
		eps, off []int64
	}
	all := make([]seen, len(followers))
	for looks := 1; slices.ContainsFunc(all, func(s seen) bool { return len(s.eps) < samples }); looks++ {
		if looks%1000 == 0 {
			t.Log(state())
		}
		time.Sleep(3 * time.Millisecond)
		for i, c := range followers {
			s, r, m := &all[i], image(t, root), image(t, c)
			if r.Eps < 0 || m.Eps < 0 || m.At == s.at || m.Root != r.Root {
				continue
			}
			s.at = m.At
			// As the page is written, and as who reads it a while later gets it.
			for _, at := range []int64{max(m.At, r.At), max(m.At, r.At) + int64(time.Second)} {
				least, most, err := r.Between(at)
				from, to, err2 := m.Between(at)
				if err != nil || err2 != nil {
					t.Fatal(err, err2)
				}
				if least < from || most > to {
					t.Fatalf("%d hops away the root's time is from %d to %d, and is %d to %d: %+v, %+v", i+1, from, to, least, most, m, r)
				}
			}
			s.eps = append(s.eps, m.Eps)
			s.off = append(s.off, max(m.Time-m.At-r.Time+r.At, r.Time-r.At-m.Time+m.At))
		}
	}
	for i, s := range all {
		slices.Sort(s.eps)
		slices.Sort(s.off)
		n := len(s.eps)
		t.Logf("%d hops away: bounds of %v at the median and %v at most, errors of %v and %v, of %d samples", i+1,
			time.Duration(s.eps[n/2]), time.Duration(s.eps[n-1]), time.Duration(s.off[n/2]), time.Duration(s.off[n-1]), n)
	}
}
