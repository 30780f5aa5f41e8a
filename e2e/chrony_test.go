package e2e

import (
	"encoding/csv"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gswitch/control"
)

// shmUnit is a unit of NTP's shared memory that nothing else on the machine has.
const shmUnit = 83

// chronyd takes the time of a switch from the shared memory that ghost time fills: it finds
// the source reachable, which it says of one that gives samples alone. It sets no clock (-x).
func TestChronyFollows(t *testing.T) {
	need(t, "chronyd", "chronyc")
	l := newLab(t, 1, labOptions{})
	d, _ := runConfig(t, "version: 1\nswitches: [{name: s1, clock: {root: true}, ports: [{interface: d0, netns: "+l.sw+"}]}]\n")
	t.Cleanup(func() { // the segment outlives the process that made it
		if id, err := unix.SysvShmGet(0x4e545030+shmUnit, 0, 0); err == nil {
			unix.SysvShmCtl(id, unix.IPC_RMID, nil)
		}
	})
	start := func(name string, args ...string) *syncBuffer {
		t.Helper()
		c, out := exec.Command(name, args...), &syncBuffer{}
		c.Stdout, c.Stderr = out, out
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			c.Process.Kill()
			c.Wait()
			if t.Failed() {
				t.Logf("%s: %s", name, out)
			}
		})
		return out
	}
	start(ghost, "time", "--page", control.PagePath(d.socket, "s1"), "--ntp-shm", strconv.Itoa(shmUnit))
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil { // chronyd puts its socket nowhere else
		t.Fatal(err)
	}
	conf, socket := filepath.Join(dir, "chrony.conf"), filepath.Join(dir, "chronyd.sock")
	write(t, conf, "user root\ncmdport 0\nbindcmdaddress "+socket+"\npidfile "+filepath.Join(dir, "pid")+"\nrefclock SHM "+strconv.Itoa(shmUnit)+" refid GSW precision 1e-5 poll 0 dpoll 0\n")
	said := start("chronyd", "-x", "-d", "-f", conf)
	for n := 0; ; n++ {
		// Mode, state, name, stratum, poll, reach (octal: which of the last eight polls had samples), ...
		out, err := exec.Command("chronyc", "-h", socket, "-c", "-n", "sources").Output()
		rows, _ := csv.NewReader(strings.NewReader(string(out))).ReadAll()
		if err == nil && len(rows) == 1 && len(rows[0]) > 5 && rows[0][0] == "#" && rows[0][2] == "GSW" {
			if reach, err := strconv.ParseUint(rows[0][5], 8, 8); err == nil && reach != 0 && rows[0][1] != "?" {
				break // with samples enough to be chosen, or not, among sources
			}
		}
		if n%100 == 99 {
			t.Logf("still %q, %v; %s", out, err, said)
		}
		time.Sleep(100 * time.Millisecond)
	}
}
