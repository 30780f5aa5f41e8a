package deploy_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netns"
	"go.yaml.in/yaml/v3"
	"golang.org/x/sys/unix"

	"gswitch/config"
	"gswitch/dataplane"
	"gswitch/dataplane/xsk"
)

// patience bounds every wait. It is far beyond what anything takes.
const patience = 60 * time.Second

// process is a program that runs beside the test and ends with it.
type process struct {
	name string
	cmd  *exec.Cmd
	out  lockedBuffer
	done chan struct{}
}

// lockedBuffer may be read while a process writes to it.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *lockedBuffer) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func (s *lockedBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// start runs a program until the test ends.
func start(t *testing.T, program string, args ...string) *process {
	t.Helper()
	p := &process{name: filepath.Base(program), cmd: exec.Command(program, args...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	// It must not outlive a test that is killed. The signal comes when the
	// thread dies that started it (prctl(2), PR_SET_PDEATHSIG).
	p.cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer close(p.done)
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.cmd.Process.Signal(unix.SIGTERM)
		select {
		case <-p.done:
		case <-time.After(patience):
			t.Errorf("%s does not end", p.name)
			p.cmd.Process.Kill()
			<-p.done
		}
		if t.Failed() {
			out := p.out.String()
			t.Logf("%s %v ... %s", p.name, args, out[max(0, len(out)-2000):])
		}
	})
	return p
}

// alive fails the test if the process has ended.
func (p *process) alive(t *testing.T) {
	t.Helper()
	select {
	case <-p.done:
		t.Fatalf("%s ended: %v\n%s", p.name, p.cmd.ProcessState, p.out.String())
	default:
	}
}

// await waits until a condition holds. What it returns says what is missing.
func await(t *testing.T, what string, condition func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if err = condition(); err == nil {
			return
		}
	}
	t.Fatalf("%s: %v", what, err)
}

// freeAddress is an address of this machine without a listener.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// command runs a program to its end.
func command(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, err := exec.Command(program, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", filepath.Base(program), args, err, out)
	}
	return string(out)
}

// need skips a test of what other programs do where one of them is missing.
func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("there is no %s in PATH, which this test runs", p)
		}
	}
}

