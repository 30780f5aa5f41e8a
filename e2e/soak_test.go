package e2e

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gswitch/control/api"
)

// soak asks for what takes long, or judges time:
//
//	go test ./e2e -run 'StopUnderLoad|TestOutOfMemory' -timeout 0 -soak
var soak = flag.Bool("soak", false, "stop each loaded daemon 50 times within a second each")

// stops is how often, and for how long, daemons were stopped.
type stops struct {
	t            *testing.T
	n            int
	longest, sum time.Duration
}

// left says how many are left to make.
func (s *stops) left() bool {
	if *soak {
		return s.n < 50
	}
	return s.n < 2
}

func (s *stops) measure(stop func()) {
	began := time.Now()
	stop()
	took := time.Since(began)
	s.n, s.longest, s.sum = s.n+1, max(s.longest, took), s.sum+took
}

// judge prints how long they took. Only a run that asks for it has the machine to itself.
func (s *stops) judge() {
	s.t.Logf("%d stops: the longest took %v, the mean is %v", s.n, s.longest, s.sum/time.Duration(s.n))
	if *soak && s.longest > time.Second {
		s.t.Errorf("a stop took %v", s.longest)
	}
}

// SIGTERM ends a switch that is flooded, with nothing left; within a second,
// where that is asked for.
func TestStopUnderLoad(t *testing.T) {
	l := newLab(t, 2, labOptions{})
	file := filepath.Join(t.TempDir(), "s.yaml")
	write(t, file, fmt.Sprintf("version: 1\nswitches: [{name: s1, ports: [{interface: d0, netns: %[1]s, rate: 10Mbps}, {interface: d1, netns: %[1]s, rate: 10Mbps}]}]\n", l.sw))
	socket := filepath.Join(t.TempDir(), "sock")
	for i := range 2 {
		startStream(t, l.hosts[i], l.hosts[1-i], flow{srcIP: [4]byte{10, 0, 0, 1}, dstIP: [4]byte{10, 0, 0, 2}, dstPort: 9300, size: 300}, 20_000)
	}
	for s := (&stops{t: t}); ; {
		d := launch(t, socket, "-c", file)
		d.await()
		eventually(t, "frames are dropped for want of room", func() error {
			if d.drops()["queue-tail"]+d.drops()["buffer-full"] == 0 {
				return fmt.Errorf("%v", d.drops())
			}
			return nil
		})
		if s.measure(func() { d.stop(l.sw) }); !s.left() {
			s.judge()
			return
		}
	}
}

// So does a host that is sending, in the middle of a message.
func TestHostsStopUnderLoad(t *testing.T) {
	n := newGhostNet(t, 2, 1)
	socket := n.ghosts[0].socket
	for s := (&stops{t: t}); ; {
		send := exec.Command(ghost, "--socket", socket, "send", "--to", "10.0.0.2", "--size", "1MB", "--count", "1000")
		var said strings.Builder
		send.Stdout, send.Stderr = &said, &said
		if err := send.Start(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "messages are under way", func() error {
			if h := asked(n.ghosts[0], &api.HostStatus{}, "show", "host"); h.TxBytes < 100_000 {
				return fmt.Errorf("%d bytes were sent", h.TxBytes)
			}
			return nil
		})
		s.measure(func() { n.ghosts[0].stop(n.hosts[0].ns) })
		if err := send.Wait(); err == nil {
			t.Errorf("the messages of a host that was stopped arrived:\n%s", &said)
		}
		if !s.left() {
			s.judge()
			return
		}
		n.ghosts[0] = n.start(t, 0, 1, socket)
		n.ghosts[0].await()
	}
}

