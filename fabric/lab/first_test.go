package lab

import (
	"testing"

	"golang.org/x/sys/unix"
)

// All threads go before others, and back.
func TestGoFirst(t *testing.T) {
	needRoot(t)
	policies := func() map[uint32]int {
		found := map[uint32]int{}
		eachThread(func(tid int) {
			if attr, err := unix.SchedGetAttr(tid, 0); err == nil {
				found[attr.Policy]++
			}
		})
		return found
	}
	for _, sleeps := range []bool{true, false} {
		undo := GoFirst(sleeps)
		if p := policies(); sleeps && p[unix.SCHED_NORMAL] > 0 || !sleeps && p[unix.SCHED_FIFO] > 0 {
			t.Errorf("sleeps %v: threads by policy: %v", sleeps, p)
		}
		if n, err := unix.Getpriority(unix.PRIO_PROCESS, 0); !sleeps && (err != nil || n != 20-switchNice) { // the system call counts from 20 down
			t.Errorf("nice value %d, %v", 20-n, err)
		}
		undo()
		if p := policies(); p[unix.SCHED_FIFO] > 0 {
			t.Errorf("undone: threads by policy: %v", p)
		}
	}
}
