package privilege

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// attack is what an attacker who took over a daemon of root's tries, to become root again.
type attack struct {
	name string
	do   func() error
}

// prepare opens what a daemon has open when it drops its privileges, and returns what tries the
// rest in the directory of the test, a line each.
func prepare() (attacks func() string) {
	dir := os.Getenv(asDaemon + "_DIR")
	if dir == "" {
		return func() string { return "" }
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	open, err := os.OpenFile(in("open"), os.O_WRONLY, 0)
	if err != nil {
		return func() string { return fmt.Sprintln("error", err) }
	}
	create := func(path string, mode uint32) error {
		fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CREAT|unix.O_CLOEXEC, mode)
		if err == nil {
			err = unix.Close(fd)
		}
		return err
	}
	all := []attack{
		{"write", func() error { return create(in("cron.d/x"), 0o644) }},
		{"overwrite", func() error { return os.WriteFile(in("cron.d/job"), nil, 0) }},
		{"truncate", func() error { return os.Truncate(in("cron.d/job"), 0) }},
		{"remove", func() error { return os.Remove(in("cron.d/job")) }},
		{"rename", func() error { return os.Rename(in("mine/old"), in("cron.d/x")) }},
		{"link out", func() error { return os.Link(in("mine/old"), in("cron.d/x")) }},
		{"link in", func() error { return os.Link(in("cron.d/job"), in("mine/job")) }},
		{"symlink", func() error { return os.Symlink("/etc/passwd", in("mine/link")) }},
		{"directory", func() error { return os.Mkdir(in("cron.d/y"), 0o755) }},
		{"socket of its own", func() error { return unix.Mknod(in("mine/s"), unix.S_IFSOCK|0o777, 0) }},
		{"device", func() error { return unix.Mknod(in("mine/d"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))) }},
		{"a name beyond its own", func() error { return create(in("mine/../cron.d/x"), 0o644) }},
		{"a name by itself", func() error { return create("/proc/self/root"+in("cron.d/x"), 0o644) }},
		{"for others", func() error { return os.Chmod(in("cron.d/job"), 0o666) }},
		{"for others, of its own", func() error { return os.Chmod(in("mine/old"), 0o4755) }},
		{"for others, opened", func() error { return open.Chmod(0o4755) }},
		{"for others, newer call", func() error {
			path, _ := unix.BytePtrFromString(in("cron.d/job"))
			_, _, errno := unix.Syscall6(unix.SYS_FCHMODAT2, ^uintptr(99), uintptr(unsafe.Pointer(path)), 0o666, 0, 0, 0)
			return unless(errno)
		}},
		{"set-user-ID by its mode", func() error { return create(in("mine/suid"), 0o4755) }},
		{"set-group-ID by its mode", func() error { return create(in("mine/sgid"), 0o2755) }},
		{"set-user-ID, newer call", func() error {
			how := unix.OpenHow{Flags: unix.O_WRONLY | unix.O_CREAT, Mode: 0o4755}
			_, err := unix.Openat2(unix.AT_FDCWD, in("mine/suid"), &how)
			return err
		}},
		{"attribute", func() error { return unix.Setxattr(in("mine/old"), "user.x", []byte("y"), 0) }},
		{"socket of root's", func() error {
			c, err := net.Dial("unix", in("root.sock"))
			if err == nil {
				c.Close()
			}
			return err
		}},
		{"pair of sockets", func() error { _, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0); return err }},
		{"netlink of audit", func() error { return opened(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT) }},
		{"netlink of netfilter", func() error { return opened(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER) }},
		{"cryptography of the kernel", func() error { return opened(unix.AF_ALG, unix.SOCK_SEQPACKET, 0) }},
		{"hypervisor", func() error { return opened(unix.AF_VSOCK, unix.SOCK_STREAM, 0) }},
		{"typing", func() error { return unix.IoctlSetPointerInt(0, unix.TIOCSTI, 0) }},
		{"typing, by more bits", func() error {
			if unsafe.Sizeof(uintptr(0)) < 8 {
				return syscall.EPERM
			}
			return syscallError(unix.SYS_IOCTL, 0, uintptr(uint64(1)<<32|unix.TIOCSTI), 0)
		}},
		{"namespace of its own", func() error { return cloned(unix.CLONE_NEWUSER | uintptr(unix.SIGCHLD)) }},
		{"namespace, newer call", func() error {
			args := [11]uint64{0: unix.CLONE_NEWUSER, 4: uint64(unix.SIGCHLD)}
			return syscallError(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&args)), unsafe.Sizeof(args[0])*8, 0)
		}},
		{"limits of others", func() error {
			return unix.Prlimit(os.Getppid(), unix.RLIMIT_CORE, &unix.Rlimit{}, nil)
		}},
		{"CPUs of others", func() error {
			var set unix.CPUSet
			set.Set(0)
			return unix.SchedSetaffinity(os.Getppid(), &set)
		}},
		{"rank of others", func() error { return unix.Setpriority(unix.PRIO_PROCESS, os.Getppid(), 19) }},
		{"ring", func() error { return syscallError(unix.SYS_IO_URING_SETUP, 1, 0, 0) }},
		{"handle", func() error { return syscallError(unix.SYS_OPEN_BY_HANDLE_AT, 0, 0, 0) }},
		{"root", func() error { return unix.PivotRoot(dir, dir) }},
		{"memory of others", func() error {
			_, err := unix.ProcessVMReadv(os.Getppid(), nil, nil, 0)
			return err
		}},
		{"memory of others, as a file", func() error { return create(fmt.Sprintf("/proc/%d/mem", os.Getppid()), 0) }},
		{"settings of the kernel", func() error { return create("/proc/sys/kernel/core_pattern", 0) }},

		{"its file", func() error { return os.WriteFile(in("file"), []byte("x"), 0o644) }},
		{"its new file", func() error { return os.WriteFile(in("new file"), []byte("x"), 0o644) }},
		{"its directory", func() error {
			return errors.Join(os.MkdirAll(in("mine/a/b"), 0o755), os.WriteFile(in("mine/a/b/c"), nil, 0o644), os.Rename(in("mine/a/b/c"), in("mine/c")), os.Truncate(in("mine/c"), 10), os.RemoveAll(in("mine/a")))
		}},
		{"a directory that was not there", func() error { return os.WriteFile(in("made/by it/x"), nil, 0o644) }},
		{"an open file", func() error { _, err := open.WriteString("x"); return err }},
		{"reading", func() error { _, err := os.ReadFile(in("cron.d/job")); return err }},
		{"netlink of interfaces", func() error { return opened(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE) }},
		{"its own limits", func() error { var l unix.Rlimit; return unix.Getrlimit(unix.RLIMIT_NOFILE, &l) }},
	}
	return func() (out string) {
		for _, a := range all {
			switch err := a.do(); {
			case err == nil:
				out += fmt.Sprintln("done", a.name)
			case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES), errors.Is(err, unix.EXDEV), errors.Is(err, unix.ENOSYS):
				out += fmt.Sprintln("refused", a.name+":", err)
			default: // it came as far as the kernel's own checks
				out += fmt.Sprintln("answered", a.name+":", err)
			}
		}
		return out
	}
}

