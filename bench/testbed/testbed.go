// Package testbed builds and removes the place where a forwarder is measured:
// three network namespaces joined by two veth pairs.
//
//	gsb-gen: g0 ==== d0 :gsb-dut: d1 ==== s0 :gsb-sink
//
// Everything that it makes carries the prefix gsb-. Clean removes what a
// killed run left behind; nothing else is ever touched.
package testbed

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Names of the namespaces.
const (
	prefix = "gsb-"
	Gen    = prefix + "gen"
	DUT    = prefix + "dut"
	Sink   = prefix + "sink"
)

// Addresses of the test bed.
const (
	GenMAC   = "02:00:00:00:00:01"
	SinkMAC  = "02:00:00:00:00:02"
	Port0MAC = "02:00:00:00:00:d0"
	Port1MAC = "02:00:00:00:00:d1"
	GenIP    = "10.1.0.1"
	Port0IP  = "10.1.0.254"
	Port1IP  = "10.2.0.254"
	SinkIP   = "10.2.0.2"
)

const (
	lockFile  = "/run/gsb.lock"
	hugeFile  = "/run/gsb-hugepages" // what nr_hugepages was before a run raised it
	hugePages = "/proc/sys/vm/nr_hugepages"
	workDir   = "/run/gsb" // logs and sockets of the bed that is up: there is one at a time
	netnsDir  = "/run/netns"
)

// Bed is a test bed that is up.
type Bed struct {
	Dir string // for logs and sockets of the forwarder; removed with the bed

	procs []*Proc
}

// Lock makes this process the only one that builds test beds, until it ends.
func Lock() error {
	fd, err := unix.Open(lockFile, unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return fmt.Errorf("%s: %w (root is needed)", lockFile, err)
	}
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fmt.Errorf("another gbench is running: %s is locked", lockFile)
	}
	return nil
}

// Clean removes the namespaces of an earlier run and ends what still runs in them.
func Clean() error {
	entries, err := os.ReadDir(netnsDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), prefix) {
			continue
		}
		pids, err := output("ip", "netns", "pids", e.Name())
		if err != nil {
			return err
		}
		for p := range strings.FieldsSeq(pids) {
			if pid, err := strconv.Atoi(p); err == nil && pid != os.Getpid() {
				_ = unix.Kill(pid, unix.SIGKILL) // it may have ended meanwhile
			}
		}
		if err := Run("ip", "netns", "del", e.Name()); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(workDir); err != nil {
		return err
	}
	if n, err := os.ReadFile(hugeFile); err == nil {
		if err := os.WriteFile(hugePages, n, 0o644); err != nil {
			return err
		}
		return os.Remove(hugeFile)
	}
	return nil
}

// New builds a test bed whose veth pairs have the given number of queues.
func New(queues int) (b *Bed, err error) {
	if err := Clean(); err != nil {
		return nil, err
	}
	if err := os.Mkdir(workDir, 0o700); err != nil {
		return nil, err
	}
	b = &Bed{Dir: workDir}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Close())
			b = nil
		}
	}()
	for _, ns := range []string{Gen, DUT, Sink} {
		if err := Run("ip", "netns", "add", ns); err != nil {
			return b, err
		}
		// No router solicitations among the frames that are counted.
		if err := b.Sysctl(ns, "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1"); err != nil {
			return b, err
		}
	}
	q := strconv.Itoa(queues)
	veth := func(ns, dev, mac, peerNS, peer, peerMAC string) error {
		return Run("ip", "-n", ns, "link", "add", dev, "address", mac, "numrxqueues", q, "numtxqueues", q,
			"type", "veth", "peer", "name", peer, "address", peerMAC, "netns", peerNS, "numrxqueues", q, "numtxqueues", q)
	}
	if err := veth(Gen, "g0", GenMAC, DUT, "d0", Port0MAC); err != nil {
		return b, err
	}
	if err := veth(DUT, "d1", Port1MAC, Sink, "s0", SinkMAC); err != nil {
		return b, err
	}
	for _, at := range [][2]string{{Gen, "lo"}, {Gen, "g0"}, {DUT, "lo"}, {DUT, "d0"}, {DUT, "d1"}, {Sink, "lo"}, {Sink, "s0"}} {
		if err := Run("ip", "-n", at[0], "link", "set", at[1], "up"); err != nil {
			return b, err
		}
	}
	if err := Run("ip", "-n", Gen, "addr", "add", GenIP+"/24", "dev", "g0"); err != nil {
		return b, err
	}
	return b, Run("ip", "-n", Sink, "addr", "add", SinkIP+"/24", "dev", "s0")
}

