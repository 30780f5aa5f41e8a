package xsk

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// held are files of namespaces that were opened to be entered again, by their paths.
var held sync.Map

// HoldNetNS opens a namespace for good. Who closes files to itself (Landlock) opens those of
// other processes, such as /proc/4711/ns/net, no more.
func HoldNetNS(path string) error {
	if _, there := held.Load(path); there {
		return nil
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	held.Store(path, fmt.Sprintf("/proc/self/fd/%d", fd))
	return nil
}

// NetNSPath returns the file that stands for a network namespace; "" is that of the process.
func NetNSPath(netns string) string {
	switch {
	case netns == "":
		return "/proc/self/ns/net"
	case !strings.Contains(netns, "/"):
		return filepath.Join("/run/netns", netns)
	}
	if file, there := held.Load(netns); there {
		return file.(string)
	}
	return netns
}

// InNetNS runs fn in a network namespace, on a thread of its own: a name as
// "ip netns" knows it, a path such as /proc/4711/ns/net, or "" for the
// namespace of the process. Sockets that fn opens stay in the namespace. fn
// must not hand work to other goroutines.
func InNetNS(netns string, fn func() error) error {
	if netns == "" {
		return fn()
	}
	path := NetNSPath(netns)
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