func unless(errno syscall.Errno) error {
	if errno != 0 {
		return errno
	}
	return nil
}

func opened(family, kind, protocol int) error {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
	if err == nil {
		err = unix.Close(fd)
	}
	return err
}

// cloned makes a process by clone, which ends at once.
func cloned(flags uintptr) error {
	pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, flags, 0, 0, 0, 0, 0)
	if errno == 0 && pid == 0 {
		for {
			unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
		}
	}
	return unless(errno)
}

// house is a directory of root's: one for cron, one that is the daemon's, and a socket
// at which root listens.
func house(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	l, err := new(net.ListenConfig).Listen(context.Background(), "unix", filepath.Join(dir, "root.sock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	for _, name := range []string{"cron.d", "mine"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"cron.d/job", "mine/old", "file", "open"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("root's"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func attacked(t *testing.T, what, dir string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, whose files are attacked")
	}
	if abi, err := Landlock(); err != nil || abi < TruncateABI {
		t.Skipf("Landlock of this kernel: ABI %d, %v; it takes %d", abi, err, TruncateABI)
	}
	c := exec.Command("/proc/self/exe")
	c.Env = append(os.Environ(), asDaemon+"="+what, asDaemon+"_DIR="+dir)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// Root without capabilities owns root's files. An attacker who takes over a daemon that root started
// writes none of them, gives none away, makes no program that runs as root, and reaches none of
// root's sockets: what would make it root again. Its own files it writes as before.
func TestFilesAreClosed(t *testing.T) {
	dir := house(t)
	out := attacked(t, "interfaces", dir)
	works := map[string]bool{}
	for _, name := range []string{"its file", "its new file", "its directory", "a directory that was not there", "an open file", "reading", "netlink of interfaces", "its own limits"} {
		works[name] = true
		if !strings.Contains(out, "done "+name+"\n") {
			t.Errorf("%s was refused", name)
		}
	}
	tried := 0
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "answered ") {
			t.Error(line)
		}
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "done "); ok && !works[name] && name != "socket" && name != "xdp" && name != "interrupt itself" && name != "map" {
			t.Errorf("%s was not refused", name)
		}
		tried++
	}
	if tried < 50 || t.Failed() {
		t.Errorf("after %d lines:\n%s", tried, out)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "cron.d/job")); err != nil || string(text) != "root's" {
		t.Errorf("the job of root's: %q, %v", text, err)
	}
	if names, err := os.ReadDir(filepath.Join(dir, "cron.d")); err != nil || len(names) != 1 {
		t.Errorf("beside the job there are %v, %v", names, err)
	}
}

