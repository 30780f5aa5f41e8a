package privilege

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// asDaemon is set for processes that this test starts to drop their privileges.
const asDaemon = "PRIVILEGE_TEST"

func TestMain(m *testing.M) {
	if what := os.Getenv(asDaemon); what != "" {
		fmt.Print(daemon(what))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// daemon drops what it does not need and says what it can do then, a line each.
func daemon(what string) string {
	// Threads that are there already have to be without it, too.
	stay := make(chan struct{})
	for range 4 {
		ready := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(ready)
			<-stay
		}()
		<-ready
	}
	n := Need{Interfaces: true}
	switch {
	case what == "namespaces":
		n.NetNS = []string{"lab"}
	case what == "nothing":
		n = Need{}
	case strings.HasPrefix(what, "read "):
		n.Read = []string{what[len("read "):]}
	case strings.HasPrefix(what, "write "):
		n.Write = []string{what[len("write "):]}
	}
	attacks := prepare()
	if dir := os.Getenv(asDaemon + "_DIR"); dir != "" {
		n.Dirs, n.Write = []string{filepath.Join(dir, "mine"), filepath.Join(dir, "made/by it")}, []string{filepath.Join(dir, "file"), filepath.Join(dir, "new file")}
	}
	n.Sockets = what == "sockets"
	left, err := Drop(n)
	if err != nil || left.Calls != "" {
		return fmt.Sprintln("error", err, left.Calls)
	}
	out := fmt.Sprintln("left", strings.Join(left.Capabilities, " "))
	if left.Files != "" {
		out += fmt.Sprintln("files are open:", left.Files)
	}
	threads, _ := filepath.Glob("/proc/self/task/*/status")
	var states []string
	for _, t := range threads {
		text, _ := os.ReadFile(t)
		var s []string
		for line := range strings.Lines(string(text)) {
			for _, k := range []string{"CapPrm", "CapEff", "CapBnd", "CapInh", "CapAmb", "NoNewPrivs", "Seccomp:"} {
				if strings.HasPrefix(line, k) {
					s = append(s, strings.Join(strings.Fields(line), ""))
				}
			}
		}
		states = append(states, strings.Join(s, " "))
	}
	slices.Sort(states)
	out += fmt.Sprintln("threads", len(threads), "alike", len(slices.Compact(states)), states[0])
	for _, call := range []struct {
		name string
		do   func() error
	}{
		{"execve", func() error { return unix.Exec("/bin/true", []string{"true"}, nil) }},
		{"fork", func() error { return exec.Command("/bin/true").Run() }},
		{"mount", func() error { return unix.Mount("none", "/mnt", "tmpfs", 0, "") }},
		{"ptrace", func() error { return unix.PtraceAttach(os.Getppid()) }},
		{"kill", func() error { return unix.Kill(os.Getppid(), 0) }},
		{"tgkill", func() error { return unix.Tgkill(os.Getppid(), os.Getppid(), 0) }},
		{"queue", func() error {
			var info [128]byte
			return syscallError(unix.SYS_RT_SIGQUEUEINFO, uintptr(os.Getppid()), 0, uintptr(unsafe.Pointer(&info)))
		}},
		{"tracepoint", func() error { // BPF_RAW_TRACEPOINT_OPEN, with nothing to open
			var attr [64]byte
			return syscallError(unix.SYS_BPF, unix.BPF_RAW_TRACEPOINT_OPEN, uintptr(unsafe.Pointer(&attr)), uintptr(len(attr)))
		}},
		{"program of others", func() error {
			attr := [16]uint32{1}
			return syscallError(unix.SYS_BPF, unix.BPF_PROG_GET_FD_BY_ID, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
		}},
		{"interrupt itself", func() error { return unix.Tgkill(os.Getpid(), unix.Gettid(), 0) }},
		{"map", func() error {
			attr := [18]uint32{2, 4, 4, 1} // BPF_MAP_TYPE_ARRAY
			fd, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_MAP_CREATE, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
			if errno != 0 {
				return errno
			}
			return unix.Close(int(fd))
		}},
		{"setuid", func() error { return unix.Setuid(0) }},
		{"unshare", func() error { return unix.Unshare(unix.CLONE_NEWNET) }},
		{"setns", func() error { return inOwnNamespace() }},
		{"chown", func() error { return unix.Chown("/tmp", 0, 0) }},
		{"socket", func() error {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err == nil {
				err = l.Close()
			}
			return err
		}},
		{"xdp", func() error {
			fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
			if err == nil {
				err = unix.Close(fd)
			}
			return err
		}},
	} {
		if err := call.do(); err != nil {
			out += fmt.Sprintln("refused", call.name, errors.Is(err, unix.EPERM))
		} else {
			out += fmt.Sprintln("done", call.name)
		}
	}
	return out + attacks()
}

func syscallError(call, a, b, c uintptr) error {
	if _, _, errno := unix.Syscall(call, a, b, c); errno != 0 {
		return errno
	}
	return nil
}

// inOwnNamespace enters the network namespace in which the thread is.
func inOwnNamespace() error {
	fd, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Setns(fd, unix.CLONE_NEWNET)
}

func drop(t *testing.T, what string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to have something to give up")
	}
	c := exec.Command("/proc/self/exe")
	c.Env = append(os.Environ(), asDaemon+"="+what)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// A daemon that was started as root has what it needs on no thread more, cannot
// have it again, and cannot run a program, see into others, or mount.
func TestDrop(t *testing.T) {
	out := drop(t, "interfaces")
	// NET_ADMIN 12, NET_RAW 13, IPC_LOCK 14, PERFMON 38, BPF 39.
	const mask = "000000c000007000"
	for _, want := range []string{"left CAP_NET_ADMIN CAP_NET_RAW CAP_BPF CAP_PERFMON CAP_IPC_LOCK\n",
		"alike 1 CapInh:0000000000000000 CapPrm:" + mask + " CapEff:" + mask + " CapBnd:" + mask + " CapAmb:0000000000000000 NoNewPrivs:1 Seccomp:2\n",
		"done socket\n", "done xdp\n", "done interrupt itself\n", "done map\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	for _, call := range []string{"execve", "fork", "mount", "ptrace", "kill", "tgkill", "queue", "tracepoint", "program of others", "setuid", "unshare", "setns", "chown"} {
		if !strings.Contains(out, "refused "+call+" true\n") {
			t.Errorf("%s was not refused:\n%s", call, out)
		}
	}
}

// A daemon whose configuration names other namespaces keeps what enters them, and no more.
func TestDropWithNamespaces(t *testing.T) {
	out := drop(t, "namespaces")
	for _, want := range []string{"CAP_IPC_LOCK CAP_SYS_ADMIN\n", "done setns\n", "refused execve true\n", "refused mount true\n", "refused unshare true\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if out = drop(t, "nothing"); !strings.Contains(out, "left \n") || !strings.Contains(out, "refused xdp true\n") {
		t.Errorf("who needs nothing has:\n%s", out)
	}
}

// Root without the capability that passes over permissions keeps it where files
// of the user who called sudo are in use, and only there.
func TestDropWithFilesOfOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	const other = 65534
	dir := t.TempDir()
	private, mine := filepath.Join(dir, "private"), filepath.Join(dir, "mine")
	readable := filepath.Join(dir, "readable")
	if err := errors.Join(os.Mkdir(private, 0o700), os.Chown(private, other, other), os.Mkdir(mine, 0o700), os.WriteFile(readable, nil, 0o644), os.Chown(readable, other, other)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ what, last string }{
		{"read " + mine, "CAP_IPC_LOCK"}, {"write " + mine + "/not/there/yet", "CAP_IPC_LOCK"}, {"read " + readable, "CAP_IPC_LOCK"},
		{"read " + private + "/x", "CAP_DAC_READ_SEARCH"}, {"write " + private, "CAP_DAC_OVERRIDE"}, {"write " + private + "/deeper/x", "CAP_DAC_OVERRIDE"},
		{"write " + readable, "CAP_DAC_OVERRIDE"},
	} {
		if out := drop(t, c.what); !strings.Contains(out, c.last+"\nthreads") {
			t.Errorf("%s: %s", c.what, out)
		}
	}
}

// Where no filter can be had the log says so, and nothing else passes for that.
func TestUnfiltered(t *testing.T) {
	for err, want := range map[error]string{nil: "", syscall.ENOSYS: "no filters", syscall.EPERM: "container"} {
		if why, got := unfilteredBy(err); got != nil || why != want && (want == "" || !strings.Contains(why, want)) {
			t.Errorf("%v: %q, %v", err, why, got)
		}
	}
	if why, err := unfilteredBy(syscall.ENOMEM); why != "" || !errors.Is(err, syscall.ENOMEM) {
		t.Errorf("no memory: %q, %v", why, err)
	}
}
