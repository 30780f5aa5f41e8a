package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/gswitch/gswitch/control"
	"github.com/gswitch/gswitch/control/cli"
)

// check is one thing that the machine needs or should have.
type check struct {
	name   string
	ok     bool
	needed bool
	what   string // what was found, and what to do
}

// finding is a check as JSON.
type finding struct {
	Check  string `json:"check"`
	Result string `json:"result"` // ok, warn, FAIL
	Found  string `json:"found"`
}

func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "doctor",
		Short:   "Check whether this machine can run a switch",
		Long:    "Check kernel, privileges and limits. Exits with 1 if something that is needed is missing.",
		Example: "  gswitch doctor",
		Args:    cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			failed := false
			t := cli.NewTable("CHECK", "RESULT", "FOUND")
			var found []finding
			for _, k := range checks() {
				result := "ok"
				switch {
				case !k.ok && k.needed:
					result, failed = "FAIL", true
				case !k.ok:
					result = "warn"
				}
				t.Row(k.name, result, k.what)
				found = append(found, finding{k.name, result, k.what})
			}
			if !a.json {
				t.Print(c.OutOrStdout())
			} else if err := cli.PrintValue(c.OutOrStdout(), map[string][]finding{"checks": found}); err != nil {
				return err
			}
			if failed {
				return errors.New("a switch cannot run here; see FAIL above")
			}
			return nil
		},
	}
}

func checks() []check {
	return []check{kernelCheck(), socketCheck(), capabilityCheck(), memlockCheck(), jitCheck(), hugePagesCheck(), cpuCheck()}
}

// 5.11 has all that is used: BPF links for XDP (5.9), sharing a UMEM between
// devices (5.10), preferred busy polling (5.11).
const (
	wantMajor = 5
	wantMinor = 11
)

func kernelCheck() check {
	release := strings.TrimSpace(readFile("/proc/sys/kernel/osrelease"))
	major, minor := 0, 0
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err != nil {
		return check{"kernel", false, true, "unknown release " + release}
	}
	ok := major > wantMajor || major == wantMajor && minor >= wantMinor
	return check{"kernel", ok, true, fmt.Sprintf("%s (%d.%d or later is needed)", release, wantMajor, wantMinor)}
}

func socketCheck() check {
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW, 0)
	if err == nil {
		unix.Close(fd)
		return check{"AF_XDP", true, true, "sockets can be made"}
	}
	if errors.Is(err, unix.EAFNOSUPPORT) {
		return check{"AF_XDP", false, true, "the kernel was built without CONFIG_XDP_SOCKETS"}
	}
	return check{"AF_XDP", false, true, err.Error()}
}

func capabilityCheck() check {
	needed, useful := control.MissingCapabilities()
	k := check{name: "capabilities", ok: len(needed)+len(useful) == 0, needed: len(needed) > 0, what: "all there"}
	if !k.ok {
		var names []string
		for _, c := range append(needed, useful...) {
			names = append(names, c.Name)
		}
		k.what = "missing " + strings.Join(names, ", ")
		if len(needed) == 0 {
			k.what += "; CAP_SYS_ADMIN is for ports in other network namespaces, CAP_IPC_LOCK for packet memory beyond ulimit -l"
		}
	}
	return k
}

func memlockCheck() check {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &l); err != nil {
		return check{"memlock", false, false, err.Error()}
	}
	if l.Cur == unix.RLIM_INFINITY {
		return check{"memlock", true, false, "unlimited"}
	}
	const want = 256 << 20
	return check{"memlock", l.Cur >= want || os.Geteuid() == 0, false, fmt.Sprintf("%s; raise it with ulimit -l unlimited where packet memory cannot be had (root needs not)", size(l.Cur))}
}

func jitCheck() check {
	v := strings.TrimSpace(readFile("/proc/sys/net/core/bpf_jit_enable"))
	switch v {
	case "":
		return check{"BPF JIT", true, false, "always on"}
	case "0":
		return check{"BPF JIT", false, false, "off: sysctl net.core.bpf_jit_enable=1"}
	}
	return check{"BPF JIT", true, false, "on"}
}

func hugePagesCheck() check {
	n := strings.TrimSpace(readFile("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages"))
	if n == "" || n == "0" {
		return check{"huge pages", false, false, "none free: sysctl vm.nr_hugepages=64 may save a few per cent"}
	}
	return check{"huge pages", true, false, n + " of 2 MiB free"}
}

func cpuCheck() check {
	n := runtime.NumCPU()
	return check{"CPUs", n > 1, false, fmt.Sprintf("%d; a spinning worker takes one for itself", n)}
}

func readFile(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(b)
}
