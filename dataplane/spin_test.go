package dataplane

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// An idle worker that spins makes no system call, with AF_XDP ports too. What
// is left are those of the Go runtime, which takes every goroutine off its
// thread for a moment after 10 ms: a signal, futex calls, a sched_yield or a
// nanosleep where its lock is held elsewhere, a write that wakes up
// who waits for the timers of the processor that it gives away, and memory that the
// runtime takes for its own tables on any thread (the race detector does).
func TestIdleSpinMakesNoSystemCalls(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("needs strace")
	}
	l := newLab(t, 2, 1)
	e, _, _ := twoPorts(t, l, Config{Workers: []WorkerConfig{{Poll: Spin}}}, PortSpec{})
	awaitPort(e, 0, true)
	awaitPort(e, 1, true)
	h0, h1 := l.socket(t, "h0"), l.socket(t, "h1")
	send(t, h0, 1, 60) // it has worked before
	expect(t, h1, 1)
	c := exec.Command(strace, "-qq", "-p", strconv.Itoa(thread(e.Worker(0))))
	var log strings.Builder
	c.Stderr = &log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	c.Process.Signal(os.Interrupt)
	c.Wait()
	if strings.Contains(log.String(), "ptrace") {
		t.Fatalf("strace did not look: %s", log.String())
	}
	calls := 0
	for line := range strings.Lines(log.String()) {
		switch name, _, _ := strings.Cut(line, "("); {
		case slices.Contains([]string{"futex", "rt_sigreturn", "sched_yield", "nanosleep", "write"}, name),
			name == "mmap" && strings.Contains(line, "MAP_ANONYMOUS, -1"):
			calls++
		default:
			if !strings.HasPrefix(line, "--- SIGURG") && !strings.HasPrefix(line, "strace: ") {
				t.Errorf("while idle: %s", line)
			}
		}
	}
	// The runtime steps in some fifty times a second. A call a loop, of
	// whatever name, would be tens of thousands.
	if calls > 1000 {
		t.Errorf("%d calls of the runtime: the loop itself makes some of them", calls)
	}
	if s := e.Stats().Workers[0]; s.Sleeps != 0 {
		t.Errorf("slept %d times", s.Sleeps)
	}
}
