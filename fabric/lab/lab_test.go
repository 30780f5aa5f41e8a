package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"gswitch/fabric"
	"gswitch/fabric/load"
)

// Names of fabrics that tests make.
const testPrefix = "fabtest-"

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
}

func layoutOf(t testing.TB, name, expr string, mode fabric.Mode, o Options) *Layout {
	t.Helper()
	topo, err := fabric.Spec{Name: testPrefix + name, Generate: expr, Mode: string(mode)}.Build()
	if err != nil {
		t.Fatal(err)
	}
	plan, err := fabric.NewPlan(topo)
	if err != nil {
		t.Fatal(err)
	}
	l, err := NewLayout(plan, o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// raise raises a fabric over stub switches and removes it after the test.
func raise(t *testing.T, l *Layout) {
	t.Helper()
	t.Setenv(stubEnv, "1")
	t.Cleanup(func() {
		if _, err := Down(l.Plan.Topology.Name, t.Logf); err != nil {
			t.Error(err)
		}
	})
	if err := Up(t.Context(), l, os.Args[0], t.Logf); err != nil {
		t.Fatal(err)
	}
}

// traces lists everything on the machine that a fabric could leave behind.
func traces(t *testing.T) []string {
	t.Helper()
	var v []string
	for _, pattern := range []string{netnsDir + "/*", runDir + "/*"} {
		found, _ := filepath.Glob(pattern)
		v = append(v, found...)
	}
	links, err := netlink.LinkList()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		v = append(v, "link "+l.Attrs().Name)
	}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		env, _ := os.ReadFile(d + "/environ")
		for _, e := range bytes.Split(env, []byte{0}) {
			if bytes.HasPrefix(e, []byte(markerEnv+"=")) {
				v = append(v, d+" "+string(e))
			}
		}
	}
	// Others may test on this machine at the same time.
	return slices.DeleteFunc(v, func(s string) bool {
		return !strings.Contains(s, testPrefix) && !strings.HasPrefix(s, "link gf")
	})
}

func expectTraces(t *testing.T, want []string) {
	t.Helper()
	if d := cmp.Diff(want, traces(t)); d != "" {
		t.Errorf("left behind (+) or taken away (-):\n%s", d)
	}
}

