package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// netnsDir is where named network namespaces live (ip-netns(8)).
const netnsDir = "/run/netns"

// A named namespace is a file under netnsDir with a namespace mounted over
// it. Both bear the fabric's marker before they appear under the name: the
// file as its content, the namespace as the alias of its loopback interface.

// createNamespaces makes the namespaces of a layout, each with some sysctls, and
// returns those that it made. The caller closes them, whether or not that is
// all.
func (s *state) createNamespaces(ctx context.Context, l *Layout, sysctls func(n *Namespace) map[string]string) ([]netns.NsHandle, error) {
	spaces := make([]netns.NsHandle, 0, len(l.Namespaces))
	for i := range l.Namespaces {
		n := &l.Namespaces[i]
		if err := ctx.Err(); err != nil {
			return spaces, err
		}
		if err := createNamespace(n.Name, s.marker(), func() error { return setSysctls(sysctls(n)) }); err != nil {
			return spaces, err
		}
		ns, err := openNamespace(n.Name, s.marker())
		if err != nil {
			return spaces, err
		}
		spaces = append(spaces, ns)
	}
	return spaces, nil
}

func closeAll(spaces []netns.NsHandle) {
	for i := range spaces {
		spaces[i].Close()
	}
}

// createNamespace makes a namespace with a name that nothing else has.
// setup runs in it before it gets the name.
func createNamespace(name, marker string, setup func() error) error {
	if err := prepareNetnsDir(); err != nil {
		return err
	}
	result := make(chan error)
	go func() {
		// The thread changes its namespace and is never unlocked: it ends with
		// the goroutine.
		runtime.LockOSThread()
		result <- func() error {
			if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
				return fmt.Errorf("cannot make a network namespace: %w", err)
			}
			lo, err := netlink.LinkByName("lo")
			if err != nil {
				return err
			}
			if err := netlink.LinkSetAlias(lo, marker); err != nil {
				return fmt.Errorf("cannot mark namespace %s: %w", name, err)
			}
			if err := netlink.LinkSetUp(lo); err != nil {
				return err
			}
			if err := setup(); err != nil {
				return err
			}
			path := filepath.Join(netnsDir, name)
			if err := createMarkedFile(path, marker); err != nil {
				return err
			}
			src := fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid())
			if err := unix.Mount(src, path, "none", unix.MS_BIND, ""); err != nil {
				return fmt.Errorf("cannot mount namespace %s: %w", name, err)
			}
			return nil
		}()
	}()
	return <-result
}

// createMarkedFile makes a file that has its content from the first moment.
// It fails where the name is taken.
func createMarkedFile(path, content string) error {
	fd, err := unix.Open(filepath.Dir(path), unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o444)
	if err != nil {
		return &os.PathError{Op: "create in", Path: filepath.Dir(path), Err: err}
	}
	defer unix.Close(fd)
	if _, err := unix.Write(fd, []byte(content)); err != nil {
		return &os.PathError{Op: "write", Path: path, Err: err}
	}
	err = unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW)
	if errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("%s is there already and was not made by this fabric; remove it, or choose another name for the fabric", path)
	}
	if err != nil {
		return &os.PathError{Op: "create", Path: path, Err: err}
	}
	return nil
}

// prepareNetnsDir makes the folder a shared mount, as ip-netns(8) does, so
// that names made in one mount namespace are seen in others.
func prepareNetnsDir() error {
	if err := os.MkdirAll(netnsDir, 0o755); err != nil {
		return err
	}
	err := unix.Mount("", netnsDir, "none", unix.MS_SHARED|unix.MS_REC, "")
	if errors.Is(err, unix.EINVAL) { // not a mount point yet
		if err := unix.Mount(netnsDir, netnsDir, "none", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return &os.PathError{Op: "bind mount", Path: netnsDir, Err: err}
		}
		err = unix.Mount("", netnsDir, "none", unix.MS_SHARED|unix.MS_REC, "")
	}
	if err != nil {
		return &os.PathError{Op: "share", Path: netnsDir, Err: err}
	}
	return nil
}

// errForeign says that something bears a fabric's name but not its token.
var errForeign = errors.New("was not made by this fabric")

// openNamespace opens a namespace by name if it bears the marker.
func openNamespace(name, marker string) (netns.NsHandle, error) {
	ns, err := netns.GetFromPath(filepath.Join(netnsDir, name))
	if err != nil {
		return netns.None(), err
	}
	if err := checkNamespace(ns, marker); err != nil {
		ns.Close()
		return netns.None(), fmt.Errorf("namespace %s %w", name, err)
	}
	return ns, nil
}

func checkNamespace(ns netns.NsHandle, marker string) error {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(ns), &fs); err != nil {
		return err
	}
	if fs.Type != unix.NSFS_MAGIC {
		return errForeign
	}
	h, err := netlink.NewHandleAt(ns)
	if err != nil {
		return err
	}
	defer h.Close()
	lo, err := h.LinkByName("lo")
	if err != nil {
		return err
	}
	if lo.Attrs().Alias != marker {
		return errForeign
	}
	return nil
}

// removeNamespace takes a namespace's name away, if namespace and name are
// the fabric's; the kernel ends the namespace when its last process is gone.
// A name that is not there is no error.
func removeNamespace(name, marker string) error {
	path := filepath.Join(netnsDir, name)
	for {
		var fs unix.Statfs_t
		err := unix.Statfs(path, &fs)
		if errors.Is(err, unix.ENOENT) {
			return nil
		}
		if err != nil {
			return &os.PathError{Op: "stat", Path: path, Err: err}
		}
		if fs.Type != unix.NSFS_MAGIC {
			break
		}
		ns, err := openNamespace(name, marker)
		if err != nil {
			return err
		}
		ns.Close()
		if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
			return &os.PathError{Op: "unmount", Path: path, Err: err}
		}
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if strings.TrimSpace(string(content)) != marker {
		return fmt.Errorf("file %s %w", path, errForeign)
	}
	return os.Remove(path)
}

// inNamespace runs f on a thread of the namespace.
func inNamespace(ns netns.NsHandle, f func() error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := netns.Set(ns); err != nil {
			result <- fmt.Errorf("cannot enter a network namespace: %w", err)
			return
		}
		result <- f()
	}()
	return <-result
}
