package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gswitch/dataplane/xsk/xsktest"
)

// frr is where Debian and others have the daemons of FRR.
const frr = "/usr/lib/frr"

func needFRR(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(frr, "zebra")); err != nil {
		t.Skip("needs FRR (frr)")
	}
}

// startFRR runs zebra and other daemons of FRR in a namespace, in a file system of their own where they keep their
// sockets, until the test ends or stop is called.
func startFRR(t *testing.T, ns string, daemons map[string]string) (stop func()) {
	t.Helper()
	dir := t.TempDir()
	// They drop root, and must still reach their files.
	if err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	var stops []func()
	start := func(name, conf string) {
		own := filepath.Join(dir, name)
		file := filepath.Join(own, "frr.conf")
		if err := errors.Join(os.Mkdir(own, 0o755), os.WriteFile(file, []byte(conf), 0o644)); err != nil {
			t.Fatal(err)
		}
		chownTo(t, "frr", own)
		var out syncBuffer
		// In a namespace of mounts of its own, since all look for zebra in /run/frr.
		script := fmt.Sprintf(`mkdir -p /run/frr && mount --bind %s /run/frr && exec %s/%s -f %s -i %s/pid -z %s/zebra/zserv --vty_socket %s -A 127.0.0.1 -P 0 --log stdout`, own, frr, name, file, own, dir, own)
		c := exec.Command("sh", "-c", script)
		c.SysProcAttr = &unix.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}
		c.Stdout, c.Stderr = &out, &out
		in(t, ns, c.Start)
		stops = append(stops, func() {
			c.Process.Signal(unix.SIGTERM) // it takes its routes back
			c.Wait()
			if t.Failed() {
				t.Logf("%s in %s:\n%s", name, ns, out.String())
			}
		})
	}
	ended := false
	stop = func() {
		if ended {
			return
		}
		ended = true
		for i := len(stops) - 1; i >= 0; i-- {
			stops[i]()
		}
	}
	t.Cleanup(stop)
	start("zebra", "hostname zebra\n")
	eventually(t, "zebra in "+ns, func() error {
		_, err := os.Stat(filepath.Join(dir, "zebra", "zserv"))
		return err
	})
	for name, conf := range daemons {
		start(name, conf)
	}
	return stop
}

// chownTo gives a file to a user that a package made.
func chownTo(t *testing.T, name, path string) {
	t.Helper()
	u, err := user.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	if err := errors.Join(err1, err2, os.Chown(path, uid, gid)); err != nil {
		t.Fatal(err)
	}
}

// frrBGP and frrOSPF are what the daemons of FRR are to do behind switch i, whose neighbour is the other one.
func frrBGP(i int) map[string]string {
	return map[string]string{"bgpd": fmt.Sprintf(`router bgp 6500%[1]d
 bgp router-id %[1]d.%[1]d.%[1]d.%[1]d
 no bgp ebgp-requires-policy
 timers bgp 1 5
 neighbor 10.1.0.%[2]d remote-as 6500%[2]d
 neighbor 10.1.0.%[2]d timers connect 1
 neighbor fd01::%[2]d remote-as 6500%[2]d
 neighbor fd01::%[2]d timers connect 1
 address-family ipv4 unicast
  redistribute connected
  no neighbor fd01::%[2]d activate
 exit-address-family
 address-family ipv6 unicast
  redistribute connected
  neighbor fd01::%[2]d activate
 exit-address-family
`, i, 3-i)}
}

func frrOSPF(i int) map[string]string {
	return map[string]string{"ospfd": fmt.Sprintf(`interface up
 ip ospf area 0
 ip ospf hello-interval 1
 ip ospf dead-interval 10
 ip ospf network point-to-point
interface h
 ip ospf area 0
 ip ospf passive
router ospf
 ospf router-id %[1]d.%[1]d.%[1]d.%[1]d
`, i), "ospf6d": fmt.Sprintf(`interface up
 ipv6 ospf6 area 0
 ipv6 ospf6 hello-interval 1
 ipv6 ospf6 dead-interval 10
 ipv6 ospf6 network point-to-point
interface h
 ipv6 ospf6 area 0
 ipv6 ospf6 passive
router ospf6
 ospf6 router-id %[1]d.%[1]d.%[1]d.%[1]d
`, i)}
}

// FRR behind two switches, as BIRD in TestRoutingDaemons: BGP and OSPF of both IP versions, and one switch has FRR
// where the other has BIRD.
func TestFRR(t *testing.T) {
	needFRR(t)
	need(t, "bird")
	l := newLab(t, 2, labOptions{ipv6: true})
	for i, h := range l.hosts {
		h.address(t, []string{fmt.Sprintf("10.0.%d.2/24", i), fmt.Sprintf("fd00:%d::2/64", i)}, fmt.Sprintf("10.0.%d.1", i), fmt.Sprintf("fd00:%d::1", i))
	}
	b1, b2 := l.sw+"-b1", l.sw+"-b2"
	xsktest.NetNS(t, b1)
	xsktest.NetNS(t, b2)
	d, _ := runConfig(t, fmt.Sprintf(twins, l.sw, b1, b2))
	a, b := l.hosts[0], l.hosts[1]
	carries := func(t *testing.T) {
		d.awaitLearned(t, true)
		a.pings(t, "10.0.1.2", 56)
		b.pings(t, "fd00:0::2", 56)
		transfer(t, a, b, "10.0.1.2", 1<<20)
	}
	t.Run("BGP", func(t *testing.T) {
		one, two := startFRR(t, b1, frrBGP(1)), startFRR(t, b2, frrBGP(2))
		carries(t)
		one()
		two()
		d.awaitLearned(t, false)
	})
	t.Run("OSPF", func(t *testing.T) {
		one, two := startFRR(t, b1, frrOSPF(1)), startFRR(t, b2, frrOSPF(2))
		carries(t)
		one()
		two()
		d.awaitLearned(t, false)
	})
	t.Run("BGP with BIRD", func(t *testing.T) {
		one, two := startFRR(t, b1, frrBGP(1)), startBird(t, b2, fmt.Sprintf(speakBGP, 2, 1))
		two.up("four", "six")
		carries(t)
		one()
		two.stop()
		d.awaitLearned(t, false)
	})
	if out := d.do("show", "routes"); strings.Contains(out, "learned") {
		t.Errorf("routes are left:\n%s", out)
	}
	d.stop(l.sw)
}
