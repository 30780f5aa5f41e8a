package privilege

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/sys/unix"
)

// allowed lists the system calls that a daemon may make once it runs: those of Go's
// runtime, of files and sockets, and of AF_XDP. It excludes those that run another
// program (execve), access other processes (ptrace, process_vm_readv, pidfd_getfd, kill),
// change the machine (mount, reboot, modules, clocks, swap, names), keys, io_uring, those
// that change the process's identity, and those that change the owner or mode of files
// (chmod, chown, setxattr), which Landlock does not cover. System calls that an
// architecture does not have are skipped.
const allowed = `
	brk madvise mincore mlock mlock2 mmap mprotect mremap msync munlock munmap membarrier memfd_create
	exit exit_group futex get_robust_list set_robust_list set_tid_address rseq gettid getpid getppid getpgid getpgrp
	getsid sched_getaffinity sched_getparam sched_getscheduler sched_get_priority_max
	sched_get_priority_min sched_yield getpriority getcpu arch_prctl prctl restart_syscall
	rt_sigaction rt_sigpending rt_sigprocmask rt_sigreturn rt_sigsuspend rt_sigtimedwait sigaltstack pause
	clock_getres clock_gettime clock_nanosleep gettimeofday nanosleep time times getitimer setitimer
	timer_create timer_delete timer_getoverrun timer_gettime timer_settime timerfd_create timerfd_gettime timerfd_settime
	access chdir close close_range copy_file_range dup dup2 dup3 faccessat faccessat2 fadvise64 fallocate fchdir
	fcntl fdatasync flock fstat fstatfs fsync ftruncate getcwd getdents getdents64 link
	linkat lseek lstat mkdir mkdirat newfstatat pipe pipe2 pread64 preadv preadv2 pwrite64 pwritev
	pwritev2 read readahead readlink readlinkat readv rename renameat renameat2 rmdir sendfile splice stat statfs statx
	symlink symlinkat sync_file_range tee truncate umask unlink unlinkat utimensat write writev
	inotify_add_watch inotify_init1 inotify_rm_watch
	epoll_create epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd2 poll ppoll pselect6 select
	accept accept4 bind connect getpeername getsockname getsockopt listen recvfrom recvmmsg recvmsg sendmmsg sendmsg sendto
	setsockopt shutdown
	capget getegid geteuid getgid getgroups getrandom getresgid getresuid getrlimit getrusage getuid
	sysinfo uname`

// bpfCommands are the allowed commands of bpf (enum bpf_cmd in the kernel's linux/bpf.h):
// those that create and use the process's own maps and programs. Excluded are those that
// attach to tracepoints (17), open objects of others by number (12 to 14, 19, 30), or
// query their tasks (20).
var bpfCommands = []uint64{
	0, 1, 2, 3, 4, // BPF_MAP_CREATE, _LOOKUP_ELEM, _UPDATE_ELEM, _DELETE_ELEM, _GET_NEXT_KEY
	5,      // BPF_PROG_LOAD
	10,     // BPF_PROG_TEST_RUN
	15, 16, // BPF_OBJ_GET_INFO_BY_FD, BPF_PROG_QUERY
	18,     // BPF_BTF_LOAD
	22,     // BPF_MAP_FREEZE
	28, 29, // BPF_LINK_CREATE, BPF_LINK_UPDATE
	34, 35, // BPF_LINK_DETACH, BPF_PROG_BIND_MAP
}

// controls are the allowed commands of ioctl: properties of a terminal (but not TIOCSTI,
// which injects input), and those for interfaces, TAP devices and time stamps.
var controls = []uint64{
	unix.TCGETS, unix.TIOCGWINSZ,
	unix.SIOCETHTOOL, unix.SIOCGIFINDEX, unix.SIOCGHWTSTAMP, unix.SIOCSHWTSTAMP,
	unix.TUNSETIFF, unix.TUNSETCARRIER,
}

const (
	// otherNamespaces are the flags of clone that create namespaces: in its own user
	// namespace a process has all capabilities.
	otherNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
	// asOwner are the mode bits with which a file is executed as its owner or group.
	asOwner = unix.S_ISUID | unix.S_ISGID
)