// serveIn serves load tests inside a host.
func serveIn(t *testing.T, name, host string) {
	t.Helper()
	_, ns, err := hostSpace(name, host)
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	var l net.Listener
	if err := inNamespace(ns, func() (err error) {
		l, err = net.Listen("tcp4", ":"+load.DefaultPort)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	go load.Serve(l, func(err error) { t.Log(err) })
	t.Cleanup(func() { l.Close() })
}

// in runs f on a thread of a host's namespace.
func in(t *testing.T, name, host string, f func() error) error {
	t.Helper()
	_, ns, err := hostSpace(name, host)
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	return inNamespace(ns, f)
}

func TestEndToEnd(t *testing.T) {
	needRoot(t)
	for _, c := range []struct {
		name, expr string
		mode       fabric.Mode
		o          Options
	}{
		{"star", "star(3)", fabric.L2, Options{}},
		{"dumbbell", "dumbbell(1, 1)", fabric.L2, Options{}},
		{"each", "line(3)", fabric.L2, Options{Each: true}},
		{"routed", "leaf-spine(2, 2, 2)", fabric.L3, Options{Each: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := traces(t)
			l := layoutOf(t, c.name, c.expr, c.mode, c.o)
			raise(t, l)
			topo := l.Plan.Topology
			hosts := topo.Hosts()
			last := hosts[len(hosts)-1]
			to := l.Plan.Nodes[last].Address[0].Addr().String()
			first, lastName := topo.Nodes[hosts[0]].Name, topo.Nodes[last].Name

			if err := in(t, topo.Name, first, func() error {
				r, err := load.Ping(t.Context(), load.PingOptions{Address: to, Count: 3, Interval: time.Millisecond, Timeout: 5 * time.Second})
				if err == nil && r.Lost > 0 {
					err = fmt.Errorf("%d of 3 answers are missing", r.Lost)
				}
				return err
			}); err != nil {
				t.Errorf("ping %s from %s: %v", to, first, err)
			}

			serveIn(t, topo.Name, lastName)
			// Run as exec does, so that sockets are opened inside: this binary's
			// own threads do not stay in a namespace over a dial.
			cmd, err := NewCommand(t.Context(), topo.Name, first, os.Args[0])
			if err != nil {
				t.Fatal(err)
			}
			cmd.Env = append(cmd.Env, childEnv+"=stream:"+net.JoinHostPort(to, load.DefaultPort))
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Run(); err != nil {
				t.Errorf("transfer: %v\n%s", err, out.String())
			}

			st, err := Inspect(topo.Name)
			if err != nil || !st.Healthy || len(st.Hosts) != len(hosts) || !st.Hosts[0].Up {
				t.Errorf("status %+v, error %v", st, err)
			}
			if err := Up(t.Context(), l, os.Args[0], t.Logf); !errors.Is(err, ErrUp) {
				t.Errorf("second up: %v", err)
			}
			if was, err := Down(topo.Name, t.Logf); err != nil || !was {
				t.Errorf("down: %v, %v", was, err)
			}
			expectTraces(t, before)
			if was, err := Down(topo.Name, t.Logf); err != nil || was {
				t.Errorf("second down: %v, %v", was, err)
			}
		})
	}
}

// Whatever a fabric fails at, it leaves nothing.
func TestFailures(t *testing.T) {
	needRoot(t)
	before := traces(t)
	l := layoutOf(t, "fails", "star(2)", fabric.L2, Options{})
	name := l.Plan.Topology.Name

	t.Setenv(stubEnv, "broken")
	err := Up(t.Context(), l, os.Args[0], t.Logf)
	if err == nil || !strings.Contains(err.Error(), "as it was asked to") {
		t.Errorf("a switch that fails: error %v; it must show the log", err)
	}
	expectTraces(t, before)

	t.Setenv(stubEnv, "silent")
	for _, at := range []string{"namespaces", "veth pairs"} {
		ctx, cancel := context.WithCancel(t.Context())
		err := Up(ctx, l, os.Args[0], func(format string, args ...any) {
			if strings.Contains(fmt.Sprintf(format, args...), at) {
				cancel()
			}
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("an up that is interrupted after its %s: error %v", at, err)
		}
		expectTraces(t, before)
	}

	if err := Up(t.Context(), l, "/nonexistent/gswitch", t.Logf); err == nil || !strings.Contains(err.Error(), "--gswitch") {
		t.Errorf("no program: error %v", err)
	}
	expectTraces(t, before)

	// A namespace of that name that was not made by the lab.
	foreign := namespaceName(name, "h2")
	if err := createNamespace(foreign, "somebody else", func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	defer removeNamespace(foreign, "somebody else")
	with := traces(t)
	t.Setenv(stubEnv, "1")
	if err := Up(t.Context(), l, os.Args[0], t.Logf); err == nil || !strings.Contains(err.Error(), "was not made by this fabric") {
		t.Errorf("a foreign namespace: error %v", err)
	}
	expectTraces(t, with)
	if err := removeNamespace(foreign, "marker of another"); !errors.Is(err, errForeign) {
		t.Errorf("removal of a foreign namespace: error %v", err)
	}
	expectTraces(t, with)
}

// Fabrics stand side by side; a dead switch is noticed and the next up heals.
func TestSideBySide(t *testing.T) {
	needRoot(t)
	a := layoutOf(t, "a", "star(1)", fabric.L2, Options{})
	b := layoutOf(t, "b", "star(1)", fabric.L2, Options{})
	raise(t, a)
	raise(t, b)
	if _, err := Resolve(""); err == nil || !strings.Contains(err.Error(), "several") {
		t.Errorf("resolve among several: %v", err)
	}
	if _, err := Resolve(testPrefix + "c"); err == nil {
		t.Error("a fabric that is not there was found")
	}
	st, err := Inspect(a.Plan.Topology.Name)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(st.Processes[0].PID, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	for err == nil && st.Healthy { // until the kernel has ended it
		time.Sleep(time.Millisecond)
		st, err = Inspect(a.Plan.Topology.Name)
	}
	if err != nil {
		t.Fatal(err)
	}
	st.WriteTable(&text)
	if st.Healthy || !strings.Contains(text.String(), "is not running") {
		t.Errorf("status after a kill:\n%s", text.String())
	}
	if data, err := json.Marshal(st); err != nil || !bytes.Contains(data, []byte(`"healthy":false`)) {
		t.Errorf("JSON %s, error %v", data, err)
	}
	if err := Up(t.Context(), a, os.Args[0], t.Logf); err != nil {
		t.Errorf("up over a broken fabric: %v", err)
	}
	if st, _ := Inspect(b.Plan.Topology.Name); !st.Healthy {
		t.Errorf("its neighbour suffered: %v", st.Problems)
	}
}

// Programs in hosts have their own exit code and see their own interfaces,
// and do not outlive the fabric.
func TestExec(t *testing.T) {
	needRoot(t)
	before := traces(t)
	l := layoutOf(t, "exec", "star(1)", fabric.L2, Options{})
	name := l.Plan.Topology.Name
	raise(t, l)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"=exec:"+name)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 42 {
		t.Errorf("exit: %v, want code 42", err)
	}
	if got := strings.Fields(string(out)); !slices.Equal(got, []string{"eth0", "lo", "10.0.0.254", "s1", "fd00::fe", "s1"}) {
		t.Errorf("interfaces and names %v", got)
	}
	stays, err := NewCommand(context.Background(), name, "h1", "sh", "-c", "trap '' TERM; sleep 1000 & echo started; wait")
	if err != nil {
		t.Fatal(err)
	}
	stays.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	pipe, _ := stays.StdoutPipe()
	if err := stays.Start(); err != nil {
		t.Fatal(err)
	}
	pipe.Read(make([]byte, 16))
	go stays.Wait()
	if _, err := NewCommand(context.Background(), name, "h9", "true"); err == nil || !strings.Contains(err.Error(), "its hosts are h1") {
		t.Errorf("an unknown host: %v", err)
	}
	if _, err := Down(name, t.Logf); err != nil {
		t.Fatal(err)
	}
	expectTraces(t, before)
}
