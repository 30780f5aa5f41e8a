package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/vishvananda/netlink"

	"gswitch/collect/clocks"
	"gswitch/control"
	"gswitch/control/api"
)

// ringName is that of the fabric of four switches in a ring, a process each.
const ringName = "clockring"

var ringSwitches = []string{"s1", "s2", "s3", "s4"}

// ringClock asks the daemon of a switch about its clock.
func ringClock(t *testing.T, name string) (*api.Clock, api.ControlClient) {
	t.Helper()
	d := control.Dial(filepath.Join("/run/gfabric", ringName, name+".sock"))
	m, err := d.ListClocks(context.Background(), &api.ListRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Clocks) != 1 || !m.Clocks[0].Controlled {
		t.Fatalf("%s: %v", name, m)
	}
	return m.Clocks[0], d
}

// controllerOfClocks is a running gcollect clock.
func controllerOfClocks(t *testing.T, data, name string) *exec.Cmd {
	t.Helper()
	c := exec.Command(gcollect, "clock", "run", "--data", data, "--fabric", "ring(4)", "--sockets", filepath.Join("/run/gfabric", ringName), "--name", name, "--lease", "2s", "--root", "s1")
	c.Stderr = t.Output()
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.Contains(line, "ready") {
		t.Fatalf("gcollect clock prints %q, %v", line, err)
	}
	return c
}

// Two controllers stand by four switches in a ring. The one that leads is killed while a link
// of its plan fails; the other one takes over, and plans without the link. What the first one
// would still say is refused by every switch, and changes none.
func TestClockControllers(t *testing.T) {
	run := func(program string, args ...string) string {
		t.Helper()
		out, err := exec.Command(program, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	run(gfabric, "up", "ring(4)", "--name", ringName, "--processes", "each", "--clock=100ms", "--poll", "sleep", "--gswitch", gswitch)
	t.Cleanup(func() { exec.Command(gfabric, "down", ringName).Run() })
	c := newCollector(t, "ring(4)", "--reports", "")
	status := func() (s clocks.State) {
		t.Helper()
		var v []clocks.State
		out := run(gcollect, "clock", "status", "--data", c.data, "--json")
		if err := json.NewDecoder(bytes.NewReader([]byte(out))).Decode(&v); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if len(v) == 1 {
			s = v[0]
		}
		return s
	}
	// settled waits until a plan without some links, of a leader, is followed by all switches at once.
	settled := func(leader string, without ...string) (map[string]*api.Clock, clocks.State) {
		t.Helper()
		for n := 0; ; n++ {
			s, clocks := status(), map[string]*api.Clock{}
			good := s.Leader == leader && s.Plan != nil && s.Plan.Done && s.Plan.Controller == leader && len(s.Plan.Failed) == 0
			var root uint64
			for _, name := range ringSwitches {
				x, _ := ringClock(t, name)
				clocks[name] = x
				if x.State == "root" {
					root = x.Identity
				}
			}
			for name, x := range clocks {
				p := x.Plan
				good = good && x.Root == root && x.Eps >= 0 && p.Epoch != 0 && !x.Turned && x.Promised == s.Plan.Epoch
				for _, l := range without {
					a, b, _ := strings.Cut(l, "-")
					good = good && !(name == a && (p.Parent == b || p.Second == b)) && !(name == b && (p.Parent == a || p.Second == a))
				}
			}
			if good {
				return clocks, s
			}
			if n%50 == 49 {
				t.Logf("still: %+v, %+v, %v", s, s.Plan, clocks)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	a := controllerOfClocks(t, c.data, "a")
	before, first := settled("a")
	controllerOfClocks(t, c.data, "b")
	if first.Plan.Root != "s1" || before["s1"].State != "root" {
		t.Fatalf("%+v: %v", first.Plan, before["s1"])
	}
	broken := before["s2"].Plan.Parent // of s2 and its parent
	if err := a.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	link(t, "gf."+ringName+".s2", "s2-"+broken, netlink.LinkSetDown)
	after, second := settled("b", "s2-"+broken)
	if second.Plan.Epoch <= first.Plan.Epoch {
		t.Errorf("plan %d of b stands behind plan %d of a", second.Plan.Epoch, first.Plan.Epoch)
	}
	if x := after["s2"]; x.Plan.Parent == broken || x.Plan.Parent == "" && x.State != "root" {
		t.Errorf("s2 follows %q: %v", x.Plan.Parent, x)
	}
	// What a would have gone on with.
	for name, x := range before {
		_, d := ringClock(t, name)
		for _, stage := range []string{"widen", "take", "narrow"} {
			_, err := d.PlanClock(context.Background(), &api.PlanClockRequest{Stage: stage, Plan: x.Plan})
			if connect.CodeOf(err) != connect.CodeFailedPrecondition || !strings.Contains(fmt.Sprint(err), "replaced") {
				t.Errorf("%s takes %s of plan %d: %v", name, stage, x.Plan.Epoch, err)
			}
		}
		if now, _ := ringClock(t, name); now.Promised < second.Plan.Epoch || now.Plan.Parent != after[name].Plan.Parent && now.Plan.Epoch <= first.Plan.Epoch {
			t.Errorf("%s: %v", name, now)
		}
	}
	// The link comes back, and is planned with.
	link(t, "gf."+ringName+".s2", "s2-"+broken, netlink.LinkSetUp)
	for n := 0; ; n++ {
		x, s := settled("b")
		if s.Plan.Bare == "" && slices.ContainsFunc(ringSwitches, func(name string) bool { return x[name].Plan.Second != "" }) {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if text := run(gswitch, "show", "clock", "--socket", filepath.Join("/run/gfabric", ringName, "s2.sock")); !strings.Contains(text, "kernel: the XDP program") || !strings.Contains(text, "STAMPS OF WHAT ARRIVES") {
		t.Errorf("show clock says not what its stamps are:\n%s", text)
	}
}
