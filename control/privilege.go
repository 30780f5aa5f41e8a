package control

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"gswitch/config"
)

// Capability is a privilege of capabilities(7).
type Capability struct {
	Name string
	bit  uint
}

// The capabilities that a daemon with interfaces uses. Numbers from
// linux/capability.h.
var (
	capNetAdmin = Capability{"CAP_NET_ADMIN", 12} // interfaces, attaching XDP
	capNetRaw   = Capability{"CAP_NET_RAW", 13}   // AF_XDP sockets
	capIPCLock  = Capability{"CAP_IPC_LOCK", 14}  // packet memory beyond the memlock limit
	capSysAdmin = Capability{"CAP_SYS_ADMIN", 21} // other network namespaces
	capBPF      = Capability{"CAP_BPF", 39}       // loading the program
)

// MissingCapabilities returns what this process lacks: needed without which no
// port opens, useful which some configurations want.
func MissingCapabilities() (needed, useful []Capability) {
	var have uint64
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return nil, nil // no /proc: the system calls will tell
	}
	for line := range strings.Lines(string(status)) {
		if hex, ok := strings.CutPrefix(line, "CapEff:"); ok {
			if have, err = strconv.ParseUint(strings.TrimSpace(hex), 16, 64); err != nil {
				return nil, nil
			}
		}
	}
	has := func(c Capability) bool { return have>>c.bit&1 == 1 }
	for _, c := range []Capability{capNetAdmin, capNetRaw} {
		if !has(c) {
			needed = append(needed, c)
		}
	}
	// CAP_SYS_ADMIN includes what CAP_BPF took out of it in Linux 5.8.
	if !has(capBPF) && !has(capSysAdmin) {
		needed = append(needed, capBPF)
	}
	for _, c := range []Capability{capSysAdmin, capIPCLock} {
		if !has(c) {
			useful = append(useful, c)
		}
	}
	return needed, useful
}

// privileged says what a configuration needs that this process lacks.
func privileged(c *config.Config) error {
	interfaces, namespaces := false, false
	for i := range c.Switches {
		for j := range c.Switches[i].Ports {
			p := &c.Switches[i].Ports[j]
			interfaces = interfaces || p.Interface != ""
			namespaces = namespaces || p.NetNS != ""
		}
	}
	return Privileged(interfaces, namespaces)
}

// Privileged says what ports over interfaces, and interfaces of other network
// namespaces, need that this process lacks.
func Privileged(interfaces, namespaces bool) error {
	needed, useful := MissingCapabilities()
	var names []string
	for _, cap := range needed {
		names = append(names, cap.Name)
	}
	for _, cap := range useful {
		if cap == capSysAdmin && namespaces {
			names = append(names, cap.Name)
		}
	}
	if !interfaces || names == nil {
		return nil
	}
	return fmt.Errorf("missing privilege: ports over interfaces need %s; run it as root, or see deploy/systemd", strings.Join(names, ", "))
}
