package dataplane

import (
	"golang.org/x/sys/unix"

	"gswitch/dataplane/xsk"
)

// prepareThread names the calling thread, which is the worker's for good, sets its
// priority and processor, and makes its sleeps exact.
func (w *Worker) prepareThread() {
	if err := xsk.NameThread(w.config.Name); err != nil {
		w.engine.log.Warn("worker thread not named", "worker", w.config.Name, "err", err)
	}
	// The kernel may delay the wake-up of a thread by its timer slack, by default 50 us
	// (prctl(2)).
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
	if w.config.First {
		w.goFirst()
	}
	w.stats.Running = w.engine.Now()
	w.last = w.stats.Running
}

// firstNice is the nice value of a worker with First.
const firstNice = -10

// goFirst raises the priority of the calling thread.
func (w *Worker) goFirst() {
	if err := unix.Setpriority(unix.PRIO_PROCESS, 0, firstNice); err != nil {
		w.engine.log.Warn("worker does not count more than other threads: it is late where the machine is busy (needs CAP_SYS_NICE)", "worker", w.config.Name, "err", err)
	}
}
