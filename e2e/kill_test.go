package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Killed at any moment, the switch leaves nothing on the interfaces, and the
// next one starts at once, on the same socket.
func TestKill(t *testing.T) {
	l := newLab(t, 2, labOptions{})
	for i, h := range l.hosts {
		h.address(t, []string{fmt.Sprintf("10.0.0.%d/24", i+1)})
	}
	document := func(rate string) string {
		return fmt.Sprintf("version: 1\nswitches: [{name: s1, ports: [{interface: d0, netns: %[1]s, rate: %[2]s}, {interface: d1, netns: %[1]s, rate: %[2]s}]}]\n", l.sw, rate)
	}
	dir := t.TempDir()
	socket, file, other := filepath.Join(dir, "sock"), filepath.Join(dir, "switch.yaml"), filepath.Join(dir, "other.yaml")
	write(t, file, document("1Gbps"))
	write(t, other, document("2Gbps"))
	rng := rand.New(rand.NewPCG(20, 1))
	soon := func(most time.Duration) { time.Sleep(time.Duration(rng.Int64N(int64(most)))) }
	seen := map[string]int{}
	for i := range 20 {
		moment := []string{"start", "run", "reload", "shutdown"}[i%4]
		d := launch(t, socket, "-c", file)
		switch moment {
		case "start":
			soon(150 * time.Millisecond)
		case "run":
			d.await()
			l.hosts[i/4%2].pings(t, fmt.Sprintf("10.0.0.%d", 2-i/4%2), 1000)
			soon(5 * time.Millisecond)
		case "reload":
			d.await()
			c := exec.Command(gswitch, "--socket", socket, "apply", "-f", other)
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			defer c.Wait()
			d.Process.Signal(unix.SIGHUP)
			soon(40 * time.Millisecond)
		case "shutdown":
			d.await()
			d.Process.Signal(unix.SIGTERM)
			soon(40 * time.Millisecond)
		}
		d.Process.Kill()
		<-d.done
		if d.ProcessState.ExitCode() == -1 {
			seen[moment]++
		}
		if left := xdpPrograms(t, l.sw); left != nil {
			t.Errorf("killed during %s: programs are left on %v", moment, left)
		}
		if _, err := os.Stat(socket); err == nil {
			seen["stale socket"]++
		}
		// The next one starts at once; every other time it is the next to be killed.
		if i%2 == 1 {
			d := launch(t, socket, "-c", file)
			d.await()
			l.hosts[0].pings(t, "10.0.0.2", 56)
			d.stop(l.sw)
		}
	}
	t.Logf("killed: %v", seen)
	if seen["run"] != 5 || seen["reload"] != 5 || seen["stale socket"] < 10 {
		t.Errorf("the moments were missed: %v", seen)
	}
}
