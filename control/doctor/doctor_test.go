package doctor

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/spf13/cobra"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"gswitch/control/privilege"
	"gswitch/dataplane/xsk"
	"gswitch/dataplane/xsk/xsktest"
)

// sound is a machine on which nothing is to be fixed.
func sound() (*System, fstest.MapFS) {
	files := fstest.MapFS{}
	for path, text := range map[string]string{
		"proc/sys/kernel/osrelease":                                       "6.8.0-31-generic\n",
		"proc/sys/net/core/bpf_jit_enable":                                "1\n",
		"proc/self/uid_map":                                               "         0          0 4294967295\n",
		"proc/self/cgroup":                                                "0::/system.slice/gswitch.service\n",
		"proc/mounts":                                                     "bpf /sys/fs/bpf bpf rw 0 0\n",
		"sys/fs/cgroup/system.slice/gswitch.service/cpu.max":              "max 100000\n",
		"sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages":         "64\n",
		"sys/devices/system/cpu/isolated":                                 "2-3\n",
		"sys/devices/system/cpu/smt/active":                               "0\n",
		"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor":            "performance\n",
		"sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
		"run/gswitch/s1.sock":                                             "",
	} {
		files[path] = &fstest.MapFile{Data: []byte(text)}
	}
	return &System{Files: files, CPUs: 4, Root: true, Socket: func() error { return nil }, Memlock: func() (uint64, error) { return ^uint64(0), nil },
		Missing: func() []privilege.Capability { return nil }, Landlock: func() (int, error) { return 3, nil }, Clock: func() time.Duration { return 30 }, Listens: func(string) bool { return true }}, files
}

func TestSoundMachine(t *testing.T) {
	s, _ := sound()
	for _, f := range s.Machine() {
		if f.Result != OK || f.Found == "" || f.Remedy != "" {
			t.Errorf("%+v", f)
		}
	}
}

