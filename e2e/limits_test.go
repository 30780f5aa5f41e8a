package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"gswitch/control/api"
	"gswitch/wire"
)

// show limits shows which port's addresses fill a table, and how many were refused; so
// does ghost of its sessions.
func TestShowLimits(t *testing.T) {
	l := newLab(t, 3, labOptions{})
	d, _ := runConfig(t, fmt.Sprintf("version: 1\nswitches: [{name: s1, fdb: {max: 64}, ports: [{interface: d0, netns: %[1]s}, {interface: d1, netns: %[1]s}]}]\n", l.sw))
	r := l.hosts[0].raw(t, etherTest)
	const stations = 100
	for i := range stations {
		if err := r.send(testFrame(l.hosts[1].mac, wire.MAC{2, 0, 0, 0, 7, byte(i)}, -1, uint64(i), 64)); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the port has its share", func() error {
		for _, e := range show(d, &api.Limits{}, "limits", "d0").Limits {
			if e.Key == "fdb.per_port" && e.Used == 32 && e.Limit == 32 && e.Refused == stations-32 {
				return nil
			}
		}
		return fmt.Errorf("%s", d.do("show", "limits"))
	})
	out := strings.Join(strings.Fields(d.do("show", "limits")), " ")
	for _, want := range []string{"forwarding database, learned at the port d0 32 32 68 fdb.per_port", "connections at " + d.socket, "packet memory", "lines of the log in the last second"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	g := launchProgram(t, ghost, filepath.Join(t.TempDir(), "sock"), "--netns", l.hosts[2].ns, "--port", "eth0", "--addr", "10.0.0.3/24", "--serve")
	g.await()
	if out := g.do("show", "limits"); !strings.Contains(out, "sessions that others opened") || !strings.Contains(out, "256") {
		t.Errorf("ghost show limits:\n%s", out)
	}
	g.stop()
	d.stop(l.sw)
}

// A daemon of bumps reports the same of what it bounds.
func TestShowLimitsOfBumps(t *testing.T) {
	n := newBumpNet(t, 2, 2)
	eventually(t, "a channel is open and counted", func() error {
		n.hosts[0].pings(t, "10.0.0.2", 1)
		seen := map[string]*api.Limit{}
		for _, e := range asked(n.bumps[0], &api.Limits{}, "show", "limits").Limits {
			seen[e.Name] = e
		}
		for name, limit := range map[string]uint64{"packets that wait in channels": 0, "channels of five-tuples": 512, "channels of hosts": 512, "peers": 1024} {
			if e := seen[name]; e == nil || e.Switch != "b0" || e.Limit == 0 || limit > 0 && e.Limit != limit {
				t.Fatalf("%s: %v", name, e)
			}
		}
		if seen["peers"].Used != 1 || seen["channels of five-tuples"].Used+seen["channels of hosts"].Used == 0 {
			return fmt.Errorf("%v", seen)
		}
		return nil
	})
	out := strings.Join(strings.Fields(n.bumps[0].do("show", "limits")), " ")
	for _, want := range []string{"connections at " + n.bumps[0].socket, "packet memory", "captures", "open files", "requests under way", "lines of the log in the last second"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if out, code := n.bumps[0].try("show", "limits", "--host", "nobody"); code == 0 || !strings.Contains(out, `there is no host "nobody"`) {
		t.Errorf("limits of nobody: exit code %d\n%s", code, out)
	}
}
