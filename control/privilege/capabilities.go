// Package privilege manages what a daemon may do on its machine: which capabilities it
// uses, whether it has them, and dropping the others once it runs.
package privilege

import (
	"os"
	"strconv"
	"strings"

	"kernel.org/pub/linux/libs/security/libcap/cap"
)

// Capability is a capability (capabilities(7)) that a daemon uses.
type Capability struct {
	Name string
	// For is its use.
	For string
	// Needed: no port over an interface opens without it. The others are for some
	// configurations.
	Needed bool
	value  cap.Value
}

// Namespaces is needed for ports in other network namespaces.
var Namespaces = Capability{"CAP_SYS_ADMIN", "entering the other network namespaces that a configuration names", false, cap.SYS_ADMIN}

// Used lists all capabilities that a daemon may use, in the order in which they are
// checked.
var Used = []Capability{
	{"CAP_NET_ADMIN", "setting interfaces up, their modes, and attaching the XDP program to them", true, cap.NET_ADMIN},
	{"CAP_NET_RAW", "AF_XDP sockets, and packet sockets of captures", true, cap.NET_RAW},
	{"CAP_BPF", "loading the XDP program and its maps", true, cap.BPF},
	{"CAP_PERFMON", "the XDP program without the kernel's guards against speculation, which cost time for each frame", false, cap.PERFMON},
	{"CAP_IPC_LOCK", "packet memory beyond the limit of locked memory (ulimit -l)", false, cap.IPC_LOCK},
	Namespaces,
}

// Missing returns those of Used that this process lacks.
func Missing() (missing []Capability) {
	have, err := effective()
	if err != nil {
		return nil // no /proc: the system calls will fail
	}
	has := func(v cap.Value) bool { return have>>v&1 == 1 }
	for _, c := range Used {
		// CAP_SYS_ADMIN includes CAP_BPF and CAP_PERFMON, which Linux 5.8 split off from
		// it.
		if !has(c.value) && !((c.value == cap.BPF || c.value == cap.PERFMON) && has(cap.SYS_ADMIN)) {
			missing = append(missing, c)
		}
	}
	return missing
}

// effective returns the effective capabilities of this process as a bitmap.
func effective() (uint64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if hex, ok := strings.CutPrefix(line, "CapEff:"); ok {
			return strconv.ParseUint(strings.TrimSpace(hex), 16, 64)
		}
	}
	return 0, os.ErrNotExist
}
