package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gswitch/control/api"
)

// The wall clock is set by years, forward and backward, under a switch and two
// hosts: frames and a message under way take no notice, nothing that was
// learned is forgotten, no port goes down, captures, records and reloads go on,
// and all of them end by their signal.
func TestWallClockIsSet(t *testing.T) {
	l := newLab(t, 4, labOptions{})
	dir := t.TempDir()
	clock := &wallClock{}
	var ports strings.Builder
	for i := range l.hosts {
		fmt.Fprintf(&ports, "      - {interface: d%d, netns: %s, rate: 20Mbps}\n", i, l.sw)
	}
	const document = "version: 1\nswitches:\n  - name: s1\n    lldp: {ports: [d0]}\n    ports:\n"
	file := filepath.Join(dir, "switch.yaml")
	write(t, file, document+ports.String())
	d := clock.launch(t, gswitch, filepath.Join(dir, "s"), "-c", file, "--record", filepath.Join(dir, "records"))
	d.await()
	var ghosts []*daemon
	for i, h := range l.hosts[2:] {
		host := filepath.Join(dir, fmt.Sprintf("g%d.yaml", i))
		write(t, host, fmt.Sprintf("version: 1\nname: g%d\nnetns: %s\ninterface: eth0\naddress: 10.0.0.%d/24\nrate: 10Mbps\nbase_rtt: 20ms\ncongestion: dcqcn\nserve: true\n", i, h.ns, 3+i))
		ghosts = append(ghosts, clock.launch(t, ghost, filepath.Join(dir, fmt.Sprintf("g%d", i)), "-c", host))
		ghosts[i].await()
	}
	s := startStream(t, l.hosts[0], l.hosts[1], flow{srcIP: [4]byte{10, 0, 0, 1}, dstIP: [4]byte{10, 0, 0, 2}, dstPort: 9014, size: 300}, 500)
	back := flow{dst: l.hosts[0].mac, src: l.hosts[1].mac, srcIP: [4]byte{10, 0, 0, 2}, dstIP: [4]byte{10, 0, 0, 1}, dstPort: 9015, size: 300}
	if err := l.hosts[1].raw(t, etherTest).send(back.frame(0)); err != nil {
		t.Fatal(err)
	}
	s.flowing(100)
	dump := d.capture("--in", "-p", "d0")
	send := exec.Command(ghost, "--socket", ghosts[0].socket, "send", "--to", "10.0.0.4", "--size", "1GB")
	var said syncBuffer
	send.Stderr = &said
	if err := send.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { send.Process.Kill(); send.Wait() }()
	sent := func() (uint64, error) {
		for _, f := range asked(ghosts[0], &api.Flows{}, "show", "flows").Flows {
			if f.Direction == "tx" && f.Total == 1e9 {
				return f.Bytes, nil
			}
		}
		return 0, fmt.Errorf("the message is gone; %s", said.String())
	}
	var before uint64
	eventually(t, "the message begins", func() (err error) { before, err = sent(); return err })

	for i, by := range []time.Duration{48 * time.Hour, 20 * 365 * 24 * time.Hour, -40 * 365 * 24 * time.Hour, 0} {
		clock.offset.Store(int64(by))
		s.flowing(100)
		captured := size(dump.file)
		generation := d.generation()
		write(t, file, strings.ReplaceAll(document+ports.String(), "20Mbps", fmt.Sprintf("%dMbps", 21+i)))
		if err := d.Process.Signal(unix.SIGHUP); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the file is read again", func() error {
			if g := d.generation(); g != generation+1 {
				return fmt.Errorf("generation %d, was %d", g, generation)
			}
			return nil
		})
		// It did see the clock that it was given. It logs what changed when it has.
		eventually(t, "the log has the new date", func() error {
			log, day := d.log.String(), clock.now().Format("time=2006-")
			if !strings.Contains(log[strings.LastIndex(log, "time="):], day) {
				return fmt.Errorf("no %s in\n%s", day, log)
			}
			return nil
		})
		if r := asked(ghosts[1], &api.TransferReport{}, "send", "--to", "10.0.0.3", "--size", "20kB").Result; r.VerifiedBytes != 20e3 || r.Corrupt != 0 {
			t.Errorf("at %v: %v", clock.now(), r)
		}
		eventually(t, "the message goes on", func() error {
			n, err := sent()
			if err == nil && n < before+10e3 {
				err = fmt.Errorf("%d bytes, were %d", n, before)
			}
			return err
		})
		eventually(t, "the capture goes on", func() error {
			if n := size(dump.file); n <= captured {
				return fmt.Errorf("%d bytes", n)
			}
			return nil
		})
		for name, p := range d.ports() {
			if p.State != "up" {
				t.Errorf("at %v port %s is %s", clock.now(), name, p.State)
			}
		}
		// A neighbour that has sent nothing since the beginning is known still.
		if !slices.ContainsFunc(show(d, &api.FDB{}, "fdb").Entries, func(e *api.FDBEntry) bool { return e.Mac == l.hosts[1].mac.String() && e.Port == "d1" }) {
			t.Errorf("at %v the address of host 1 is forgotten", clock.now())
		}
		if out := d.do("record", "status"); !strings.Contains(out, " on ") {
			t.Errorf("at %v: %s", clock.now(), out)
		}
	}
	dump.end()
	s.perfect(d)
	d.stop(l.sw)
	for _, g := range ghosts {
		g.stop()
	}
	t.Logf("the wall clock was read %d times", clock.read.Load())
}