// A process that calls daemons by their sockets keeps these, and no more.
func TestSocketsOfOthers(t *testing.T) {
	out := attacked(t, "sockets", house(t))
	for _, want := range []string{"done socket of root's\n", "refused write: ", "refused netlink of audit: ", "refused pair of sockets: "} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// Of an older Landlock no more is requested than it supports.
func TestOlderLandlock(t *testing.T) {
	for abi, want := range map[int]uint64{1: changes, 2: changes | unix.LANDLOCK_ACCESS_FS_REFER, 3: changes | unix.LANDLOCK_ACCESS_FS_REFER | unix.LANDLOCK_ACCESS_FS_TRUNCATE} {
		if a := handled(abi); a.Handled_access_fs != want || a.Scoped != 0 {
			t.Errorf("ABI %d: %+v, not %#x", abi, a, want)
		}
	}
	if a := handled(7); a.Handled_access_fs&unix.LANDLOCK_ACCESS_FS_IOCTL_DEV == 0 || a.Scoped != unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET {
		t.Errorf("ABI 7: %+v", a)
	}
}

// Where there is no Landlock the log says so, and nothing else passes for that.
func TestFilesStayOpen(t *testing.T) {
	for err, want := range map[error]string{nil: "", syscall.ENOSYS: "no Landlock", syscall.EOPNOTSUPP: "booted", syscall.EPERM: "container", syscall.E2BIG: "as often"} {
		if why, got := openBy(err); got != nil || why != want && (want == "" || !strings.Contains(why, want)) {
			t.Errorf("%v: %q, %v", err, why, got)
		}
	}
	if why, err := openBy(syscall.ENOMEM); why != "" || !errors.Is(err, syscall.ENOMEM) {
		t.Errorf("no memory: %q, %v", why, err)
	}
}
