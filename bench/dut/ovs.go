package dut

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"gswitch/bench/testbed"
)

// vswitchdDPDK is where Debian puts the daemon that is built with DPDK.
const vswitchdDPDK = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk"

const ovsSchema = "/usr/share/openvswitch/vswitch.ovsschema"

var ovsUser = DUT{
	Name: "ovs", About: "Open vSwitch, userspace datapath on system ports (AF_PACKET)",
	Missing: present("ovs-vswitchd", "ovsdb-server", "ovsdb-tool", "ovs-vsctl", "ovs-ofctl", "ethtool", "taskset"),
	Start: func(b *testbed.Bed, e Env) ([]*testbed.Proc, error) {
		for _, dev := range []string{"d0", "d1"} {
			if err := b.GRO(dev); err != nil {
				return nil, err
			}
		}
		o, err := newOVS(b)
		if err != nil {
			return nil, err
		}
		return o.up("system", "taskset", "-c", fmt.Sprint(e.CPU), "ovs-vswitchd")
	},
}

var ovsXDP = DUT{
	Name: "ovs-afxdp", About: "Open vSwitch with DPDK, ports on net_af_xdp",
	Missing: func(e Env) string {
		if _, err := os.Stat(vswitchdDPDK); err != nil {
			return vswitchdDPDK + " is not installed"
		}
		return ovsUser.Missing(e)
	},
	Start: func(b *testbed.Bed, e Env) ([]*testbed.Proc, error) {
		if err := b.HugePages(dpdkPages); err != nil {
			return nil, err
		}
		o, err := newOVS(b)
		if err != nil {
			return nil, err
		}
		err = o.vsctl("--no-wait", "set", "Open_vSwitch", ".", "other_config:dpdk-init=true",
			fmt.Sprintf("other_config:dpdk-lcore-mask=%#x", 1<<e.GenCPU), fmt.Sprintf("other_config:pmd-cpu-mask=%#x", 1<<e.CPU),
			"other_config:dpdk-extra=--no-pci --in-memory", "other_config:dpdk-socket-mem=256")
		if err != nil {
			return nil, err
		}
		return o.up("dpdk", vswitchdDPDK)
	},
}

// ovs is an Open vSwitch of its own, with its database and sockets in the bed's folder.
type ovs struct {
	bed *testbed.Bed
	dir string
}

func newOVS(b *testbed.Bed) (*ovs, error) {
	o := &ovs{b, b.Dir}
	db := filepath.Join(o.dir, "conf.db")
	if err := testbed.Run("ovsdb-tool", "create", db, ovsSchema); err != nil {
		return nil, err
	}
	if _, err := o.start("ovsdb-server", "ovsdb-server", db, "--remote=punix:"+o.path("db.sock"), "--unixctl="+o.path("dbctl")); err != nil {
		return nil, err
	}
	if err := o.appears("db.sock"); err != nil {
		return nil, err
	}
	return o, o.vsctl("--no-wait", "init")
}

func (o *ovs) path(name string) string { return filepath.Join(o.dir, name) }

// start runs a daemon of Open vSwitch that keeps its files in our folder.
func (o *ovs) start(name string, args ...string) (*testbed.Proc, error) {
	env := []string{"env", "OVS_RUNDIR=" + o.dir, "OVS_LOGDIR=" + o.dir, "OVS_DBDIR=" + o.dir}
	return o.bed.Start(testbed.DUT, name, append(env, args...)...)
}

func (o *ovs) vsctl(args ...string) error {
	return testbed.Run("ovs-vsctl", append([]string{"--timeout=30", "--db=unix:" + o.path("db.sock")}, args...)...)
}

func (o *ovs) appears(name string) error {
	for end := time.Now().Add(startup); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(o.path(name)); err == nil {
			return nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return fmt.Errorf("open vswitch: %s did not appear", o.path(name))
}

// up starts the switch daemon, and a bridge of the userspace datapath that
// joins d0 and d1, which are of the given interface type.
func (o *ovs) up(kind string, daemon ...string) ([]*testbed.Proc, error) {
	p, err := o.start("ovs-vswitchd", append(daemon, "unix:"+o.path("db.sock"), "--unixctl="+o.path("ctl"), "--log-file="+o.path("vswitchd.log"))...)
	if err != nil {
		return nil, err
	}
	procs := []*testbed.Proc{p}
	port := func(dev string, n int) []string {
		if kind == "system" {
			return []string{"--", "add-port", "br0", dev}
		}
		return []string{"--", "add-port", "br0", dev, "--", "set", "Interface", dev, "type=" + kind,
			fmt.Sprintf("options:dpdk-devargs=net_af_xdp%d,iface=%s", n, dev)}
	}
	if err := o.vsctl("add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=netdev", "fail_mode=secure"); err != nil {
		return procs, err
	}
	if err := o.vsctl(append(port("d0", 0), port("d1", 1)...)[1:]...); err != nil {
		return procs, err
	}
	for _, flow := range []string{"in_port=d0,actions=output:d1", "in_port=d1,actions=output:d0"} {
		out, err := exec.Command("ip", "netns", "exec", testbed.DUT, "ovs-ofctl", "add-flow", o.path("br0.mgmt"), flow).CombinedOutput()
		if err != nil {
			return procs, fmt.Errorf("ovs-ofctl add-flow %s: %w: %s", flow, err, out)
		}
	}
	return procs, nil
}
