package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// cpu is the processor time that a process has used (proc_pid_stat(5)).
func (d *daemon) cpu() time.Duration {
	d.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", d.Process.Pid))
	if err != nil {
		d.t.Fatal(err)
	}
	// The name in parentheses may hold anything; utime and stime are fields 14 and 15.
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	var user, system int64
	fmt.Sscan(f[11], &user)
	fmt.Sscan(f[12], &system)
	return time.Duration(user+system) * time.Second / 100 // USER_HZ
}

// resident is the memory of a process in bytes, and the most that it was.
func (d *daemon) resident() (now, most uint64) {
	d.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.Process.Pid))
	if err != nil {
		d.t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			fmt.Sscan(v, &now)
		}
		if v, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			fmt.Sscan(v, &most)
		}
	}
	return now << 10, most << 10
}

// A switch of eight ports without traffic takes nearly nothing.
func TestIdle(t *testing.T) {
	l := newLab(t, 8, labOptions{})
	args := []string{"--netns", l.sw}
	for i, h := range l.hosts {
		h.address(t, []string{fmt.Sprintf("10.0.0.%d/24", i+1)})
		args = append(args, "--port", h.port())
	}
	d := run(t, args...)
	// It has forwarded, and every port has used its rings.
	for _, h := range l.hosts[1:] {
		transfer(t, l.hosts[0], h, fmt.Sprintf("10.0.0.%d", h.i+1), 1<<20)
	}
	now, most := d.resident()
	t.Logf("resident memory: %d MB, at most %d MB", now>>20, most>>20)
	if most > 200e6 {
		t.Errorf("resident memory is %d MB, at most %d MB; want less than 200", now/1e6, most/1e6)
	}
	// Hosts still say something now and then; a busy machine makes all dearer.
	const window = time.Second
	best := 1.0
	for range 20 {
		before, start := d.cpu(), time.Now()
		time.Sleep(window)
		best = min(best, float64(d.cpu()-before)/float64(time.Since(start)))
		if best < 0.02 {
			break
		}
	}
	t.Logf("%.1f %% of a core", 100*best)
	if best >= 0.02 {
		t.Errorf("an idle switch takes %.1f %% of a core", 100*best)
	}
	d.stop(l.sw)
}
