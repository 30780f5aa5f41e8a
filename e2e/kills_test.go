package e2e

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// kills is how many times programs are killed: many are asked for by
//
//	go test ./e2e -run TestKilledAnywhere -timeout 0 -kills 1000
var kills = flag.Int("kills", 6, "how many times TestKilledAnywhere kills a program")

// machine is what killed programs could leave on it.
type machine struct {
	programs   int // of BPF
	namespaces []string
	available  uint64 // bytes of memory
}

func machineNow(t *testing.T) (m machine) {
	t.Helper()
	for id := ebpf.ProgramID(0); ; m.programs++ {
		next, err := ebpf.ProgramGetNextID(id)
		if errors.Is(err, os.ErrNotExist) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		id = next
	}
	entries, err := os.ReadDir("/run/netns")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		m.namespaces = append(m.namespaces, e.Name())
	}
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if _, err := fmt.Sscanf(line, "MemAvailable: %d kB", &m.available); err == nil {
			m.available <<= 10
		}
	}
	return m
}

// victim is a program that is started, brought somewhere, and killed there.
type victim struct {
	name   string
	phases []string
	kill   func(phase string)
	clean  func() // starts it as the user would, and ends it: nothing may be in its way
}

// Killed at any moment of anything that they do, the programs leave nothing on
// the machine but a file of a socket, or what the next start takes away.
func TestKilledAnywhere(t *testing.T) {
	l := newLab(t, 4, labOptions{})
	for i, h := range l.hosts[:2] {
		h.address(t, []string{fmt.Sprintf("10.0.0.%d/24", i+1)})
	}
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	rng := rand.New(rand.NewPCG(14, 6))
	soon := func(most time.Duration) { time.Sleep(time.Duration(rng.Int64N(int64(most)))) }
	const settings = "version: 1\nswitches: [{name: s1, ports: [{interface: d0, netns: %[1]s}, {interface: d1, netns: %[1]s, rate: %[2]s}, {interface: d3, netns: %[1]s}]}]\n"
	write(t, at("switch.yaml"), fmt.Sprintf(settings, l.sw, "1Gbps"))
	write(t, at("other.yaml"), fmt.Sprintf(settings, l.sw, "2Gbps"))
	write(t, at("host.yaml"), fmt.Sprintf("version: 1\nname: g3\nnetns: %s\ninterface: eth0\naddress: 10.0.0.4/24\nrate: 100Mbps\nbase_rtt: 2ms\nserve: true\n", l.hosts[3].ns))
	scenario := fmt.Sprintf("%s%d-killed", prefix, os.Getpid())
	write(t, at(scenario+".yaml"), endless)
	fabric := fmt.Sprintf("k%d", os.Getpid())

	// verb begins a verb of the daemon that is to be killed, and may fail with it.
	verb := func(d *daemon, args ...string) {
		c := exec.Command(d.Path, append([]string{"--socket", d.socket}, args...)...)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	}
	// killed starts a daemon, lets it do something, and kills it.
	killed := func(program, socket, file, phase string, act map[string]func(*daemon)) {
		d := launchProgram(t, program, at(socket), "-c", at(file))
		if phase != "start" {
			d.await()
		}
		if f := act[phase]; f != nil {
			f(d)
		}
		soon(80 * time.Millisecond)
		d.Process.Kill()
		<-d.done
		for _, ns := range []string{l.sw, l.hosts[3].ns} {
			if left := xdpPrograms(t, ns); left != nil {
				t.Errorf("%s killed during %s: programs are left on %v", program, phase, left)
			}
		}
	}
	command := func(args ...string) *exec.Cmd {
		c := exec.Command(gfabric, args...)
		c.Dir = dir
		return c
	}
	must := func(args ...string) {
		if out, err := command(args...).CombinedOutput(); err != nil {
			t.Errorf("gfabric %v: %v\n%s", args, err, out)
		}
	}
	up := []string{"up", "star:3", "--name", fabric, "--gswitch", gswitch}
	interrupted := func(most time.Duration, args ...string) {
		c := command(args...)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		soon(most)
		c.Process.Kill()
		c.Wait()
	}
	onSwitch := map[string]func(*daemon){
		"traffic":  func(*daemon) { l.hosts[0].pings(t, "10.0.0.2", 1000) },
		"reload":   func(d *daemon) { d.Process.Signal(unix.SIGHUP) },
		"apply":    func(d *daemon) { verb(d, "apply", "-f", at("other.yaml")) },
		"capture":  func(d *daemon) { verb(d, "capture", "-w", at("c.pcapng")) },
		"record":   func(d *daemon) { verb(d, "record", "start", "--last", "16MiB") },
		"shutdown": func(d *daemon) { d.Process.Signal(unix.SIGTERM) },
	}
	onHost := map[string]func(*daemon){
		"transfer": func(d *daemon) { verb(d, "send", "--to", "10.0.0.2", "--size", "1MB") },
		"reload":   func(d *daemon) { d.Process.Signal(unix.SIGHUP) },
		"capture":  func(d *daemon) { verb(d, "capture", "-w", at("g.pcapng")) },
		"shutdown": func(d *daemon) { d.Process.Signal(unix.SIGTERM) },
	}
	victims := []*victim{
		{"gswitch", []string{"start", "traffic", "reload", "apply", "capture", "record", "shutdown"}, func(phase string) { killed(gswitch, "s.sock", "switch.yaml", phase, onSwitch) }, func() {
			d := launch(t, at("s.sock"), "-c", at("switch.yaml"))
			d.await()
			l.hosts[0].pings(t, "10.0.0.2", 56)
			d.stop(l.sw)
		}},
		{"ghost", []string{"start", "serving", "transfer", "reload", "capture", "shutdown"}, func(phase string) { killed(ghost, "g.sock", "host.yaml", phase, onHost) }, func() {
			d := launchProgram(t, ghost, at("g.sock"), "-c", at("host.yaml"))
			d.await()
			d.do("show", "host")
			d.stop(l.hosts[3].ns)
		}},
		{"gfabric", []string{"up", "down", "run"}, func(phase string) {
			command("down", fabric).Run() // what the kill before this one left
			switch phase {
			case "up":
				interrupted(1500*time.Millisecond, up...)
			case "down":
				must(up...)
				interrupted(300*time.Millisecond, "down", fabric)
			case "run":
				interrupted(3*time.Second, "run", scenario+".yaml", "--on", "netns", "--scale", "1000", "--out", "out", "--fresh", "--quiet")
			}
		}, func() {
			// What is left may be taken away or taken over, as people do.
			command("down", fabric).Run()
			command("down", "run-"+scenario).Run()
			if left := append(wiresLeft(scenario), fabricLeft(fabric)...); left != nil {
				t.Errorf("gfabric down leaves %v", left)
			}
			must(up...)
			must("down", fabric)
		}},
	}
	t.Cleanup(func() {
		command("down", fabric).Run()
		command("down", "run-"+scenario).Run()
	})
	for _, v := range victims { // what is made once is made
		v.clean()
	}
	first, began := machineNow(t), time.Now()
	done := map[string]int{}
	for i := range *kills {
		v := victims[i%len(victims)]
		phase := v.phases[i/len(victims)%len(v.phases)]
		v.kill(phase)
		done[v.name+" "+phase]++
		// Every other one is followed by another start that is killed.
		if i/len(victims)%2 == 1 {
			v.clean()
		}
		if t.Failed() {
			t.Fatalf("after %d kills: %v", i+1, done)
		}
	}
	for _, v := range victims {
		v.clean()
	}
	last := machineNow(t)
	t.Logf("%d kills in %v: %v; memory available %d MiB, before %d MiB; %d BPF programs, before %d", *kills, time.Since(began).Round(time.Second), done,
		last.available>>20, first.available>>20, last.programs, first.programs)
	if !slices.Equal(first.namespaces, last.namespaces) {
		t.Errorf("namespaces are %v, and were %v", last.namespaces, first.namespaces)
	}
	// Others use this machine, too: what each kill left would be more than they.
	if last.programs > first.programs+*kills/10+4 {
		t.Errorf("%d BPF programs, before %d", last.programs, first.programs)
	}
}

// fabricLeft lists what is on the machine of a fabric.
func fabricLeft(name string) []string {
	spaces, _ := filepath.Glob("/run/netns/gf." + name + ".*")
	state, _ := filepath.Glob("/run/gfabric/" + name + "*")
	return append(spaces, state...)
}
