package e2e

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"gswitch/control/privilege"
)

// called has the first thread of a process make a system call, by ptrace(2), and returns what
// that returned: a negative number is an error. The call stands where the program begins,
// where no thread comes any more. Its arguments are numbers, and at most one path, which stands behind it.
func called(t *testing.T, pid int, call uint64, args ...any) int64 {
	t.Helper()
	runtime.LockOSThread() // a tracer is a thread
	defer runtime.UnlockOSThread()
	stopped := func(by unix.Signal) {
		for {
			var s unix.WaitStatus
			if _, err := unix.Wait4(pid, &s, unix.WALL, nil); err == unix.EINTR {
				continue
			} else if err != nil || !s.Stopped() {
				t.Fatalf("process %d: %v, %v", pid, s, err)
			}
			if s.StopSignal() == by {
				return
			}
			if err := unix.PtraceCont(pid, 0); err != nil { // one of the runtime's own signals
				t.Fatal(err)
			}
		}
	}
	program, err := elf.Open(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		t.Fatal(err)
	}
	entry := program.Entry
	if err := program.Close(); err != nil || program.Type != elf.ET_EXEC {
		t.Fatalf("%v: %v", program.Type, err)
	}
	if err := unix.PtraceAttach(pid); err != nil {
		t.Fatal(err)
	}
	stopped(unix.SIGSTOP)
	var was, regs unix.PtraceRegs
	if err := unix.PtraceGetRegs(pid, &was); err != nil {
		t.Fatal(err)
	}
	text := []byte{0x0f, 0x05, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc} // syscall; int3
	registers := [6]uint64{}
	for i, a := range args {
		switch a := a.(type) {
		case int:
			registers[i] = uint64(a)
		case string:
			registers[i] = entry + uint64(len(text))
			text = append(append(text, a...), 0)
		}
	}
	code := make([]byte, len(text))
	if _, err := unix.PtracePeekText(pid, uintptr(entry), code); err != nil {
		t.Fatal(err)
	}
	regs = was
	regs.Rip, regs.Rax, regs.Orig_rax = entry, call, ^uint64(0) // no call is to be begun again
	regs.Rdi, regs.Rsi, regs.Rdx, regs.R10, regs.R8, regs.R9 = registers[0], registers[1], registers[2], registers[3], registers[4], registers[5]
	_, err = unix.PtracePokeText(pid, uintptr(entry), text)
	if err = errors.Join(err, unix.PtraceSetRegs(pid, &regs), unix.PtraceCont(pid, 0)); err != nil {
		t.Fatal(err)
	}
	stopped(unix.SIGTRAP)
	err = unix.PtraceGetRegs(pid, &regs)
	_, poked := unix.PtracePokeText(pid, uintptr(entry), code)
	if err = errors.Join(err, poked, unix.PtraceSetRegs(pid, &was), unix.PtraceDetach(pid)); err != nil {
		t.Fatal(err)
	}
	return int64(regs.Rax)
}

