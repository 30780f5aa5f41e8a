package dataplane

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// prepareThread names, ranks and pins the calling thread, which is the worker's for
// good, and makes its sleeps exact.
func (w *Worker) prepareThread() {
	// The name of a thread is a file of its own, which takes 15 bytes.
	tid := strconv.Itoa(unix.Gettid())
	if err := os.WriteFile("/proc/self/task/"+tid+"/comm", []byte(w.config.Name), 0); err != nil {
		w.engine.log.Warn("worker thread not named", "worker", w.config.Name, "err", err)
	}
	// The kernel may delay a sleeping thread by its timer slack, by default
	// 50 us (prctl(2)).
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
		w.engine.log.Warn("timer slack not set: wake-ups may be 50 us late", "worker", w.config.Name, "err", err)
	}
	if w.config.Pin {
		var set unix.CPUSet
		set.Set(w.config.CPU)
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			w.engine.log.Warn("worker not pinned", "worker", w.config.Name, "cpu", w.config.CPU, "err", err)
		}
	}
	if w.config.First && w.config.Poll == Sleep {
		w.goFirst()
	}
	w.stats.Running = w.engine.Now()
	w.last = w.stats.Running
}

// firstPriority is the least of SCHED_FIFO's: above all ordinary threads, below
// the kernel's own.
const firstPriority = 1

// goFirst puts the calling thread before ordinary ones. What it starts is an
// ordinary one again.
func (w *Worker) goFirst() {
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: firstPriority, Flags: unix.SCHED_FLAG_RESET_ON_FORK}
	if err := unix.SchedSetAttr(0, &attr, 0); err != nil {
		w.engine.log.Warn("worker does not run before other threads: it is late where the machine is busy (needs CAP_SYS_NICE)", "worker", w.config.Name, "err", err)
	}
}
