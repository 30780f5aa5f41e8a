// Package meter reads what the kernel says of the use of the processors: of
// each core, and of single processes.
package meter

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// hz is USER_HZ, the unit of /proc/stat: 100 on every Linux machine that Go runs on.
const hz = 100

// Core is the use of one core over a span, in percent of it.
type Core struct {
	User    float64 `json:"user"`
	System  float64 `json:"system"`
	SoftIRQ float64 `json:"softirq"`
	Idle    float64 `json:"idle"`
	Steal   float64 `json:"steal"`
}

// Use is the use of a set of processes over a span, in percent of one core.
// User and System come from the kernel's clock ticks (coarse), Running and
// Waiting from its scheduler (exact).
type Use struct {
	User    float64 `json:"user"`
	System  float64 `json:"system"`
	Running float64 `json:"running"`
	Waiting float64 `json:"waiting"` // of the busiest thread: runnable, but another task had the core
}

// Sample is a reading at one instant.
type Sample struct {
	at    time.Time
	cores []coreTicks
	procs map[string]taskTimes // by /proc path of the thread
}

type coreTicks struct{ user, system, softirq, idle, steal uint64 }

type taskTimes struct {
	user, system     uint64 // ticks
	running, waiting uint64 // nanoseconds
}

// Read takes a reading of all cores and of the processes pids, with all their threads.
func Read(pids []int) (Sample, error) {
	s := Sample{at: time.Now(), procs: map[string]taskTimes{}}
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return s, err
	}
	for line := range strings.Lines(string(stat)) {
		f := strings.Fields(line)
		if len(f) < 9 || !strings.HasPrefix(f[0], "cpu") || f[0] == "cpu" {
			continue
		}
		var v [8]uint64
		for i := range v {
			if v[i], err = strconv.ParseUint(f[i+1], 10, 64); err != nil {
				return s, fmt.Errorf("/proc/stat: %w", err)
			}
		}
		// user nice system idle iowait irq softirq steal (proc_stat(5))
		s.cores = append(s.cores, coreTicks{user: v[0] + v[1], system: v[2], idle: v[3] + v[4], softirq: v[5] + v[6], steal: v[7]})
	}
	for _, pid := range pids {
		tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
		if err != nil {
			return s, err
		}
		for _, task := range tasks {
			s.procs[task] = readTask(task)
		}
	}
	return s, nil
}

// readTask reads the times of a thread. One that ended meanwhile has no files and counts as nothing.
func readTask(task string) (t taskTimes) {
	if b, err := os.ReadFile(task + "/schedstat"); err == nil {
		if f := strings.Fields(string(b)); len(f) >= 2 {
			t.running, t.waiting = number(f[0]), number(f[1])
		}
	}
	if b, err := os.ReadFile(task + "/stat"); err == nil {
		// The name in parentheses may hold spaces; utime and stime are the 12th and 13th field after it.
		if f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:])); len(f) > 12 {
			t.user, t.system = number(f[11]), number(f[12])
		}
	}
	return t
}

func number(s string) uint64 {
	n, _ := strconv.ParseUint(s, 10, 64) // the kernel writes numbers here
	return n
}

// Since returns the use of the cores and of the processes since an earlier
// reading of the same processes, and the time between the two.
func (s Sample) Since(earlier Sample) (cores []Core, use Use, span time.Duration) {
	span = s.at.Sub(earlier.at)
	sec := span.Seconds()
	for i, c := range s.cores {
		if i >= len(earlier.cores) {
			break
		}
		e := earlier.cores[i]
		pct := func(now, then uint64) float64 { return float64(now-then) / hz / sec * 100 }
		cores = append(cores, Core{pct(c.user, e.user), pct(c.system, e.system), pct(c.softirq, e.softirq), pct(c.idle, e.idle), pct(c.steal, e.steal)})
	}
	var busiest float64
	for task, now := range s.procs {
		then, known := earlier.procs[task]
		if !known || now.running < then.running || now.user < then.user || now.system < then.system {
			continue // started, or ended, within the span
		}
		running := float64(now.running-then.running) / 1e9 / sec * 100
		use.User += float64(now.user-then.user) / hz / sec * 100
		use.System += float64(now.system-then.system) / hz / sec * 100
		use.Running += running
		if running >= busiest {
			busiest, use.Waiting = running, float64(now.waiting-then.waiting)/1e9/sec*100
		}
	}
	return cores, use, span
}

// Resident returns the resident memory of a process in bytes.
func Resident(pid int) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	f := strings.Fields(string(b))
	if len(f) < 2 {
		return 0, fmt.Errorf("/proc/%d/statm: %q", pid, b)
	}
	return int64(number(f[1])) * int64(os.Getpagesize()), nil
}
