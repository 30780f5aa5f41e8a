package xsk

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// held maps paths of namespaces to files that were opened so that the namespaces can be
// entered again.
var held sync.Map

// HoldNetNS opens a namespace for good. A process that has restricted its file access
// (Landlock) can no longer open those of other processes, such as /proc/4711/ns/net.
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

// NetNSPath returns the file of a network namespace; "" is that of the process.
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

// InNetNS runs fn in a network namespace on a thread of its own. The namespace is a name
// as in "ip netns", a path such as /proc/4711/ns/net, or "" for that of the process.
// Sockets that fn opens stay in the namespace. fn must not hand work to other goroutines.
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
		// A thread that cannot return to its namespace must not be reused: if a goroutine
		// ends while it is locked to its thread, the thread ends too.
		if unix.Setns(home, unix.CLONE_NEWNET) == nil {
			runtime.UnlockOSThread()
		}
		done <- err
	}()
	return <-done
}