// offloadsOff makes the kernel of a host finish frames before it sends them.
func offloadsOff(t *testing.T, namespace, name string) {
	t.Helper()
	err := xsk.InNetNS(namespace, func() error {
		e, err := dataplane.OpenEthtool()
		if err != nil {
			return err
		}
		defer e.Close()
		return e.Change(name, map[string]bool{"tx-checksum-ip-generic": false, "tx-vlan-hw-insert": false, "tx-generic-segmentation": false,
			"tx-tcp-segmentation": false, "tx-tcp6-segmentation": false, "tx-udp-segmentation": false})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// labPrefix begins the names of the fabrics of these tests. The number of the
// process follows.
const labPrefix = "deploy-"

// spaces matches the namespaces that these tests make beside those of the
// fabric.
var spaces = regexp.MustCompile(`^(?:` + labPrefix + `|clab-)(\d+)-`)

// removeLeftovers takes down what test processes left that were killed.
func removeLeftovers(t *testing.T) {
	gone := func(pid string) bool {
		n, err := strconv.Atoi(pid)
		return err == nil && errors.Is(unix.Kill(n, 0), unix.ESRCH)
	}
	dirs, _ := os.ReadDir("/run/gfabric") // neither is there before the first
	for _, d := range dirs {
		if pid, ours := strings.CutPrefix(d.Name(), labPrefix); ours && gone(pid) {
			command(t, program(t, "gfabric"), "down", d.Name())
		}
	}
	names, _ := os.ReadDir("/run/netns")
	for _, n := range names {
		if m := spaces.FindStringSubmatch(n.Name()); m != nil && gone(m[1]) {
			if err := netns.DeleteNamed(n.Name()); err != nil {
				t.Errorf("left over by a killed run, and cannot be removed: %s: %v", n.Name(), err)
			}
		}
	}
}

// lab is a fabric of two leaves, two spines and four hosts, of which two are
// ghosts. The links to the hosts are the slow ones, so that queues form at the
// leaf that a host is behind, and pauses travel back.
type lab struct {
	name, dir            string
	socket, metrics      string // of the switches
	ghostSocket          [2]string
	ghostMetrics         []string // of the two ghosts, and of the one in the wire
	gswitch, ghostBinary string
}

const (
	coreRate, hostRate = "40Mbps", "20Mbps"
	ghostFile          = `version: 1
name: %s
netns: %s
interface: eth0
address: %s/24
gateway: %s
rate: %s
payload: 1000
base_rtt: 10ms
telemetry: {links: [%s, %s]}
congestion: dcqcn
recovery: go-back-n
timeout: 2s
class: 3
pfc: {classes: [3]}
cnp: true
serve: true
control: {socket: %s, listen: %q}
`
)

func raise(t *testing.T) *lab {
	t.Helper()
	removeLeftovers(t)
	n := &lab{name: labPrefix + strconv.Itoa(os.Getpid()), dir: t.TempDir(), metrics: freeAddress(t), gswitch: program(t, "gswitch"), ghostBinary: program(t, "ghost")}
	n.socket = filepath.Join("/run/gfabric", n.name, "gswitch.sock")
	gfabric := program(t, "gfabric")
	t.Cleanup(func() { command(t, gfabric, "down", n.name) })
	command(t, gfabric, "up", "leaf-spine:2,2,2", "--name", n.name, "--rate", coreRate, "--host-rate", hostRate, "--listen", n.metrics, "--gswitch", n.gswitch)
	n.configure(t)
	// Hosts 1 and 3 stand behind different leaves.
	for i, host := range []string{"h1", "h3"} {
		n.ghostMetrics, n.ghostSocket[i] = append(n.ghostMetrics, freeAddress(t)), filepath.Join(n.dir, host+".sock")
		file := filepath.Join(n.dir, host+".yaml")
		text := fmt.Sprintf(ghostFile, host, "gf."+n.name+"."+host, ghostAddress(i), fmt.Sprintf("10.0.%d.1", i), coreRate, hostRate, coreRate, n.ghostSocket[i], n.ghostMetrics[i])
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		n.runGhost(t, file)
	}
	n.inTheWire(t)
	return n
}

// runGhost returns when a ghost is ready.
func (n *lab) runGhost(t *testing.T, file string) {
	t.Helper()
	g := start(t, n.ghostBinary, "run", "-c", file)
	await(t, "ghost with "+file, func() error {
		g.alive(t)
		if !strings.Contains(g.out.String(), "ready") {
			return errors.New("is not ready")
		}
		return nil
	})
}

// inTheWire puts two more hosts beside the fabric, that keep their kernel's
// stack behind a ghost, and lets one ping the other and send to it.
func (n *lab) inTheWire(t *testing.T) {
	t.Helper()
	space := func(name string) string { return n.name + "-" + name }
	for _, name := range []string{"k0", "k1", "wire"} {
		command(t, "ip", "netns", "add", space(name))
		t.Cleanup(func() { command(t, "ip", "netns", "del", space(name)) })
	}
	for i := range 2 {
		host, inner := space(fmt.Sprintf("k%d", i)), fmt.Sprintf("inner%d", i)
		command(t, "ip", "link", "add", inner, "netns", space("wire"), "type", "veth", "peer", "name", "eth0", "netns", host)
		offloadsOff(t, host, "eth0")
		command(t, "ip", "-n", host, "address", "add", fmt.Sprintf("10.9.0.%d/24", i+1), "dev", "eth0")
		command(t, "ip", "-n", host, "link", "set", "eth0", "up")
	}
	command(t, "ip", "link", "add", "outer0", "netns", space("wire"), "type", "veth", "peer", "name", "outer1", "netns", space("wire"))
	listen, file := freeAddress(t), filepath.Join(n.dir, "wire.yaml")
	n.ghostMetrics = append(n.ghostMetrics, listen)
	text := fmt.Sprintf(`version: 1
control: {socket: %s, listen: %q}
transparent:
- {name: k0, inner: inner0, outer: outer0, netns: %[3]s, rate: %[4]s, base_rtt: 10ms, congestion: dctcp, telemetry: {format: none}}
- {name: k1, inner: inner1, outer: outer1, netns: %[3]s, rate: %[4]s, base_rtt: 10ms, congestion: dctcp, telemetry: {format: none}}
`, filepath.Join(n.dir, "wire.sock"), listen, space("wire"), hostRate)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	n.runGhost(t, file)
	gfabric := program(t, "gfabric")
	start(t, "ip", "netns", "exec", space("k0"), gfabric, "load", "ping", "--count", "0", "10.9.0.2")
	// A stream always has something to send: rates and windows are those of
	// channels that do.
	server := start(t, "ip", "netns", "exec", space("k1"), gfabric, "load", "serve")
	await(t, "gfabric load serve", func() error {
		server.alive(t)
		if server.out.String() == "" {
			return errors.New("says nothing")
		}
		return nil
	})
	start(t, "ip", "netns", "exec", space("k0"), gfabric, "load", "stream", "10.9.0.2", "--time", "10m")
}

func ghostAddress(i int) string { return fmt.Sprintf("10.0.%d.2", i) }

// configure gives the switches of the lab a lossless class, ECN, telemetry and
// links that lose a frame of a hundred, while they run.
func (n *lab) configure(t *testing.T) {
	t.Helper()
	file := filepath.Join("/run/gfabric", n.name, "gswitch.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	var more map[string]any
	if err := yaml.Unmarshal([]byte(`
qos: {lab: {queues: [{queue: 0, weight: 50}, {queue: 3, weight: 50, ecn: {kmin: 5KB, kmax: 20KB, pmax: 0.5}}]}}
buffer: {size: 600KB, lossless: {xoff: 30KB}}
pfc: {classes: [3]}
telemetry: {int: true, links: [`+hostRate+", "+coreRate+`]}
acls: {watch: [{seq: 10, name: roce, match: {protocol: udp, dst_port: 4791-4795}, action: permit}]}
`), &more); err != nil {
		t.Fatal(err)
	}
	for i, s := range doc["switches"].([]any) {
		sw := s.(map[string]any)
		for key, v := range more {
			sw[key] = v
		}
		sw["id"] = i + 1
		for _, p := range sw["ports"].([]any) {
			port := p.(map[string]any)
			port["qos"], port["acl"] = "lab", "watch"
			port["faults"] = map[string]any{"loss": "1%"}
		}
	}
	out, err := yaml.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	changed := filepath.Join(n.dir, "gswitch.yaml")
	if err := os.WriteFile(changed, out, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Load(changed); err != nil {
		t.Fatal(err)
	}
	command(t, n.gswitch, "--socket", n.socket, "apply", "-f", changed)
}

// load keeps the lab busy until the test ends: DCQCN's and unbounded frames
// between the ghosts, TCP between the kernels of the others, pings to a ghost
// and to where no route leads. Streams of TCP are of the lossless class: the
// kernel of their sender honours no pause, so frames find the headroom full. They are
// many, since links lose frames: one alone does not fill a link where the machine is
// busy and round trips are long.
func (n *lab) load(t *testing.T) []*process {
	t.Helper()
	gfabric := program(t, "gfabric")
	in := func(host string, args ...string) *process {
		return start(t, gfabric, append([]string{"exec", "--name", n.name, host, "--"}, args...)...)
	}
	send := func(from, to int, args ...string) *process {
		return start(t, n.ghostBinary, append([]string{"send", "--socket", n.ghostSocket[from], "--to", ghostAddress(to), "--size", "200kB", "--depth", "4", "--count", "1000000"}, args...)...)
	}
	ps := []*process{
		send(0, 1, "--cc", "none", "--rate", coreRate),
		send(1, 0, "--cc", "dcqcn"),
		in("h4", gfabric, "load", "serve"),
		in("h2", gfabric, "load", "ping", "--count", "0", "--interval", "200ms", "--timeout", "200ms", "192.0.2.1"),
		in("h2", gfabric, "load", "ping", "--count", "0", "--interval", "200ms", ghostAddress(0)),
	}
	await(t, "gfabric load serve", func() error {
		ps[2].alive(t)
		if ps[2].out.String() == "" {
			return errors.New("says nothing")
		}
		return nil
	})
	return append(ps, in("h2", gfabric, "load", "stream", "h4", "--time", "10m"), in("h2", gfabric, "load", "stream", "h4", "--time", "10m", "--dscp", "24", "--streams", "16"))
}

var builds struct {
	sync.Mutex
	dir   string
	paths map[string]string
}

// program builds a command as make build does, once, and returns its path.
func program(t *testing.T, name string) string {
	t.Helper()
	builds.Lock()
	defer builds.Unlock()
	if path := builds.paths[name]; path != "" {
		return path
	}
	if builds.dir == "" {
		dir, err := os.MkdirTemp("", "deploy-")
		if err != nil {
			t.Fatal(err)
		}
		builds.dir, builds.paths = dir, map[string]string{}
	}
	path := filepath.Join(builds.dir, name)
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -X main.version=v9.9.9-test", "-o", path, "../cmd/"+name)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, msg)
	}
	builds.paths[name] = path
	return path
}

func TestMain(m *testing.M) {
	code := m.Run()
	if builds.dir != "" {
		if err := os.RemoveAll(builds.dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}
