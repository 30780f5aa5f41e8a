package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"gswitch/fabric"
	"gswitch/wholefile"
)

// hostSpace opens the namespace of a host (or of a switch, by its name).
func hostSpace(name, node string) (*state, netns.NsHandle, error) {
	s, err := readState(name)
	if err != nil {
		return nil, netns.None(), err
	}
	if s == nil {
		return nil, netns.None(), fmt.Errorf("there is no fabric %q", name)
	}
	i, ok := s.Topology.Lookup(node)
	if !ok {
		var known []string
		for _, h := range s.Topology.Hosts() {
			known = append(known, s.Topology.Nodes[h].Name)
		}
		return nil, netns.None(), fmt.Errorf("fabric %q has no node %q; its hosts are %s", name, node, strings.Join(known, " "))
	}
	space := namespaceName(name, switchSpace)
	for _, n := range s.Namespaces {
		if n.Node == i {
			space = n.Name
		}
	}
	ns, err := openNamespace(space, s.marker())
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%q has no namespace: the fabric is not whole (gfabric status --name %s)", node, name)
	}
	return s, ns, err
}

// Exec replaces the calling program by another one that runs in a host of a
// fabric: terminal, signals and exit code are its own. It returns only if
// that fails.
func Exec(name, host string, argv []string) error {
	s, ns, err := hostSpace(name, host)
	if err != nil {
		return err
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	// The thread that execs becomes the whole process, with its namespaces.
	runtime.LockOSThread()
	if err := netns.Set(ns); err != nil {
		return fmt.Errorf("cannot enter %s: %w", host, err)
	}
	if err := mountOwn(s.hostsFile()); err != nil {
		return err
	}
	env := append(os.Environ(), markerEnv+"="+s.marker(), "GFABRIC_HOST="+host)
	return fmt.Errorf("cannot run %s: %w", path, unix.Exec(path, argv, env))
}

// mountOwn lets the program see the interfaces of its namespace under
// /sys/class/net, and the names of the fabric's nodes in /etc/hosts, in a mount
// namespace of its own.
func mountOwn(hosts string) error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("cannot make a mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "none", unix.MS_SLAVE|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("cannot make mounts private: %w", err)
	}
	if err := unix.Mount(hosts, "/etc/hosts", "none", unix.MS_BIND, ""); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("cannot mount %s over /etc/hosts: %w", hosts, err)
	}
	if unix.Unmount("/sys", unix.MNT_DETACH) != nil {
		return nil // not mounted, or not ours to change: programs do without
	}
	if err := unix.Mount("sysfs", "/sys", "sysfs", 0, ""); err != nil {
		return fmt.Errorf("cannot mount /sys: %w", err)
	}
	return nil
}

func (s *state) hostsFile() string { return filepath.Join(s.dir(), "hosts") }

// writeHosts writes the machine's own table of names with the nodes of the
// fabric before it.
func (s *state) writeHosts(p *fabric.Plan) error {
	var b bytes.Buffer
	for i := range p.Nodes {
		n := &p.Nodes[i]
		addrs := n.Loopback
		for _, a := range n.Address {
			if len(n.Loopback) == 0 {
				addrs = append(addrs, a.Addr())
			}
		}
		for _, a := range addrs {
			fmt.Fprintf(&b, "%s %s\n", a, p.Topology.Nodes[i].Name)
		}
	}
	if own, err := os.ReadFile("/etc/hosts"); err == nil {
		b.Write(own)
	}
	return wholefile.WriteBytes(s.hostsFile(), 0o644, b.Bytes())
}

// Command is a program that Start runs in a host. Do not call Start or Run of
// the exec.Cmd itself.
type Command struct {
	*exec.Cmd
	ns netns.NsHandle
}

// NewCommand prepares a program to run in a host of a fabric.
func NewCommand(ctx context.Context, name, host, program string, args ...string) (*Command, error) {
	s, ns, err := hostSpace(name, host)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), markerEnv+"="+s.marker(), "GFABRIC_HOST="+host)
	return &Command{cmd, ns}, nil
}

// Start starts the program in its host.
func (c *Command) Start() error {
	defer c.ns.Close()
	return inNamespace(c.ns, c.Cmd.Start)
}

// Run starts the program and waits for its end.
func (c *Command) Run() error {
	if err := c.Start(); err != nil {
		return err
	}
	return c.Wait()
}
