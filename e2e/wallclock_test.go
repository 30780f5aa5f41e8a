package e2e

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// wallClock is a wall clock of its own for the programs that it starts: their
// readings of CLOCK_REALTIME are answered here (seccomp_unotify(2)), so that it
// can be set under them while the machine's goes on. They read it by system
// calls, since they are not reported the kernel's page of clocks (vdso(7)).
type wallClock struct {
	offset atomic.Int64  // nanoseconds by which it is ahead of the machine's
	read   atomic.Uint64 // how often
}

// readsClockOf is set where this program is to become another one.
const readsClockOf = "E2E_WALL_CLOCK"

func init() {
	if os.Getenv(readsClockOf) == "" {
		return
	}
	runtime.LockOSThread() // the thread that is traced
	os.Unsetenv(readsClockOf)
	fmt.Fprintln(os.Stderr, "e2e:", becomeAnother())
	os.Exit(125)
}

// becomeAnother lets the readings of the wall clock be answered by the process that started
// this process, gives it the descriptor for that over descriptor 3, and becomes
// the program that the arguments name.
func becomeAnother() error {
	const load, equal, answer = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_RET | unix.BPF_K
	filter := []unix.SockFilter{
		{Code: load, K: 0}, // number
		{Code: equal, K: unix.SYS_CLOCK_GETTIME, Jf: 4},
		{Code: load, K: 16}, // first argument
		{Code: equal, K: unix.CLOCK_REALTIME, Jt: 1},
		{Code: equal, K: unix.CLOCK_REALTIME_COARSE, Jf: 1},
		{Code: answer, K: unix.SECCOMP_RET_USER_NOTIF},
		{Code: answer, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	fd, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return fmt.Errorf("seccomp: %w", errno)
	}
	if err := unix.Sendmsg(3, []byte{0}, unix.UnixRights(int(fd)), nil, 0); err != nil {
		return err
	}
	return errors.Join(unix.Close(int(fd)), unix.Close(3), syscall.Exec(os.Args[1], os.Args[1:], os.Environ()))
}

// launch starts a daemon whose wall clock this is.
func (w *wallClock) launch(t testing.TB, program, socket string, args ...string) *daemon {
	t.Helper()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	theirs := os.NewFile(uintptr(ends[1]), "clock")
	defer unix.Close(ends[0])
	c := exec.Command("/proc/self/exe", append([]string{program, "run", "--socket", socket}, args...)...)
	c.Env = append(os.Environ(), readsClockOf+"=1")
	c.ExtraFiles = []*os.File{theirs}
	c.SysProcAttr = &unix.SysProcAttr{Ptrace: true, Pdeathsig: unix.SIGKILL}
	d := launchCommand(t, c, socket, func() error {
		err := c.Start()
		c.Path = program // whose verbs are called later
		if err != nil {
			return err
		}
		return errors.Join(theirs.Close(), hideClockPage(c.Process.Pid))
	})
	oob := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(ends[0], make([]byte, 1), oob, unix.MSG_CMSG_CLOEXEC)
	if err != nil || n == 0 {
		t.Fatalf("%s did not begin: %v; it says %s", program, err, d.log.String())
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil {
		t.Fatal(err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() { failed <- w.answer(fds[0]) }()
	t.Cleanup(func() {
		d.Process.Kill()
		<-d.done
		if err := <-failed; err != nil {
			t.Error("its wall clock:", err)
		}
	})
	return d
}

// hideClockPage waits until a process that has just been started, and is traced
// by this thread, becomes another program, takes the address of the page of
// clocks out of what the kernel gives the program at its start (getauxval(3)),
// and lets it go.
func hideClockPage(pid int) error {
	var status unix.WaitStatus
	wait := func() error {
		for {
			if _, err := unix.Wait4(pid, &status, 0, nil); !errors.Is(err, unix.EINTR) {
				return err
			}
		}
	}
	// The first stop is that of the helper, which begins.
	if err := wait(); err != nil || !status.Stopped() {
		return fmt.Errorf("it does not stop at its start: %v, %#x", err, status)
	}
	if err := unix.PtraceSetOptions(pid, unix.PTRACE_O_TRACEEXEC); err != nil {
		return err
	}
	for signal := 0; ; {
		if err := unix.PtraceCont(pid, signal); err != nil {
			return err
		}
		if err := wait(); err != nil || !status.Stopped() {
			return fmt.Errorf("it ended before it became the program: %v, %#x", err, status)
		}
		if status.TrapCause() == unix.PTRACE_EVENT_EXEC {
			break
		}
		signal = int(status.StopSignal())
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return err
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	var at int64 // where the stack begins: the 28th field, the 26th after the name
	if _, err := fmt.Sscan(fields[25], &at); err != nil {
		return err
	}
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer memory.Close()
	word := func() (v uint64) {
		b := make([]byte, 8)
		if _, e := memory.ReadAt(b, at); e != nil {
			err = e
		}
		at += 8
		return binary.NativeEndian.Uint64(b)
	}
	at += 8 * int64(word()) // argc, and the arguments
	for range 2 {           // their end, and the environment
		for word() != 0 && err == nil {
		}
	}
	const clockPage, ignore = 33, 1 // AT_SYSINFO_EHDR, AT_IGNORE
	for kind := word(); kind != 0 && err == nil; kind = word() {
		if kind == clockPage {
			_, err = memory.WriteAt(binary.NativeEndian.AppendUint64(nil, ignore), at-8)
		}
		at += 8
	}
	return errors.Join(err, unix.PtraceDetach(pid))
}

// What the kernel asks and is answered (linux/seccomp.h).
type clockRead struct {
	id    uint64
	pid   uint32
	flags uint32
	nr    int32
	arch  uint32
	ip    uint64
	args  [6]uint64
}

type clockAnswer struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

// answer gives the time until no process is left that could ask.
func (w *wallClock) answer(fd int) error {
	defer unix.Close(fd)
	for {
		events := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if _, err := unix.Poll(events, -1); errors.Is(err, unix.EINTR) {
			continue
		} else if err != nil {
			return err
		}
		if events[0].Revents&unix.POLLIN == 0 {
			return nil // POLLHUP
		}
		var q clockRead
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&q))); errno == unix.ENOENT || errno == unix.EINTR {
			continue // it was killed
		} else if errno != 0 {
			return errno
		}
		w.read.Add(1)
		a := clockAnswer{id: q.id}
		if err := w.write(int(q.pid), int64(q.args[1])); err != nil {
			a.errno = -int32(unix.EFAULT)
		}
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&a))); errno != 0 && errno != unix.ENOENT {
			return errno
		}
	}
}

// write writes the time to a process.
func (w *wallClock) write(pid int, at int64) error {
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer memory.Close()
	now := w.now()
	b := binary.NativeEndian.AppendUint64(nil, uint64(now.Unix()))
	_, err = memory.WriteAt(binary.NativeEndian.AppendUint64(b, uint64(now.Nanosecond())), at)
	return err
}

func (w *wallClock) now() time.Time { return time.Now().Add(time.Duration(w.offset.Load())) }
