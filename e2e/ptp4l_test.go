package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gswitch/clocktime"
	"gswitch/control"
	"gswitch/control/api"
)

// slaveConf is ptp4l as the slave of a switch, with stamps of the kernel.
const slaveConf = `[global]
time_stamping software
network_transport L2
delay_mechanism P2P
domainNumber 83
slaveOnly 1
logSyncInterval -6
summary_interval 0
`

var (
	ptpOffset = regexp.MustCompile(`master offset +(-?\d+) s2 .* path delay +(-?\d+)`)
	ptpSlave  = "UNCALIBRATED to SLAVE"
)

// clockCounter is one of those of show clock.
func clockCounter(d *daemon, name, kind string) (v float64) {
	for _, c := range show(d, &api.Clocks{}, "clock").Counters {
		if c.Name == name && c.Kind == kind {
			v += c.Value
		}
	}
	return v
}

// linuxptp's ptp4l follows a switch through its port, and a second switch follows
// the first. ptp4l may not set the machine's clock here: what it measures is the
// difference of that to the switch's, which the switch's page has, too.
func TestPTPSlaveFollows(t *testing.T) {
	need(t, "ptp4l", "setpriv")
	l := newLab(t, 2, labOptions{})
	d, file := runConfig(t, `version: 1
switches:
- name: s1
  clock: {root: true, slaves: [d0], announce: 100ms}
  ports:
  - {interface: d0, netns: `+l.sw+`}
  - {interface: d1, netns: `+l.sw+`}
- name: s2
  clock: {parent: to1}
  ports:
  - {name: to1, interface: eth0, netns: `+l.hosts[1].ns+`}
`)
	conf := filepath.Join(t.TempDir(), "ptp4l.conf")
	write(t, conf, slaveConf+"logAnnounceInterval -3\nuds_address "+filepath.Join(t.TempDir(), "uds")+"\n")
	c := exec.Command("ip", "netns", "exec", l.hosts[0].ns, "setpriv", "--bounding-set", "-sys_time", "--inh-caps", "-sys_time", "ptp4l", "-i", "eth0", "-f", conf, "-m", "-q")
	var out syncBuffer
	c.Stdout, c.Stderr = &out, &out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); c.Wait() }()
	defer func() { c.Process.Kill(); <-ended }()
	s1 := clockPage(t, d, "s1")
	least, most := machineAhead(t, s1)
	for right := 0; right < 20; {
		select {
		case <-ended:
			t.Fatalf("ptp4l has ended:\n%s", out.String())
		case <-time.After(50 * time.Millisecond):
		}
		now, then := machineAhead(t, s1)
		least, most = min(least, now), max(most, then)
		right = 0
		// However late both are, no message comes before it has left: the offset is not
		// below the truth by more than the delay of the link that counts. Where the message
		// was not slower than twice that, it is not above by more, either.
		for _, m := range ptpOffset.FindAllStringSubmatch(out.String(), -1) {
			offset, _ := strconv.ParseInt(m[1], 10, 64)
			delay, _ := strconv.ParseInt(m[2], 10, 64)
			if offset < least-delay {
				t.Fatalf("an offset of %d ns with a path of %d: the machine is ahead by %d to %d", offset, delay, least, most)
			}
			if offset <= most+delay {
				right++
			}
		}
	}
	if !strings.Contains(out.String(), ptpSlave) {
		t.Errorf("it is locked, and no slave:\n%s", out.String())
	}
	t.Logf("the machine's clock is ahead by %d to %d ns, and %d offsets say so", least, most, len(ptpOffset.FindAllString(out.String(), -1)))
	// It turns when the machine keeps messages from it, and has no second parent to turn to.
	for clockCounter(d, "clock_messages_total", "valid") < 20 || clockCounter(d, "clock_state", "primary")+clockCounter(d, "clock_state", "backup") != 1 {
		time.Sleep(50 * time.Millisecond)
	}
	pagesAgree(t, d)
	// Without a clock no messages are sent any more, and the daemon logs it.
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, strings.Replace(string(text), "  clock: {parent: to1}\n", "", 1))
	d.do("apply", file)
	if n := clockCounter(d, "clock_depth", ""); n != 0 {
		t.Errorf("a clock that was taken away is still shown:\n%s", d.do("show", "clock"))
	}
}

// machineAhead is by how many nanoseconds the machine's wall clock is ahead of a switch's, at
// least and at most.
func machineAhead(t *testing.T, c *clocktime.Clock) (least, most int64) {
	t.Helper()
	for {
		s, err := c.Sample()
		if err == nil {
			return s.Machine.Sub(s.Latest).Nanoseconds(), s.Machine.Sub(s.Earliest).Nanoseconds()
		}
		if !errors.Is(err, clocktime.ErrUnknown) {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
}

// pagesAgree reads the pages of a root, s1, and of the switch that follows it, s2: what the
// second says holds what the first does, however late the machine is: what the hop adds is
// measured.
func pagesAgree(t *testing.T, d *daemon) {
	t.Helper()
	var clocks [2]*clocktime.Clock
	for i, name := range []string{"s1", "s2"} {
		c, err := clocktime.Open(control.PagePath(d.socket, name))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		clocks[i] = c
	}
	known := 0
	var apart []int64 // what one hop is wrong by on this machine, now
	for range 200 {
		// Both of one instant of the machine: that of the second image.
		root, m := image(t, clocks[0]), image(t, clocks[1])
		if m.Eps < 0 || root.Eps < 0 {
			continue
		}
		at, bt, err := root.Between(max(m.At, root.At))
		from, to, err2 := m.Between(max(m.At, root.At))
		if err != nil || err2 != nil || m.Root != root.Root || root.State != clocktime.Root {
			t.Fatalf("%+v follows %+v: %v, %v", m, root, err, err2)
		}
		apart = append(apart, max(m.Time-m.At-root.Time+root.At, root.Time-root.At-m.Time+m.At))
		if known++; at < from || bt > to {
			t.Fatalf("the root says %d to %d, who follows it %d to %d", at, bt, from, to)
		}
		time.Sleep(5 * time.Millisecond)
	}
	if known == 0 {
		t.Fatal("no time in the page of who follows")
	}
	slices.Sort(apart)
	t.Logf("one hop is %d ns wrong at the median, %d ns at worst, of %d samples", apart[len(apart)/2], apart[len(apart)-1], len(apart))
}
