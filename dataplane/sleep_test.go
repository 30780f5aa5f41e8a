package dataplane

import (
	"testing"

	"golang.org/x/sys/unix"

	"gswitch/frame"
)

// ready is a device with frames that are not taken.
type ready struct {
	null
	fd int
}

func (r ready) pollFDs(fds []unix.PollFd) []unix.PollFd {
	return append(fds, unix.PollFd{Fd: int32(r.fd), Events: unix.POLLIN})
}

// A worker does not spin on frames that wait for a node that stands still, and
// looks at them again afterwards.
func TestPausedNodeDoesNotKeepTheWorkerAwake(t *testing.T) {
	fd, err := unix.Eventfd(1, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	e := mustEngine(t, Config{Workers: []WorkerConfig{{Poll: Sleep}}})
	n := &tester{pool: e.Worker(0).Pool()}
	mustNode(t, e, 0, n)
	p := mustPort(t, e, 0, n, 0, PortSpec{Kind: Null})
	p.line.dev = ready{fd: fd}
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	w := e.Worker(0)
	var until frame.Time
	var before, during, after uint64
	w.Do(func(now frame.Time) { until = now + 50*frame.Millisecond })
	if err := e.Pause(0, n, until); err != nil {
		t.Fatal(err)
	}
	w.Do(func(frame.Time) { before = w.stats.Sleeps })
	for e.Now() < until-10*frame.Millisecond {
		pause()
		w.Do(func(now frame.Time) {
			if now < until {
				during = w.stats.Sleeps
			}
			after++ // sleeps that this ended
		})
	}
	if during > before && during-before > after+10 {
		t.Errorf("%d sleeps while it stood still, %d of them ended by the test", during-before, after)
	}
	// Afterwards they wake it, without end: they are not taken.
	await(t, w, func() bool { return w.stats.Sleeps > during+100*after+1000 })
}
