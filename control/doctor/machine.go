package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"gswitch/control/privilege"
)

func (s *System) read(path string) string {
	b, err := fs.ReadFile(s.Files, path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func ok(check, found string, args ...any) Finding {
	return Finding{Check: check, Result: OK, Found: fmt.Sprintf(found, args...)}
}

// features lists the kernel features that are used, and the Linux release that introduced
// each.
var features = []struct {
	major, minor int
	name         string
	needed       bool
}{
	{5, 4, "need_wakeup", true}, {5, 9, "XDP by BPF links", true}, {5, 10, "one UMEM for several devices", true},
	{5, 11, "preferred busy polling", true}, {6, 6, "frames in several chunks", false},
}

func (s *System) kernel() Finding {
	release := s.read("proc/sys/kernel/osrelease")
	f := Finding{Check: "kernel", Result: Fail, Found: release, Why: "AF_XDP is used in a form that came with Linux 5.11", Remedy: "boot Linux 5.11 or later"}
	major, minor := 0, 0
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err != nil {
		f.Found = fmt.Sprintf("release %q cannot be read", release)
		return f
	}
	var missing []string
	f.Result = OK
	for _, x := range features {
		if major > x.major || major == x.major && minor >= x.minor {
			continue
		}
		missing = append(missing, fmt.Sprintf("%s (%d.%d)", x.name, x.major, x.minor))
		if x.needed {
			f.Result = Fail
		}
	}
	switch {
	case f.Result == Fail:
		f.Found += " lacks " + strings.Join(missing, ", ")
	case missing != nil:
		f.Result, f.Found = Warn, f.Found+" lacks "+strings.Join(missing, ", ")
		f.Why, f.Remedy = "frames larger than a chunk (chunk: 4096 holds an MTU of 3500) need it", "keep to an MTU that fits a chunk, or boot a later Linux"
	default:
		return ok("kernel", "%s: AF_XDP with need_wakeup, busy polling, shared UMEM, frames in several chunks; BTF is not needed", release)
	}
	return f
}

func (s *System) socket() Finding {
	err := s.Socket()
	switch {
	case err == nil:
		return ok("AF_XDP", "sockets can be made")
	case errors.Is(err, unix.EAFNOSUPPORT):
		return Finding{"AF_XDP", Fail, "the kernel was built without CONFIG_XDP_SOCKETS", "all frames pass through such sockets", "boot a kernel with CONFIG_XDP_SOCKETS=y", ""}
	case errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES):
		return Finding{"AF_XDP", Fail, "sockets may not be made: " + err.Error(), "it takes CAP_NET_RAW, and a sandbox may refuse the call besides", "run as root; in a container add --cap-add NET_RAW and a seccomp profile that allows AF_XDP", ""}
	}
	return Finding{"AF_XDP", Fail, err.Error(), "all frames pass through such sockets", "", ""}
}

// capabilities returns a finding for each capability: what it is for, and whether the
// process has it.
func (s *System) capabilities() (v []Finding) {
	missing := s.Missing()
	for _, c := range privilege.Used {
		if !slices.Contains(missing, c) {
			v = append(v, ok(c.Name, "there, for %s", c.For))
			continue
		}
		f := Finding{Check: c.Name, Result: Warn, Found: "missing; it is for " + c.For, Why: "some configurations need it", Remedy: "add it if the configuration does so"}
		if c.Needed {
			f.Result, f.Why = Fail, "without it no interface can be opened"
			f.Remedy = "run as root, or by deploy/systemd/gswitch@.service; in a container: --cap-add NET_ADMIN --cap-add NET_RAW --cap-add BPF"
		}
		v = append(v, f)
	}
	return v
}

// files reports whether daemons can restrict their own access to files.
func (s *System) files() Finding {
	const why = "whoever takes over a daemon that root started writes root's files, and so becomes root"
	abi, err := s.Landlock()
	switch {
	case errors.Is(err, unix.ENOSYS):
		return Finding{"Landlock", Warn, "the kernel was built without it", why, "boot a kernel with CONFIG_SECURITY_LANDLOCK=y, or run daemons as a user of their own (deploy/systemd)", ""}
	case errors.Is(err, unix.EOPNOTSUPP):
		return Finding{"Landlock", Warn, "left out when the machine was booted", why, "boot with lsm=landlock,... (before those of /sys/kernel/security/lsm), or run daemons as a user of their own (deploy/systemd)", ""}
	case err != nil:
		return Finding{"Landlock", Warn, "refused: " + err.Error(), why, "let what runs this (a container's seccomp profile) allow landlock_create_ruleset, landlock_add_rule and landlock_restrict_self", ""}
	case abi < privilege.TruncateABI:
		return Finding{"Landlock", Warn, fmt.Sprintf("version %d, which leaves truncation open", abi), "whoever takes over a daemon that root started can empty root's files", "boot Linux 6.2 or later", ""}
	}
	return ok("Landlock", "version %d: daemons close files that they do not write, unless --keep-privileges", abi)
}

func (s *System) memlock() Finding {
	limit, err := s.Memlock()
	lacks := slices.ContainsFunc(s.Missing(), func(c privilege.Capability) bool { return c.Name == "CAP_IPC_LOCK" })
	const want = 256 << 20
	switch {
	case err != nil:
		return Finding{"locked memory", Warn, err.Error(), "packet memory is locked", "", ""}
	case limit == ^uint64(0):
		return ok("locked memory", "unlimited")
	case limit >= want || !lacks:
		return ok("locked memory", "limit %d MiB; with CAP_IPC_LOCK it does not count", limit>>20)
	}
	return Finding{"locked memory", Warn, fmt.Sprintf("limit %d KiB", limit>>10), "packet memory (64 MiB by default) is locked: opening a port says \"no buffer space available\"",
		"ulimit -l unlimited, or LimitMEMLOCK=infinity in the unit", ""}
}

func (s *System) jit() Finding {
	if s.read("proc/sys/net/core/bpf_jit_enable") == "0" {
		return Finding{"BPF JIT", Warn, "off", "the XDP program is interpreted for each frame", "sysctl net.core.bpf_jit_enable=1", ""}
	}
	return ok("BPF JIT", "on")
}

func (s *System) container() Finding {
	in := ""
	for _, mark := range []string{".dockerenv", "run/.containerenv"} {
		if _, err := fs.Stat(s.Files, mark); err == nil {
			in = "a container"
		}
	}
	fields := strings.Fields(s.read("proc/self/uid_map"))
	if len(fields) == 3 && (fields[0] != "0" || fields[1] != "0" || fields[2] != "4294967295") {
		return Finding{"container", Warn, "in a user namespace", "XDP programs and AF_XDP on a host's interfaces are refused there (EPERM), whatever capabilities it shows", "run it in the initial user namespace: a rootful container, or the host", ""}
	}
	if in != "" {
		return Finding{"container", Warn, "in " + in, "interfaces of the host are seen only in its network namespace, and hugepages and CPUs are what the container was given",
			"docker run --network host --privileged, or move an interface into the container", ""}
	}
	return ok("container", "none: in the initial user namespace")
}

// bpffs is listed for completeness: nothing is pinned there.
func (s *System) bpffs() Finding {
	for line := range strings.Lines(s.read("proc/mounts")) {
		if f := strings.Fields(line); len(f) > 2 && f[2] == "bpf" {
			return ok("bpffs", "mounted at %s; not needed, programs go with the process", f[1])
		}
	}
	return ok("bpffs", "not mounted, not needed: programs go with the process")
}

func (s *System) hugePages() Finding {
	n := s.read("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages")
	if n == "" || n == "0" {
		return Finding{"huge pages", Warn, "none of 2 MiB free", "packet memory in small pages misses the TLB more: some per cent of the rate", "sysctl vm.nr_hugepages=64", ""}
	}
	return ok("huge pages", "%s of 2 MiB free", n)
}

func (s *System) cpus() Finding {
	if s.CPUs == 1 {
		return Finding{"CPUs", Warn, "1", "a worker that spins takes all of it: traffic sources, the kernel's softirq and the control plane wait", "poll: sleep for the workers, or give the machine a second CPU", ""}
	}
	return ok("CPUs", "%d; a spinning worker takes one for itself", s.CPUs)
}

func (s *System) isolated() Finding {
	if v := s.read("sys/devices/system/cpu/isolated"); v != "" {
		return ok("CPU isolation", "%s isolated: pin workers there (workers: [{cpu: N}])", v)
	}
	return Finding{"CPU isolation", Warn, "no isolated CPUs", "other tasks take the worker's CPU for milliseconds at a time, which shows as lateness and full receive rings", "boot with isolcpus=N nohz_full=N and pin the worker there, where lateness counts", ""}
}

func (s *System) frequency() Finding {
	switch v := s.read("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"); v {
	case "":
		return ok("CPU frequency", "not the kernel's to set (virtual machine, or fixed)")
	case "performance":
		return ok("CPU frequency", "governor performance")
	default:
		return Finding{"CPU frequency", Warn, "governor " + v, "a worker that slept begins slowly: the first frames are late", "cpupower frequency-set -g performance", ""}
	}
}

func (s *System) siblings() Finding {
	if s.read("sys/devices/system/cpu/smt/active") == "1" {
		return Finding{"SMT", Warn, "on", "what runs on the sibling of a worker's CPU takes up to half of its speed", "pin workers to different cores (lscpu -e), and leave the siblings idle", ""}
	}
	return ok("SMT", "off, or none")
}

// cgroup checks the limits of both cgroup versions (cgroups(7)).
func (s *System) cgroup() Finding {
	limit := func(quota, period string) (float64, bool) {
		q, err1 := strconv.ParseFloat(quota, 64)
		p, err2 := strconv.ParseFloat(period, 64)
		if err1 != nil || err2 != nil || q <= 0 || p <= 0 {
			return 0, false
		}
		return q / p, true
	}
	group := ""
	for line := range strings.Lines(s.read("proc/self/cgroup")) {
		if p, v2 := strings.CutPrefix(strings.TrimSpace(line), "0::"); v2 {
			group = strings.Trim(p, "/")
		}
	}
	for path := group; ; {
		if f := strings.Fields(s.read(strings.TrimSuffix("sys/fs/cgroup/"+path, "/") + "/cpu.max")); len(f) == 2 {
			if n, has := limit(f[0], f[1]); has {
				return quota(n)
			}
		}
		if path == "" {
			break
		}
		path = path[:max(0, strings.LastIndexByte(path, '/'))]
	}
	if n, has := limit(s.read("sys/fs/cgroup/cpu/cpu.cfs_quota_us"), s.read("sys/fs/cgroup/cpu/cpu.cfs_period_us")); has {
		return quota(n)
	}
	return ok("cgroup CPU limit", "none")
}

func quota(cpus float64) Finding {
	return Finding{"cgroup CPU limit", Warn, fmt.Sprintf("%.2g CPUs", cpus), "when it is used up all threads stand still to the end of the period, up to 100 ms: receive rings overflow meanwhile",
		"systemctl set-property UNIT CPUQuota=, or docker update --cpus 0", ""}
}

func (s *System) clock() Finding {
	source, cost := s.read("sys/devices/system/clocksource/clocksource0/current_clocksource"), s.Clock()
	// A worker reads it once per loop, and a loop takes some microseconds.
	if cost > 200*time.Nanosecond {
		return Finding{"clock", Warn, fmt.Sprintf("%s, %d ns a read", source, cost.Nanoseconds()), "a worker reads it once a loop, and the instants of frames are no better than it",
			"echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource, if the kernel lists it as available", ""}
	}
	return ok("clock", "%s, %d ns a read", source, cost.Nanoseconds())
}

// leftovers reports sockets of daemons that no longer run.
func (s *System) leftovers() Finding {
	var stale []string
	for _, pattern := range []string{"run/gswitch/*.sock", "run/ghost/*.sock", "run/gfabric/*/*.sock"} {
		paths, err := fs.Glob(s.Files, pattern)
		if err != nil {
			continue
		}
		for _, p := range paths {
			if !s.Listens("/" + p) {
				stale = append(stale, "/"+p)
			}
		}
	}
	if stale == nil {
		return ok("left-overs", "none: every control socket has its daemon")
	}
	return Finding{"left-overs", Warn, "no process listens at " + strings.Join(stale, ", "), "a daemon was killed; what it changed on interfaces may be as it left it (the next start on them puts that right)",
		"gfabric down for fabrics; otherwise start the daemon again, or rm the file", ""}
}