// Each daemon, once it is ready, has a filter of system calls: what runs programs, or
// enters namespaces, is refused to it, whatever makes the call. With --keep-privileges the
// kernel itself answers, which shows that the calls are made.
func TestFilters(t *testing.T) {
	n := newBumpNet(t, 2, 1)
	g := launchProgram(t, ghost, filepath.Join(t.TempDir(), "sock"), "--netns", n.hosts[1].ns, "--port", "eth0", "--addr", "10.0.0.9/24")
	g.await()
	c := newCollector(t, "leaf-spine:1,2,1", "--reports", "")
	clock := began(t, "ready", exec.Command(gcollect, "clock", "run", "--data", c.data, "--fabric", "leaf-spine:1,2,1", "--sockets", t.TempDir()))
	site := began(t, "open http", exec.Command(gfabric, "serve", "--scenario", "../scenarios/quickstart.yaml", "--listen", "127.0.0.1:0"))
	wires := filepath.Join(t.TempDir(), "wires.yaml")
	write(t, wires, "version: 1\nswitches: [{name: w1, ports: [{name: a, wire: w}]}, {name: w2, ports: [{name: a, wire: w}]}]\n")
	again := began(t, "open http", exec.Command(gfabric, "replay", recorded(t, wires), "--serve", "127.0.0.1:0"))
	looked := began(t, "open http", runs(t, "--serve", "127.0.0.1:0"))
	fabric := fmt.Sprintf("e2e-filters-%d", os.Getpid())
	raiseFabric(t, fabric, "star:2")
	up := began(t, "open http", exec.Command(gfabric, "serve", fabric, "--listen", "127.0.0.1:0"))
	server := began(t, "ready", exec.Command(gfabric, "load", "serve", "--listen", "127.0.0.1:0"))
	kept := newCollector(t, "leaf-spine:1,2,1", "--reports", "", "--keep-privileges")
	const eperm, efault = -int64(unix.EPERM), -int64(unix.EFAULT)
	for _, d := range []struct {
		name                              string
		pid                               int
		execve, execveat, unshare, ptrace int64
	}{
		{"gswitch", n.sw.Process.Pid, eperm, eperm, eperm, eperm},
		{"ghost", g.Process.Pid, eperm, eperm, eperm, eperm},
		{"ghost of a bump", n.bumps[0].Process.Pid, eperm, eperm, eperm, eperm},
		{"gcollect", c.Process.Pid, eperm, eperm, eperm, eperm},
		{"gcollect clock", clock.Process.Pid, eperm, eperm, eperm, eperm},
		{"gfabric serve", site.Process.Pid, eperm, eperm, eperm, eperm},
		{"gfabric serve of a fabric", up.Process.Pid, eperm, eperm, eperm, eperm},
		{"gfabric run --serve", looked.Process.Pid, eperm, eperm, eperm, eperm},
		{"gfabric replay --serve", again.Process.Pid, eperm, eperm, eperm, eperm},
		{"gfabric load serve", server.Process.Pid, eperm, eperm, eperm, eperm},
		{"gcollect --keep-privileges", kept.Process.Pid, efault, efault, 0, eperm},
	} {
		got := fmt.Sprint(called(t, d.pid, unix.SYS_EXECVE), called(t, d.pid, unix.SYS_EXECVEAT), called(t, d.pid, unix.SYS_UNSHARE), called(t, d.pid, unix.SYS_PTRACE))
		if want := fmt.Sprint(d.execve, d.execveat, d.unshare, d.ptrace); got != want {
			t.Errorf("%s: execve, execveat, unshare, ptrace return %s, want %s", d.name, got, want)
		}
		if pid := called(t, d.pid, unix.SYS_GETPID); pid != int64(d.pid) {
			t.Errorf("%s: getpid returns %d, it is %d", d.name, pid, d.pid)
		}
		if err := syscall.Kill(d.pid, 0); err != nil {
			t.Errorf("%s: %v", d.name, err)
		}
	}
	// As little do they write root's files, give them away, make a program that runs as root,
	// or reach root's sockets, but for processes that call daemons at theirs.
	root := t.TempDir()
	job := filepath.Join(root, "job")
	write(t, job, "root's")
	landlock, err := privilege.Landlock()
	closed := -int64(unix.EACCES)
	if err != nil {
		closed = 0
		t.Logf("files are not closed: Landlock %d, %v", landlock, err)
	}
	for _, d := range []struct {
		name    string
		pid     int
		sockets bool
	}{
		{"gswitch", n.sw.Process.Pid, false}, {"ghost", g.Process.Pid, false}, {"ghost of a bump", n.bumps[0].Process.Pid, false},
		{"gcollect", c.Process.Pid, false}, {"gcollect clock", clock.Process.Pid, true},
		{"gfabric serve", site.Process.Pid, false}, {"gfabric load serve", server.Process.Pid, false}, {"gfabric serve of a fabric", up.Process.Pid, true},
		{"gfabric run --serve", looked.Process.Pid, false}, {"gfabric replay --serve", again.Process.Pid, false},
	} {
		if got := min(0, called(t, d.pid, unix.SYS_OPENAT, unix.AT_FDCWD, job, unix.O_WRONLY|unix.O_CLOEXEC)); got != closed {
			t.Errorf("%s: a file of root's is opened to be written: %d, want %d", d.name, got, closed)
		}
		if got := min(0, called(t, d.pid, unix.SYS_OPENAT, unix.AT_FDCWD, job+d.name, unix.O_WRONLY|unix.O_CLOEXEC|unix.O_CREAT, 0o600)); got != closed {
			t.Errorf("%s: a file beside root's is made: %d, want %d", d.name, got, closed)
		}
		if got := called(t, d.pid, unix.SYS_CHMOD, job, 0o666); got != eperm {
			t.Errorf("%s: a file of root's is given to all: %d", d.name, got)
		}
		if got := called(t, d.pid, unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_STREAM); got != eperm && !d.sockets || got < 0 && d.sockets {
			t.Errorf("%s: a Unix socket is made: %d", d.name, got)
		}
		if got := called(t, d.pid, unix.SYS_OPENAT, unix.AT_FDCWD, filepath.Join(root, "x"), unix.O_RDONLY|unix.O_CREAT, 0o4755); got != eperm {
			t.Errorf("%s: a program that runs as root is made: %d", d.name, got)
		}
	}
	for _, call := range []int64{called(t, kept.Process.Pid, unix.SYS_CHMOD, job, 0o600), called(t, kept.Process.Pid, unix.SYS_OPENAT, unix.AT_FDCWD, job, unix.O_WRONLY)} {
		if call < 0 {
			t.Errorf("gcollect --keep-privileges: %d", call)
		}
	}
	// They go on as before.
	g.stop(n.hosts[1].ns)
	n.hosts[0].pings(t, "10.0.0.2", 1)
}
