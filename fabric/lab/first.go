package lab

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// GoFirst lets the calling process, which steps nodes in real time, count more
// than others on its processors, like the lab's switches, until undo is called:
// all of its threads, since one that is due may wait for a lock that another of
// them holds. No real-time policy: a worker that cannot keep up does not
// sleep, and the machine would stand still with it. Where it is not allowed it
// does without.
func GoFirst() (undo func()) {
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
