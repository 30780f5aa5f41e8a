package xsk

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// InNetNS runs fn in a network namespace, on a thread of its own: a name as
// "ip netns" knows it, a path such as /proc/4711/ns/net, or "" for the
// namespace of the process. Sockets that fn opens stay in the namespace. fn
// must not hand work to other goroutines.
func InNetNS(netns string, fn func() error) error {
	if netns == "" {
		return fn()
	}
	path := netns
	if !strings.Contains(netns, "/") {
		path = filepath.Join("/run/netns", netns)
	}
	target, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("network namespace %s: open %s: %w", netns, path, err)
	}
	defer unix.Close(target)

	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		home, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			done <- fmt.Errorf("network namespace of this thread: %w", err)
			return
		}
		defer unix.Close(home)
		if err := unix.Setns(target, unix.CLONE_NEWNET); err != nil {
			done <- fmt.Errorf("network namespace %s: enter (needs CAP_SYS_ADMIN): %w", netns, err)
			return
		}
		err = fn()
		// A thread that cannot go home must not be used again: a goroutine
		// that ends while locked takes its thread with it.
		if unix.Setns(home, unix.CLONE_NEWNET) == nil {
			runtime.UnlockOSThread()
		}
		done <- err
	}()
	return <-done
}