// GRO switches generic receive offload on at a port of the forwarder. A veth
// takes XDP frames, which the generator sends, only while it runs NAPI: where
// no XDP program will be attached, this does it.
func (b *Bed) GRO(dev string) error {
	return b.Exec("ethtool", "-K", dev, "gro", "on")
}

// Sysctl sets key=value pairs in a namespace.
func (b *Bed) Sysctl(ns string, kv ...string) error {
	return Run("ip", append([]string{"netns", "exec", ns, "sysctl", "-qw"}, kv...)...)
}

// HugePages makes sure that there are n huge pages, until the bed is removed.
func (b *Bed) HugePages(n int) error {
	was, err := os.ReadFile(hugePages)
	if err != nil {
		return err
	}
	if have, _ := strconv.Atoi(strings.TrimSpace(string(was))); have >= n {
		return nil
	}
	if _, err := os.Stat(hugeFile); errors.Is(err, fs.ErrNotExist) {
		if err := os.WriteFile(hugeFile, was, 0o600); err != nil {
			return err
		}
	}
	return os.WriteFile(hugePages, []byte(strconv.Itoa(n)), 0o644)
}

// Handle returns a netlink handle in a namespace, and its end.
func Handle(ns string) (*netlink.Handle, func(), error) {
	fd, err := netns.GetFromName(ns)
	if err != nil {
		return nil, nil, fmt.Errorf("namespace %s: %w", ns, err)
	}
	defer fd.Close()
	h, err := netlink.NewHandleAt(fd)
	if err != nil {
		return nil, nil, fmt.Errorf("namespace %s: %w", ns, err)
	}
	return h, h.Close, nil
}

// Exec runs a command in the forwarder's namespace and waits for it.
func (b *Bed) Exec(args ...string) error {
	return Run("ip", append([]string{"netns", "exec", DUT}, args...)...)
}

// Close ends the processes of the bed and removes it.
func (b *Bed) Close() error {
	for i := len(b.procs) - 1; i >= 0; i-- {
		b.procs[i].Stop()
	}
	return Clean()
}

// Run runs a command and returns its output as the error if it fails.
func Run(name string, args ...string) error {
	_, err := output(name, args...)
	return err
}

func output(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// Proc is a process of the bed.
type Proc struct {
	Name string
	Log  string // file with its standard output and error

	cmd   *exec.Cmd
	stdin io.WriteCloser
	done  chan struct{}
}

// Start starts a command in a namespace. It ends with the bed, and with this
// process. Its input stays open and empty.
func (b *Bed) Start(ns, name string, args ...string) (*Proc, error) {
	p := &Proc{Name: name, Log: filepath.Join(b.Dir, name+".log"), done: make(chan struct{})}
	log, err := os.Create(p.Log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.cmd = exec.Command("ip", append([]string{"netns", "exec", ns}, args...)...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	// A session of its own: no signal of our terminal, and its own scheduling group.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		_ = p.cmd.Wait() // how it ended is in its log
		close(p.done)
	}()
	// Others may use this machine: ask for most of the core. Without
	// autogroup scheduling this file is not there.
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", p.PID()), []byte("-20"), 0o644)
	b.procs = append(b.procs, p)
	return p, nil
}

// Go writes a line to the process's input: the sign to begin, for those that wait for one.
func (p *Proc) Go() error {
	_, err := io.WriteString(p.stdin, "go\n")
	return err
}

// PID returns the process id.
func (p *Proc) PID() int { return p.cmd.Process.Pid }

// Ended returns a channel that is closed when the process has ended.
func (p *Proc) Ended() <-chan struct{} { return p.done }

// Ready waits until the log holds text.
func (p *Proc) Ready(text string, within time.Duration) error {
	for end := time.Now().Add(within); ; {
		log, err := os.ReadFile(p.Log)
		if err != nil {
			return err
		}
		if strings.Contains(string(log), text) {
			return nil
		}
		select {
		case <-p.done:
			log, _ = os.ReadFile(p.Log) // what it said last
			return fmt.Errorf("%s ended before it was ready: %s", p.Name, tail(log))
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s did not print %q within %v: %s", p.Name, text, within, tail(log))
		}
	}
}

func tail(log []byte) string {
	s := strings.TrimSpace(string(log))
	if len(s) > 600 {
		s = "... " + s[len(s)-600:]
	}
	return s
}

// Stop asks the process to end, and after three seconds makes it.
func (p *Proc) Stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
	select {
	case <-p.done:
	case <-time.After(3 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}
