package vnet

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// hugePages asks the kernel to back the memory of the process with 2 MB pages. A network
// of hundreds of nodes accesses tens of megabytes at random, so most accesses miss the
// TLB, and the placement of small pages in the last-level cache is a matter of chance. It
// is only a request: it has no effect if the kernel does not support it (MADV_COLLAPSE
// needs Linux 6.1) or has no such pages.
func hugePages() {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return
	}
	for line := range strings.Lines(string(maps)) {
		from, to, ok := anonymous(line)
		if !ok {
			continue
		}
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_HUGEPAGE)
		for ; from < to; from += hugePage { // one by one, since the call ends at the first empty page
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, from, hugePage, unix.MADV_COLLAPSE)
		}
	}
}

const hugePage = 2 << 20

// anonymous parses a line of /proc/self/maps (proc(5)) and returns the whole huge pages
// within it, if the memory belongs to no file and is no thread's stack.
func anonymous(line string) (from, to uintptr, ok bool) {
	var perm, offset, device, inode, name string
	n, _ := fmt.Sscanf(line, "%x-%x %s %s %s %s %s", &from, &to, &perm, &offset, &device, &inode, &name)
	if n < 6 || perm != "rw-p" || inode != "0" || name != "" && !strings.HasPrefix(name, "[anon:") {
		return 0, 0, false
	}
	from, to = (from+hugePage-1)&^(hugePage-1), to&^(hugePage-1)
	return from, to, from < to
}