// is allows a call if its arguments satisfy the conditions.
func is(name string, c ...seccomp.Condition) seccomp.NameWithConditions {
	return seccomp.NameWithConditions{Name: name, Conditions: c}
}

func equal(argument uint32, value uint64) seccomp.Condition {
	return seccomp.Condition{Argument: argument, Operation: seccomp.Equal, Value: value}
}

func without(argument uint32, bits uint64) seccomp.Condition {
	return seccomp.Condition{Argument: argument, Operation: seccomp.BitsNotSet, Value: bits}
}

// some returns the calls that are allowed with certain arguments only.
func some(n *Need, namespaces bool) []seccomp.NameWithConditions {
	pid := uint64(os.Getpid())
	calls := []seccomp.NameWithConditions{
		// Go's runtime interrupts threads of this process.
		is("tgkill", equal(0, pid)),
		is("clone", without(0, otherNamespaces)),
		is("open", without(2, asOwner)), is("openat", without(3, asOwner)),
		// A process may change its own limits and priority, but not those of its user's
		// other processes.
		is("prlimit64", equal(0, 0)), is("prlimit64", equal(0, pid)),
		is("sched_setaffinity", equal(0, 0)), is("setpriority", equal(0, unix.PRIO_PROCESS), equal(1, 0)),
		is("socket", equal(0, unix.AF_INET)), is("socket", equal(0, unix.AF_INET6)),
		is("socket", equal(0, unix.AF_NETLINK), equal(2, unix.NETLINK_ROUTE)),
	}
	if n.Interfaces {
		calls = append(calls, is("socket", equal(0, unix.AF_XDP)), is("socket", equal(0, unix.AF_PACKET)))
	}
	if n.Sockets {
		calls = append(calls, is("socket", equal(0, unix.AF_UNIX)))
	}
	if namespaces {
		calls = append(calls, is("setns", equal(1, unix.CLONE_NEWNET)))
	}
	for _, c := range bpfCommands {
		calls = append(calls, is("bpf", equal(0, c)))
	}
	for _, c := range controls {
		calls = append(calls, is("ioctl", equal(1, c)))
	}
	return calls
}

// elsewhere lists calls whose arguments a filter cannot see, since they are in memory.
// Such a call fails as if it did not exist, and programs fall back to the older ones:
// clone and openat.
var elsewhere = []string{"clone3", "openat2"}

// confine restricts all threads to the allowed system calls: others fail with EPERM.
// namespaces allows setns. If no filter can be installed it returns why.
func confine(n *Need, namespaces bool) (unfiltered string, err error) {
	here, err := arch.GetInfo("")
	if err != nil || len(here.SyscallNames) == 0 {
		return "the numbers of this architecture's calls are not known", nil
	}
	known := func(name string) bool {
		_, known := here.SyscallNames[name]
		return known
	}
	names := slices.DeleteFunc(strings.Fields(allowed), func(name string) bool { return !known(name) })
	calls := slices.DeleteFunc(some(n, namespaces), func(c seccomp.NameWithConditions) bool { return !known(c.Name) })
	err = seccomp.LoadFilter(seccomp.Filter{NoNewPrivs: true, Flag: seccomp.FilterFlagTSync, Policy: seccomp.Policy{
		DefaultAction: seccomp.ActionErrno, // EPERM
		Syscalls: []seccomp.SyscallGroup{
			{Names: names, Action: seccomp.ActionAllow},
			{NamesWithCondtions: calls, Action: seccomp.ActionAllow},
			{Names: slices.DeleteFunc(slices.Clone(elsewhere), func(name string) bool { return !known(name) }), Action: unix.SECCOMP_RET_ERRNO | seccomp.Action(unix.ENOSYS)},
		},
	}})
	return unfilteredBy(err)
}

// unfilteredBy explains the kernel's response to a filter.
func unfilteredBy(err error) (unfiltered string, _ error) {
	switch {
	case errors.Is(err, syscall.ENOSYS) || errors.Is(err, syscall.EINVAL) && !seccomp.Supported():
		return "the kernel has no filters of system calls", nil
	case errors.Is(err, syscall.EPERM):
		return "what runs this process, such as a container, lets it have none", nil
	case err != nil:
		return "", fmt.Errorf("system calls: %w", err)
	}
	return "", nil
}
