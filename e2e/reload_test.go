package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// reloadConfig has everything that the two documents of the test do not share
// in one of two states. The rule for the stream leaves it in its class: in
// another one later frames would rightly overtake those that still wait.
func reloadConfig(ns string, second bool) string {
	rate, acl, routes, vlans, h1 := "1Gbps", "", "", "", "vlan: {access: 1}"
	if second {
		rate = "500Mbps"
		acl = `
        - {seq: 5, name: marked, match: {protocol: udp, dst_port: 9003}, set_class: 0}
        - {seq: 7, match: {dst: 10.66.0.0/16}, action: drop}`
		routes = `
      - {prefix: 10.50.0.0/16, via: 10.3.0.7}
      - {prefix: 10.51.0.0/16, blackhole: true}`
		vlans = "\n      - {id: 30, name: more}"
		h1 = "vlan: {trunk: [1, 30], native: 1}"
	}
	return fmt.Sprintf(`version: 1
switches:
  - name: s1
    ports:
      - {interface: d0, netns: %[1]s, rate: %[2]s, acl: edge, vlan: {access: 1}}
      - {interface: d1, netns: %[1]s, rate: %[2]s, %[3]s}
      - {interface: d2, netns: %[1]s, address: [10.3.0.1/24]}
    vlans:
      - {id: 1, name: hosts, address: [10.2.0.1/24]}%[4]s
    acls:
      edge:%[5]s
        - {seq: 10, match: {dst: 10.99.0.0/16}, action: drop}
    routes:
      - {prefix: 10.40.0.0/16, via: 10.3.0.9}%[6]s
`, ns, rate, h1, vlans, acl, routes)
}

// The configuration changes a hundred times while frames flow, and tables by
// the command line in between. No frame is lost, none is late.
func TestReloadUnderTraffic(t *testing.T) {
	l := newLab(t, 3, labOptions{})
	d, file := runConfig(t, reloadConfig(l.sw, false))
	other := filepath.Join(filepath.Dir(file), "other.yaml")
	a, b := l.hosts[0], l.hosts[1]
	if err := b.raw(t, etherTest).send(testFrame(broadcast, b.mac, -1, 1, 64)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the address is learned", func() error {
		if d.ports()["d1"].RxFrames == 0 {
			return fmt.Errorf("nothing received")
		}
		return nil
	})
	s := startStream(t, a, b, flow{dstIP: [4]byte{10, 2, 0, 3}, srcIP: [4]byte{10, 2, 0, 2}, dstPort: 9003, size: 300}, 3000)
	s.flowing(100)

	const changes = 100
	generation := d.generation()
	for i := range changes {
		second := i%2 == 0
		if i%4 < 2 {
			write(t, other, reloadConfig(l.sw, second))
			out := d.do("apply", "-f", other)
			if !strings.Contains(out, "switches[s1].ports[d0].rate: ") || !strings.Contains(out, "applied (generation ") {
				t.Fatalf("apply printed:\n%s", out)
			}
			generation++
		} else {
			write(t, file, reloadConfig(l.sw, second))
			if err := d.Process.Signal(unix.SIGHUP); err != nil {
				t.Fatal(err)
			}
			generation++
			eventually(t, "SIGHUP is done", func() error {
				if g := d.generation(); g != generation {
					return fmt.Errorf("generation %d, want %d", g, generation)
				}
				return nil
			})
		}
		if i%10 == 5 {
			prefix := fmt.Sprintf("10.70.%d.0/24", i)
			for _, verb := range []string{
				"add route " + prefix + " via 10.3.0.4",
				"set route " + prefix + " via 10.3.0.4 weight 2 via 10.3.0.5",
				"add fdb 02:00:00:00:07:07 d1",
				"set fdb 02:00:00:00:07:07 d0",
				"add neighbor 10.3.0.9 02:00:00:00:00:09",
				"del neighbor 10.3.0.9",
				"del fdb 02:00:00:00:07:07",
				"del route " + prefix,
				"set port d2 --rate 100Mbps",
				"set port d2 --disable",
				"set port d2 --enable",
			} {
				d.do(strings.Fields(verb)...)
				generation++
			}
			d.do("add", "acl", "edge", "{seq: 40, match: {dst: 10.98.0.0/16}, action: drop}")
			d.do("del", "acl", "edge", "40")
			generation += 2
		}
		s.flowing(20)
	}
	if g := d.generation(); g != generation {
		t.Errorf("generation %d, want %d", g, generation)
	}

	// What is wrong changes nothing and says where it is wrong.
	before := d.do("show", "config")
	good := reloadConfig(l.sw, false)
	for _, tc := range []struct {
		name, text, message string
		code                int
	}{
		{"unknown key", strings.Replace(good, "rate: 1Gbps", "speed: 1Gbps", 1), ":5:", 2},
		{"bad unit", strings.Replace(good, "rate: 1Gbps", "rate: 1Gigs", 1), ":5:", 2},
		{"no such list", strings.Replace(good, "acl: edge", "acl: nosuch", 1), ":5:", 2},
		{"duplicate", strings.Replace(good, "interface: d1", "interface: d0", 1), ":6:", 2},
		{"cut off", good[:len(good)/2], "bad.yaml", 2},
		{"no such interface", strings.Replace(good, "interface: d2", "interface: d9", 1), "there is no interface d9", 1},
		{"not for a running daemon", good + "workers: [{poll: spin}]\n", "restart", 1},
	} {
		bad := filepath.Join(filepath.Dir(file), "bad.yaml")
		write(t, bad, tc.text)
		if out, code := d.try("apply", "-f", bad); code != tc.code || !strings.Contains(out, tc.message) {
			t.Errorf("%s: exit code %d, want %d and %q:\n%s", tc.name, code, tc.code, tc.message, out)
		}
		write(t, file, tc.text)
		seen := strings.Count(d.log.String(), "nothing was changed")
		if err := d.Process.Signal(unix.SIGHUP); err != nil {
			t.Fatal(err)
		}
		eventually(t, tc.name+": the refusal is logged", func() error {
			if strings.Count(d.log.String(), "nothing was changed") == seen {
				return fmt.Errorf("log: %s", d.log.String())
			}
			return nil
		})
		s.flowing(20)
	}
	if g := d.generation(); g != generation {
		t.Errorf("bad files made generation %d of %d", g, generation)
	}
	if after := d.do("show", "config"); after != before {
		t.Errorf("bad files changed the configuration:\n%s\nto\n%s", before, after)
	}
	if want := file + ":5:"; !strings.Contains(d.log.String(), want) {
		t.Errorf("the log does not say %s:\n%s", want, d.log.String())
	}
	s.perfect(d)
	// The refusals were logged as errors, as they should.
	d.log.mu.Lock()
	d.log.b = *bytes.NewBufferString(strings.ReplaceAll(d.log.b.String(), `level=ERROR msg="reload: nothing was changed"`, "refused"))
	d.log.mu.Unlock()
	d.stop(l.sw)
	if _, err := os.Stat(d.socket); err == nil {
		t.Error("the socket is left")
	}
}
