package lab

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// firstPriority is the least of SCHED_FIFO's (sched(7)): above all ordinary
// threads, below the kernel's own.
const firstPriority = 1

// GoFirst puts the calling process, which steps nodes in real time, before
// others on its processors, until undo is called: all of its threads, since one
// that is due may wait for a lock that another of them holds. sleeps tells that
// it sleeps when it has nothing to do: then it goes before all ordinary threads
// of the machine; otherwise, as that would keep others out for good, it only
// counts more than they do, like the lab's switches. Where that is not allowed
// it does without.
func GoFirst(sleeps bool) (undo func()) {
	if sleeps {
		eachThread(func(tid int) {
			unix.SchedSetAttr(tid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: firstPriority}, 0)
		})
		return func() {
			eachThread(func(tid int) {
				unix.SchedSetAttr(tid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL}, 0)
			})
		}
	}
	nice := func(n int) {
		eachThread(func(tid int) { unix.Setpriority(unix.PRIO_PROCESS, tid, n) })
		os.WriteFile("/proc/self/autogroup", []byte(strconv.Itoa(n)), 0)
	}
	nice(switchNice)
	return func() { nice(0) }
}

// eachThread visits the threads of the process. Those that are made meanwhile
// inherit from one that was visited, or are found by the second round.
func eachThread(visit func(tid int)) {
	for range 2 {
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return
		}
		for _, t := range tasks {
			if tid, err := strconv.Atoi(t.Name()); err == nil {
				visit(tid)
			}
		}
	}
}
