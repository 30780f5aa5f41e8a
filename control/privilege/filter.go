package privilege

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
)

// allowed are the system calls that a daemon may make once it runs: those of
// Go's runtime, of files and sockets, and of AF_XDP. Left out is what runs
// another program (execve), sees into other processes (ptrace,
// process_vm_readv, pidfd_getfd, kill), changes the machine (mount, reboot,
// modules, clocks, swap, names), keys, io_uring, and what changes who one is.
// Names of system calls that an architecture does not have are passed over.
const allowed = `
	brk madvise mincore mlock mlock2 mmap mprotect mremap msync munlock munmap membarrier memfd_create
	clone clone3 exit exit_group futex get_robust_list set_robust_list set_tid_address rseq gettid getpid getppid getpgid getpgrp
	getsid sched_getaffinity sched_setaffinity sched_getparam sched_getscheduler sched_get_priority_max
	sched_get_priority_min sched_yield getpriority setpriority getcpu arch_prctl prctl restart_syscall
	rt_sigaction rt_sigpending rt_sigprocmask rt_sigreturn rt_sigsuspend rt_sigtimedwait sigaltstack pause
	clock_getres clock_gettime clock_nanosleep gettimeofday nanosleep time times getitimer setitimer
	timer_create timer_delete timer_getoverrun timer_gettime timer_settime timerfd_create timerfd_gettime timerfd_settime
	access chdir chmod close close_range copy_file_range creat dup dup2 dup3 faccessat faccessat2 fadvise64 fallocate fchdir
	fchmod fchmodat fchmodat2 fcntl fdatasync flock fstat fstatfs fsync ftruncate getcwd getdents getdents64 ioctl link
	linkat lseek lstat mkdir mkdirat newfstatat open openat openat2 pipe pipe2 pread64 preadv preadv2 pwrite64 pwritev
	pwritev2 read readahead readlink readlinkat readv rename renameat renameat2 rmdir sendfile splice stat statfs statx
	symlink symlinkat sync_file_range tee truncate umask unlink unlinkat utimensat write writev
	inotify_add_watch inotify_init1 inotify_rm_watch
	epoll_create epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd2 poll ppoll pselect6 select
	accept accept4 bind connect getpeername getsockname getsockopt listen recvfrom recvmmsg recvmsg sendmmsg sendmsg sendto
	setsockopt shutdown socket socketpair
	capget getegid geteuid getgid getgroups getrandom getresgid getresuid getrlimit getrusage getuid prlimit64 setrlimit
	sysinfo uname`

// Of two calls only some arguments are allowed: Go's runtime interrupts threads of this
// process by tgkill, and of bpf there are left the commands that make and use maps and
// programs of one's own (enum bpf_cmd in the kernel's linux/bpf.h): none that attaches to tracepoints (17), opens
// what others made by its number (12 to 14, 19, 30), or asks about their tasks (20).
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

// confine lets all threads make no other system calls than those that are
// allowed: others fail with EPERM. Namespaces allows setns. Where there can be no filter
// it returns why.
func confine(namespaces bool) (unfiltered string, err error) {
	here, err := arch.GetInfo("")
	if err != nil || len(here.SyscallNames) == 0 {
		return "the numbers of this architecture's calls are not known", nil
	}
	var names []string
	for name := range strings.FieldsSeq(allowed) {
		if _, known := here.SyscallNames[name]; known {
			names = append(names, name)
		}
	}
	if namespaces {
		names = append(names, "setns")
	}
	first := func(name string, values ...uint64) (v []seccomp.NameWithConditions) {
		for _, x := range values {
			v = append(v, seccomp.NameWithConditions{Name: name, Conditions: []seccomp.Condition{{Argument: 0, Operation: seccomp.Equal, Value: x}}})
		}
		return v
	}
	err = seccomp.LoadFilter(seccomp.Filter{NoNewPrivs: true, Flag: seccomp.FilterFlagTSync, Policy: seccomp.Policy{
		DefaultAction: seccomp.ActionErrno, // EPERM
		Syscalls: []seccomp.SyscallGroup{
			{Names: names, Action: seccomp.ActionAllow},
			{NamesWithCondtions: append(first("tgkill", uint64(os.Getpid())), first("bpf", bpfCommands...)...), Action: seccomp.ActionAllow},
		},
	}})
	return unfilteredBy(err)
}

// unfilteredBy tells what the kernel's answer to a filter means.
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
