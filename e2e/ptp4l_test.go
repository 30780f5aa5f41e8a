package e2e

import (
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

// clockCounter is one of those that show clock tells.
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
// difference of that to the switch's, which began with it.
func TestPTPSlaveFollows(t *testing.T) {
	for _, tool := range []string{"ptp4l", "setpriv"} {
		if _, err := exec.LookPath(tool); err != nil {
			if os.Getenv("GSWITCH_CI") != "" {
				t.Fatalf("%s: %v", tool, err)
			}
			t.Skipf("needs %s (linuxptp, util-linux)", tool)
		}
	}
	l := newLab(t, 2, labOptions{})
	d, file := runConfig(t, `version: 1
switches:
- name: s1
  clock: {root: true, slaves: [d0], announce: 100ms}
  ports:
  - {interface: d0, netns: `+l.sw+`}
  - {interface: d1, netns: `+l.sw+`}
- name: s2
  clock: {parent: to1, hop: 1s}
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
	defer func() { c.Process.Kill(); c.Wait() }()
	deadline := time.Now().Add(60 * time.Second)
	for !strings.Contains(out.String(), ptpSlave) || len(ptpOffset.FindAllString(out.String(), -1)) < 20 {
		if time.Now().After(deadline) {
			t.Fatalf("ptp4l does not follow:\n%s\n%s", out.String(), d.do("show", "clock"))
		}
		time.Sleep(50 * time.Millisecond)
	}
	// However late both programs are: the two clocks began as one, and the machine's
	// is not set by the second.
	least := 1e18
	for _, m := range ptpOffset.FindAllStringSubmatch(out.String(), -1) {
		v, _ := strconv.ParseFloat(m[1], 64)
		least = min(least, max(v, -v))
	}
	if t.Logf("ptp4l is %v ns off at best", least); least > 10e6 {
		t.Errorf("the machine's clock and the switch's are %v ns apart", least)
	}
	// It turns when the machine keeps messages from it, and has nobody to turn to.
	for clockCounter(d, "clock_messages_total", "valid") < 20 || clockCounter(d, "clock_state", "primary")+clockCounter(d, "clock_state", "backup") != 1 {
		if time.Now().After(deadline) {
			t.Fatalf("the second switch does not follow the first:\n%s", d.do("show", "clock"))
		}
		time.Sleep(50 * time.Millisecond)
	}
	pagesAgree(t, d)
	// Without a clock nobody gets messages any more, and the daemon says so.
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, strings.Replace(string(text), "  clock: {parent: to1, hop: 1s}\n", "", 1))
	d.do("apply", file)
	if n := clockCounter(d, "clock_depth", ""); n != 0 {
		t.Errorf("a clock that was taken away is still shown:\n%s", d.do("show", "clock"))
	}
}

// pagesAgree reads the pages of a root, s1, and of the switch that follows it, s2: what the
// second says holds what the first does. A hop may add a second, so that it does however late
// the machine is.
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
		root, m := clocks[0].Image(), clocks[1].Image()
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
