package vnet

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// hugePages asks the kernel to hold the memory of the process in pages of 2 MB
// from now on. A network of hundreds of nodes walks through tens of megabytes
// in no order, so that most steps miss the TLB, and small pages lie in the
// last cache as chance has it. It is a request: where the kernel does not know
// it (MADV_COLLAPSE is of Linux 6.1) or has no such pages, all goes on as
// before.
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
		for ; from < to; from += hugePage { // one by one: the first that is empty would end it
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, from, hugePage, unix.MADV_COLLAPSE)
		}
	}
}

const hugePage = 2 << 20

// anonymous returns the whole huge pages of a line of /proc/self/maps, if it
// is about memory that belongs to no file and is no thread's stack (proc(5)).
func anonymous(line string) (from, to uintptr, ok bool) {
	var perm, offset, device, inode, name string
	n, _ := fmt.Sscanf(line, "%x-%x %s %s %s %s %s", &from, &to, &perm, &offset, &device, &inode, &name)
	if n < 6 || perm != "rw-p" || inode != "0" || name != "" && !strings.HasPrefix(name, "[anon:") {
		return 0, 0, false
	}
	from, to = (from+hugePage-1)&^(hugePage-1), to&^(hugePage-1)
	return from, to, from < to
}
