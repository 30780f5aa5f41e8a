package privilege

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/cap"
)

// Need lists what a daemon does after its start.
type Need struct {
	// Interfaces: it opens and closes ports over interfaces.
	Interfaces bool
	// NetNS are the network namespaces that it enters, by name or path.
	NetNS []string
	// Read are files that it reads again, Write files that it writes, and Dirs
	// directories in which it creates, writes and removes files. They may belong to the
	// user who started it with sudo.
	Read, Write, Dirs []string
	// Sockets: it connects to Unix sockets of other processes.
	Sockets bool
}

// Left is what a process can still do after Drop.
type Left struct {
	Capabilities []string
	// Calls says why system calls could not be restricted, and Files why files could not,
	// if so.
	Calls, Files string
}

// dropped is set by Drop.
var dropped atomic.Bool

// Dropped reports whether this process has dropped the privileges that it does not need.
func Dropped() bool { return dropped.Load() }

// keeps returns the capabilities of Used, and those for files of other users, that are
// needed.
func (n *Need) keeps() (keep []cap.Value, err error) {
	if n.Interfaces {
		keep = append(keep, cap.NET_ADMIN, cap.NET_RAW, cap.BPF, cap.PERFMON, cap.IPC_LOCK)
	}
	for _, ns := range n.NetNS {
		if ns == "" {
			continue
		}
		keep = append(keep, cap.SYS_ADMIN)
		// The namespace of a process is a file that only a process allowed to trace it
		// may open.
		if strings.HasPrefix(ns, "/proc/") {
			keep = append(keep, cap.SYS_PTRACE)
		}
	}
	readable, writable, err := reachable(n.Read, slices.Concat(n.Write, n.Dirs))
	if !writable {
		keep = append(keep, cap.DAC_OVERRIDE)
	}
	if !readable {
		keep = append(keep, cap.DAC_READ_SEARCH)
	}
	return keep, err
}

// Drop drops privileges of all threads for good: the capabilities that are not needed and
// those that executing a program could gain (no_new_privs), write access to all files but
// those needed, and the system calls that no daemon makes, such as those for other
// programs, mounts, modules and other processes. Without the latter two, root without
// capabilities could regain them through files that root owns.
func Drop(n Need) (left Left, err error) {
	keep, err := n.keeps()
	if err != nil {
		return left, fmt.Errorf("which capabilities files need: %w", err)
	}
	have, after := cap.GetProc(), cap.NewSet()
	kept := map[cap.Value]bool{}
	for _, v := range keep {
		if on, err := have.GetFlag(cap.Permitted, v); err != nil || !on || kept[v] {
			continue // unknown to this kernel, or not ours
		}
		kept[v] = true
		left.Capabilities = append(left.Capabilities, strings.ToUpper(v.String()))
		if err := errors.Join(after.SetFlag(cap.Permitted, true, v), after.SetFlag(cap.Effective, true, v)); err != nil {
			return left, err
		}
	}
	if err := shrinkBound(have, kept); err != nil {
		return left, err
	}
	if err := after.SetProc(); err != nil {
		return left, fmt.Errorf("capabilities: %w", err)
	}
	if _, err := cap.Prctlw(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return left, fmt.Errorf("no_new_privs: %w", err)
	}
	if left.Files, err = closeFiles(&n); err != nil {
		return left, err
	}
	if left.Calls, err = confine(&n, kept[cap.SYS_ADMIN]); err != nil {
		return left, err
	}
	dropped.Store(true)
	return left, nil
}

// shrinkBound removes all but the kept capabilities from the bounding set, since root
// would regain them by executing a program. That needs CAP_SETPCAP; a process without it
// is not root, or has only what it was given.
func shrinkBound(have *cap.Set, kept map[cap.Value]bool) error {
	if may, err := have.GetFlag(cap.Effective, cap.SETPCAP); err != nil || !may {
		return nil
	}
	var gone []cap.Value
	for v := cap.Value(0); v < cap.MaxBits(); v++ {
		in, err := cap.GetBound(v)
		if err == nil && in && !kept[v] {
			gone = append(gone, v)
		}
	}
	if err := errors.Join(cap.DropBound(gone...), cap.ResetAmbient()); err != nil {
		return fmt.Errorf("bounding set of capabilities: %w", err)
	}
	return nil
}

// reachable reports whether files can be read and written without the capabilities that
// override permissions. It tries on a thread that has none.
func reachable(read, write []string) (readable, writable bool, err error) {
	runtime.LockOSThread()
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var had [2]unix.CapUserData
	if err := unix.Capget(&hdr, &had[0]); err != nil {
		runtime.UnlockOSThread()
		return false, false, err
	}
	less := had
	less[0].Effective &^= 1<<uint(cap.DAC_OVERRIDE) | 1<<uint(cap.DAC_READ_SEARCH)
	if err := unix.Capset(&hdr, &less[0]); err != nil {
		runtime.UnlockOSThread()
		return false, false, err
	}
	readable, writable = true, true
	for _, f := range read {
		readable = readable && may(f, unix.R_OK)
	}
	for _, f := range write {
		writable = writable && may(f, unix.W_OK)
	}
	if err := unix.Capset(&hdr, &had[0]); err != nil {
		return false, false, err // the thread stays locked, and ends with its goroutine
	}
	runtime.UnlockOSThread()
	return readable, writable, nil
}

// may reports whether the calling thread may use a file or, if it does not exist, create
// it in its directory.
func may(file string, how uint32) bool {
	for {
		err := unix.Faccessat(unix.AT_FDCWD, file, how, unix.AT_EACCESS)
		if !errors.Is(err, unix.ENOENT) || file == "/" || file == "." {
			return err == nil
		}
		file = filepath.Dir(file)
	}
}