// And a collector into which copies come as fast as the kernel takes them.
func TestCollectorStopsUnderLoad(t *testing.T) {
	at := freePort(t)
	c := newCollector(t, "leaf-spine:1,2,1", "--reports", "", "--udp", at)
	copies, err := net.Dial("udp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer copies.Close()
	ended, flood := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(flood)
		for b := make([]byte, 1400); ; {
			select {
			case <-ended:
				return
			default:
				copies.Write(b) // refused while none listens
			}
		}
	}()
	defer func() { close(ended); <-flood }()
	for s := (&stops{t: t}); ; {
		eventually(t, "datagrams come", func() error {
			if out, err := exec.Command(gcollect, "show", "limits", "--data", c.data).CombinedOutput(); err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		})
		s.measure(func() {
			if err := c.Process.Signal(unix.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if err := c.Wait(); err != nil {
				t.Errorf("gcollect: %v", err)
			}
		})
		if !s.left() {
			s.judge()
			return
		}
		c.start()
	}
}

// A run that has no more memory is ended: by the kernel in its control group, or, where none
// can be made, by itself at the limit of what it may have. A switch and another run beside it
// go on, and the run that ended can be run again.
func TestOutOfMemory(t *testing.T) {
	confine := `ulimit -d 60000 && exec "$@"` // KiB, below what the runtime and the program's own data take
	group, limit := "/sys/fs/cgroup", "memory.max"
	if _, err := os.Stat("/sys/fs/cgroup/memory"); err == nil { // version 1
		group, limit = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
	}
	group = filepath.Join(group, fmt.Sprintf("%s%d", prefix, os.Getpid()))
	grouped := os.Mkdir(group, 0o755) == nil
	if grouped {
		t.Cleanup(func() {
			if err := unix.Rmdir(group); err != nil {
				t.Error(err)
			}
		})
		f, err := os.OpenFile(filepath.Join(group, limit), os.O_WRONLY, 0) // where it is none, there is no such file
		if grouped = err == nil; grouped {
			_, err = f.WriteString("8M")
			grouped = errors.Join(err, f.Close()) == nil
		}
	}
	if grouped {
		confine = `echo $$ > "$0/cgroup.procs" && exec "$@"`
	}
	t.Logf("in a control group: %v", grouped)
	l := newLab(t, 2, labOptions{})
	for i, h := range l.hosts {
		h.address(t, []string{fmt.Sprintf("10.0.0.%d/24", i+1)})
	}
	d, _ := runConfig(t, fmt.Sprintf("version: 1\nswitches: [{name: s1, ports: [{interface: d0, netns: %[1]s}, {interface: d1, netns: %[1]s}]}]\n", l.sw))
	file := aScenario(t, "memory", incast)
	within := exec.Command("sh", "-c", confine, group, gfabric, "run", file, "--out", "small", "--fresh", "--quiet")
	beside, said := fabricCommand(file, "run", file, "--out", "beside", "--fresh", "--quiet")
	within.Dir = beside.Dir
	if err := beside.Start(); err != nil {
		t.Fatal(err)
	}
	out, err := within.CombinedOutput()
	status, ok := within.ProcessState.Sys().(syscall.WaitStatus)
	if grouped && (!ok || status.Signal() != unix.SIGKILL) || !grouped && (err == nil || !strings.Contains(string(out), "out of memory") && !strings.Contains(string(out), "cannot allocate memory")) {
		t.Errorf("without memory it ends with %v\n%.2000s", err, out)
	}
	if err := beside.Wait(); err != nil {
		t.Errorf("the run beside it: %v\n%s", err, said)
	}
	l.hosts[0].pings(t, "10.0.0.2", 1000)
	again, said := fabricCommand(file, "run", file, "--out", "small", "--quiet")
	if err := again.Run(); err != nil {
		t.Errorf("once more, with memory: %v\n%s", err, said)
	}
	d.stop(l.sw)
}

// Results, pages, drawings and captures on a disk that is full end with an error that
// says so, and leave what was there.
func TestFullDisk(t *testing.T) {
	l := newLab(t, 2, labOptions{})
	small := t.TempDir()
	if err := unix.Mount("tmpfs", small, "tmpfs", 0, "size=16k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(small, 0) })
	file := aScenario(t, "disk", incast)
	c, out := fabricCommand(file, "run", file, "--out", filepath.Join(small, "results"), "--fresh", "--quiet")
	if err := c.Run(); err == nil || !strings.Contains(out.String(), "no space left on device") || strings.Contains(out.String(), "goroutine ") {
		t.Errorf("results on a full disk: %v\n%s", err, out)
	}
	if err := os.RemoveAll(filepath.Join(small, "results")); err != nil {
		t.Error(err)
	}
	if c, out := fabricCommand(file, "run", file, "--out", "results", "--quiet"); c.Run() != nil {
		t.Fatalf("results beside it: %s", out)
	}
	page := filepath.Join(small, "report.html")
	write(t, page, "the page before")
	for _, to := range []string{"--html=" + page, "--figures=" + filepath.Join(small, "figures")} {
		c, out := fabricCommand(file, "report", "results", to)
		if err := c.Run(); err == nil || !strings.Contains(out.String(), "no space left on device") || strings.Contains(out.String(), "goroutine ") {
			t.Errorf("%s on a full disk: %v\n%s", to, err, out)
		}
	}
	if now, err := os.ReadFile(page); err != nil || string(now) != "the page before" {
		t.Errorf("the page that was there is %q, %v", now, err)
	}
	if left, err := filepath.Glob(filepath.Join(small, ".*")); err != nil || left != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if err := os.RemoveAll(filepath.Join(small, "figures")); err != nil {
		t.Error(err)
	}

	d, _ := runConfig(t, fmt.Sprintf("version: 1\nswitches: [{name: s1, ports: [{interface: d0, netns: %[1]s}, {interface: d1, netns: %[1]s}]}]\n", l.sw))
	s := startStream(t, l.hosts[0], l.hosts[1], flow{srcIP: [4]byte{10, 0, 0, 1}, dstIP: [4]byte{10, 0, 0, 2}, dstPort: 9400, size: 1000}, 500)
	if out, code := d.try("capture", "-w", filepath.Join(small, "c.pcapng")); code == 0 || !strings.Contains(out, "no space left on device") {
		t.Errorf("a capture on a full disk: exit code %d\n%s", code, out)
	}
	// The switch has nothing to do with it.
	s.flowing(100)
	s.perfect(d)
	d.stop(l.sw)
}
