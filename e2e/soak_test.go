package e2e

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// soak asks for what takes long, or judges time:
//
//	go test ./e2e -run 'TestStopUnderLoad|TestOutOfMemory' -timeout 0 -soak
var soak = flag.Bool("soak", false, "stop a loaded switch 50 times within a second each, and run out of memory")

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
	stops := 2
	if *soak {
		stops = 50
	}
	var longest, sum time.Duration
	for range stops {
		d := launch(t, socket, "-c", file)
		d.await()
		eventually(t, "frames are dropped for want of room", func() error {
			if d.drops()["queue-tail"]+d.drops()["buffer-full"] == 0 {
				return fmt.Errorf("%v", d.drops())
			}
			return nil
		})
		began := time.Now()
		d.stop(l.sw)
		took := time.Since(began)
		longest, sum = max(longest, took), sum+took
	}
	t.Logf("%d stops: the longest took %v, the mean is %v", stops, longest, sum/time.Duration(stops))
	if *soak && longest > time.Second {
		t.Errorf("a stop took %v", longest)
	}
}

// A run that has no more memory in its cgroup is killed there; a switch and
// another run beside it go on, and the run that was killed can be run again.
func TestOutOfMemory(t *testing.T) {
	if !*soak {
		return // it makes a control group, which not every machine lets it
	}
	group, limit := "/sys/fs/cgroup", "memory.max"
	if _, err := os.Stat("/sys/fs/cgroup/memory"); err == nil { // version 1
		group, limit = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
	}
	group = filepath.Join(group, fmt.Sprintf("%s%d", prefix, os.Getpid()))
	if err := errors.Join(os.Mkdir(group, 0o755), os.WriteFile(filepath.Join(group, limit), []byte("8M"), 0)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Rmdir(group); err != nil {
			t.Error(err)
		}
	})
	l := newLab(t, 2, labOptions{})
	for i, h := range l.hosts {
		h.address(t, []string{fmt.Sprintf("10.0.0.%d/24", i+1)})
	}
	d, _ := runConfig(t, fmt.Sprintf("version: 1\nswitches: [{name: s1, ports: [{interface: d0, netns: %[1]s}, {interface: d1, netns: %[1]s}]}]\n", l.sw))
	file := aScenario(t, "memory", incast)
	within := exec.Command("sh", "-c", `echo $$ > "$0/cgroup.procs" && exec "$@"`, group, gfabric, "run", file, "--out", "small", "--fresh", "--quiet")
	beside, said := fabricCommand(file, "run", file, "--out", "beside", "--fresh", "--quiet")
	within.Dir = beside.Dir
	if err := beside.Start(); err != nil {
		t.Fatal(err)
	}
	out, err := within.CombinedOutput()
	if status, ok := within.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != unix.SIGKILL {
		t.Errorf("with 8 MB it ends with %v\n%s", err, out)
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
