package lab

import (
	"testing"

	"golang.org/x/sys/unix"
)

// All threads count more than others, and no more afterwards; none gets a
// real-time policy, with which a worker that does not keep up would stop the
// machine.
func TestGoFirst(t *testing.T) {
	needRoot(t)
	undo := GoFirst()
	eachThread(func(tid int) {
		if attr, err := unix.SchedGetAttr(tid, 0); err == nil && (attr.Policy != unix.SCHED_NORMAL || attr.Nice != switchNice) {
			t.Errorf("thread %d: policy %d, nice value %d", tid, attr.Policy, attr.Nice)
		}
	})
	undo()
	eachThread(func(tid int) {
		if attr, err := unix.SchedGetAttr(tid, 0); err == nil && attr.Nice != 0 {
			t.Errorf("undone: thread %d has the nice value %d", tid, attr.Nice)
		}
	})
}