// Each thing that is not in order is found alone, with what to do about it.
func TestAilments(t *testing.T) {
	for name, c := range map[string]struct {
		spoil  func(s *System, files fstest.MapFS)
		check  string
		result string
		want   string // in what is found
		remedy string
	}{
		"old kernel":       {set("proc/sys/kernel/osrelease", "5.4.0"), "kernel", Fail, "5.4.0 lacks XDP by BPF links (5.9)", "5.11"},
		"no chains":        {set("proc/sys/kernel/osrelease", "6.1.0"), "kernel", Warn, "frames in several chunks", "MTU"},
		"odd kernel":       {set("proc/sys/kernel/osrelease", "tuesday"), "kernel", Fail, "cannot be read", "boot"},
		"no AF_XDP":        {func(s *System, _ fstest.MapFS) { s.Socket = func() error { return unix.EAFNOSUPPORT } }, "AF_XDP", Fail, "CONFIG_XDP_SOCKETS", "boot"},
		"AF_XDP refused":   {func(s *System, _ fstest.MapFS) { s.Socket = func() error { return unix.EPERM } }, "AF_XDP", Fail, "may not be made", "--cap-add NET_RAW"},
		"no capabilities":  {caps("CAP_NET_ADMIN"), "CAP_NET_ADMIN", Fail, "missing; it is for setting interfaces up", "run as root"},
		"few capabilities": {caps("CAP_SYS_ADMIN"), "CAP_SYS_ADMIN", Warn, "missing; it is for entering", "add it"},
		"no Landlock":      {landlock(0, unix.ENOSYS), "Landlock", Warn, "built without", "CONFIG_SECURITY_LANDLOCK"},
		"Landlock is off":  {landlock(0, unix.EOPNOTSUPP), "Landlock", Warn, "booted", "lsm=landlock"},
		"Landlock refused": {landlock(0, unix.EPERM), "Landlock", Warn, "refused", "landlock_create_ruleset"},
		"old Landlock":     {landlock(2, nil), "Landlock", Warn, "version 2", "6.2"},
		"JIT off":          {set("proc/sys/net/core/bpf_jit_enable", "0"), "BPF JIT", Warn, "off", "sysctl"},
		"user namespace":   {set("proc/self/uid_map", "0 1000 1"), "container", Warn, "user namespace", "initial user namespace"},
		"container":        {set(".dockerenv", ""), "container", Warn, "container", "--network host"},
		"no huge pages":    {set("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "0"), "huge pages", Warn, "none", "sysctl vm.nr_hugepages"},
		"one CPU":          {func(s *System, _ fstest.MapFS) { s.CPUs = 1 }, "CPUs", Warn, "1", "poll: sleep"},
		"no isolation":     {set("sys/devices/system/cpu/isolated", "\n"), "CPU isolation", Warn, "no isolated", "isolcpus"},
		"powersave":        {set("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave"), "CPU frequency", Warn, "powersave", "cpupower"},
		"SMT":              {set("sys/devices/system/cpu/smt/active", "1"), "SMT", Warn, "on", "lscpu"},
		"quota above":      {set("sys/fs/cgroup/system.slice/cpu.max", "150000 100000"), "cgroup CPU limit", Warn, "1.5 CPUs", "CPUQuota"},
		"quota, version 1": {both(set("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000"), set("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000")), "cgroup CPU limit", Warn, "0.5 CPUs", "docker"},
		"slow clock":       {both(set("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet"), func(s *System, _ fstest.MapFS) { s.Clock = func() time.Duration { return 1200 } }), "clock", Warn, "hpet, 1200 ns", "tsc"},
		"dead socket": {func(s *System, _ fstest.MapFS) {
			s.Listens = func(p string) bool { return p != "/run/gswitch/s1.sock" }
		}, "left-overs", Warn, "/run/gswitch/s1.sock", "gfabric down"},
		"memlock":           {both(caps("CAP_IPC_LOCK"), func(s *System, _ fstest.MapFS) { s.Memlock = func() (uint64, error) { return 8 << 20, nil } }), "locked memory", Warn, "8192 KiB", "ulimit"},
		"memlock not known": {func(s *System, _ fstest.MapFS) { s.Memlock = func() (uint64, error) { return 0, errors.New("no") } }, "locked memory", Warn, "no", ""},
	} {
		s, files := sound()
		c.spoil(s, files)
		hit := false
		for _, f := range s.Machine() {
			switch {
			case f.Check == c.check:
				hit = true
				if f.Result != c.result || !strings.Contains(f.Found, c.want) || !strings.Contains(f.Remedy, c.remedy) || f.Why == "" {
					t.Errorf("%s: %+v", name, f)
				}
			case f.Result != OK && !(f.Check == "CAP_IPC_LOCK" && strings.HasPrefix(name, "memlock")):
				t.Errorf("%s spoils %+v", name, f)
			}
		}
		if !hit {
			t.Errorf("%s: %s is not checked", name, c.check)
		}
	}
}

func landlock(abi int, err error) func(*System, fstest.MapFS) {
	return func(s *System, _ fstest.MapFS) { s.Landlock = func() (int, error) { return abi, err } }
}

func set(path, text string) func(*System, fstest.MapFS) {
	return func(_ *System, files fstest.MapFS) { files[path] = &fstest.MapFile{Data: []byte(text)} }
}

func both(a, b func(*System, fstest.MapFS)) func(*System, fstest.MapFS) {
	return func(s *System, files fstest.MapFS) { a(s, files); b(s, files) }
}

func caps(missing string) func(*System, fstest.MapFS) {
	return func(s *System, _ fstest.MapFS) {
		s.Missing = func() (v []privilege.Capability) {
			for _, c := range privilege.Used {
				if c.Name == missing {
					v = append(v, c)
				}
			}
			return v
		}
	}
}

func TestLinks(t *testing.T) {
	link := func() *Link {
		return &Link{Name: "v0", Kind: "veth", Driver: "veth", Up: true, MTU: 1500, RxQueues: 1, TxQueues: 1, Qdisc: "noqueue",
			Peer: &Link{Name: "p0", NetNS: "lab", Kind: "veth", Driver: "veth", Up: true, MTU: 1500, RxQueues: 1, TxQueues: 1}}
	}
	for _, f := range link().check(2048) {
		if f.Result != OK {
			t.Errorf("%+v", f)
		}
	}
	for name, c := range map[string]struct {
		spoil         func(*Link)
		check, result string
		want, remedy  string
	}{
		"checksums": {func(l *Link) {
			l.Peer.On = map[string]bool{"tx-checksum-ip-generic": true, "tx-tcp-segmentation": true}
		}, "v0 peer offloads", Fail, "p0 has tx-checksum-ip-generic, tx-tcp-segmentation on", "ip netns exec lab ethtool -K p0 tx off tso off"},
		"in use":    {func(l *Link) { l.Carries = "carries the default route via 10.0.0.1" }, "v0 use", Fail, "default route via 10.0.0.1", "--take"},
		"own":       {func(l *Link) { l.On = map[string]bool{"rx-gro": true} }, "v0 offloads", OK, "rx-gro on; turned off", ""},
		"program":   {func(l *Link) { l.XDP, l.XDPID = "native", 7 }, "v0 XDP program", Fail, "program 7 is attached", "ip link set dev v0 xdp off"},
		"MTU":       {func(l *Link) { l.MTU, l.Peer.MTU = 9000, 9000 }, "v0 MTU", Warn, "a chunk of 2048 bytes holds 1774", "chunk: 4096"},
		"peer MTU":  {func(l *Link) { l.Peer.MTU = 1400 }, "v0 peer MTU", Warn, "1500 here, 1400 at p0", "ip netns exec lab ip link set p0 mtu 1500"},
		"queues":    {func(l *Link) { l.RxQueues = 4 }, "v0 queues", Warn, "4 receive, 1 transmit", "ethtool -L v0 combined 1"},
		"peer down": {func(l *Link) { l.Peer.Up = false }, "v0 peer link", Fail, "p0 is down", "ip link set p0 up"},
		"down":      {func(l *Link) { l.Up = false }, "v0 link", Warn, "down", "ip link set v0 up"},
		"no native": {func(l *Link) { l.Driver = "e1000" }, "v0 XDP mode", Warn, "e1000", "native XDP"},
		"stamps":    {func(l *Link) {}, "v0 clock stamps", OK, "hardware has no clock; what leaves last", ""},
		"hardware":  {func(l *Link) { l.Driver, l.NICClock = "ice", "/dev/ptp0" }, "v0 clock stamps", OK, "/dev/ptp0 where driver", ""},
		"no hardware": {func(l *Link) {
			l.Driver, l.NICClock, l.Unread = "ice", "/dev/ptp0", "open /dev/ptp0: permission denied"
		}, "v0 clock stamps", Warn, "permission denied", "ls -l /dev/ptp0"},
		"late stamps": {func(l *Link) { l.Driver = "e1000" }, "v0 clock stamps", OK, "generic mode", ""},
		"zero-copy":   {func(l *Link) { l.Driver = "ice" }, "v0 XDP mode", OK, "zero-copy", ""},
		"nobody":      {func(l *Link) { l.Peer = nil }, "v0 peer", Warn, "not found", "ethtool -K"},
		"real device": {func(l *Link) { l.Kind, l.Driver, l.Peer = "device", "mlx5_core", nil }, "v0 XDP mode", OK, "mlx5_core", ""},
	} {
		l := link()
		c.spoil(l)
		hit := false
		for _, f := range l.check(2048) {
			if f.Check == c.check {
				hit = true
				if f.Result != c.result || !strings.Contains(f.Found, c.want) || !strings.Contains(f.Remedy, c.remedy) {
					t.Errorf("%s: %+v", name, f)
				}
			}
		}
		if !hit {
			t.Errorf("%s: %s is not checked", name, c.check)
		}
	}
}

// A veth as the kernel makes it: its peer's offloads are found, in another
// namespace, and --fix turns them off.
func TestRealVeth(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: a veth pair and a network namespace")
	}
	ns, iface := fmt.Sprintf("fdoctor-%d", os.Getpid()), fmt.Sprintf("fd%d", os.Getpid()%100000)
	xsktest.NetNS(t, ns)
	far, err := netns.GetFromName(ns)
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	at := netlink.NewLinkAttrs()
	at.Name = iface
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: at, PeerName: iface + "p", PeerNamespace: netlink.NsFd(far)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if l, err := netlink.LinkByName(iface); err == nil {
			netlink.LinkDel(l)
		}
	})
	up := func(name string) func() error {
		return func() error {
			l, err := netlink.LinkByName(name)
			if err != nil {
				return err
			}
			return netlink.LinkSetUp(l)
		}
	}
	if err := errors.Join(xsk.InNetNS(ns, up(iface+"p")), up(iface)()); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (map[string]Finding, error) {
		t.Helper()
		asJSON := true
		c := Command("gswitch", &asJSON)
		var out strings.Builder
		root := &cobra.Command{Use: "gswitch", SilenceUsage: true, SilenceErrors: true}
		root.AddCommand(c)
		root.SetOut(&out)
		root.SetArgs(append([]string{"doctor"}, args...))
		err := root.Execute()
		var v struct{ Checks []Finding }
		if e := json.Unmarshal([]byte(out.String()), &v); e != nil {
			t.Fatalf("%v: %s", e, out.String())
		}
		m := map[string]Finding{}
		for _, f := range v.Checks {
			m[f.Check] = f
		}
		return m, err
	}
	before, err := run(iface)
	f := before[iface+" peer offloads"]
	if err == nil || f.Result != Fail || !strings.Contains(f.Found, "tx-checksum-ip-generic") || !strings.HasPrefix(f.Remedy, "ip netns exec "+ns+" ethtool -K "+iface+"p tx off") {
		t.Fatalf("%+v, %v", f, err)
	}
	after, _ := run("--fix", iface)
	if f := after[iface+" peer offloads"]; f.Result != OK || !strings.Contains(f.Fixed, "turned off at "+iface+"p: tx-checksum-ip-generic") {
		t.Errorf("%+v", f)
	}
	other, _ := run(ns + "/" + iface + "p")
	if f := other[iface+"p peer offloads"]; f.Result != Fail || !strings.Contains(f.Found, iface+" has") {
		t.Errorf("from the other end: %+v", f)
	}
	if _, err := Interface("nowhere0", 2048, false); err == nil || !strings.Contains(err.Error(), "interface nowhere0") {
		t.Error(err)
	}
}
