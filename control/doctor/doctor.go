// Package doctor checks the machine and an interface for what a switch or host on AF_XDP
// needs, and says how to fix problems.
package doctor

import (
	"io/fs"
	"net"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"gswitch/control/privilege"
)

// Results of a check.
const (
	OK   = "ok"
	Warn = "warn" // it works, but not as well, or not for all
	Fail = "FAIL" // nothing works until it is fixed
)

// Finding is the result of a check.
type Finding struct {
	Check  string `json:"check"`
	Result string `json:"result"`           // ok, warn, FAIL
	Found  string `json:"found"`            // what was observed
	Why    string `json:"why,omitempty"`    // why it matters; empty if ok
	Remedy string `json:"remedy,omitempty"` // command that fixes it
	Fixed  string `json:"fixed,omitempty"`  // what --fix did
}

// System is the machine that is checked.
type System struct {
	Files    fs.FS // the root, with proc, sys and run
	CPUs     int
	Root     bool
	Socket   func() error                            // opens an AF_XDP socket
	Memlock  func() (limit uint64, err error)        // RLIMIT_MEMLOCK; ^0 is unlimited
	Missing  func() []privilege.Capability           // of those that are used
	Landlock func() (abi int, err error)             // ABI version of the kernel's Landlock
	Clock    func() (read time.Duration)             // time to read the clock
	Listens  func(socket string) (somebodyDoes bool) // tries to connect
}

// Here returns the machine that the program runs on.
func Here() *System {
	return &System{
		Files: os.DirFS("/"), CPUs: runtime.NumCPU(), Root: os.Geteuid() == 0,
		Socket: func() error {
			fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
			if err == nil {
				err = unix.Close(fd)
			}
			return err
		},
		Memlock: func() (uint64, error) {
			var l unix.Rlimit
			err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &l)
			return l.Cur, err
		},
		Missing: privilege.Missing, Landlock: privilege.Landlock,
		Clock: clockCost,
		Listens: func(path string) bool {
			c, err := net.DialTimeout("unix", path, time.Second)
			if err == nil {
				c.Close()
			}
			return err == nil
		},
	}
}

// clockCost returns the lowest of several averages, so that load on the machine does not
// matter.
func clockCost() time.Duration {
	best := time.Duration(1 << 62)
	for range 20 {
		const reads = 1000
		start := time.Now()
		for range reads {
			_ = time.Since(start)
		}
		best = min(best, time.Since(start)/reads)
	}
	return best
}

// Machine checks everything but interfaces.
func (s *System) Machine() []Finding {
	found := append([]Finding{s.kernel(), s.socket()}, s.capabilities()...)
	return append(found, s.files(), s.memlock(), s.jit(), s.container(), s.bpffs(), s.hugePages(),
		s.cpus(), s.isolated(), s.frequency(), s.siblings(), s.cgroup(), s.clock(), s.leftovers())
}
