package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	"golang.org/x/sys/unix"

	"gswitch/clocktime"
	"gswitch/control"
)

// composed is a project of docker compose, as far as containers are made of it here.
type composed struct {
	Services map[string]struct {
		Image     string
		Container string `yaml:"container_name"`
		Command   []string
		Volumes   []string
		Network   string `yaml:"network_mode"`
	}
}

// project is what gfabric export wrote into a directory.
func project(t *testing.T, dir string) (p composed) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "compose.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// joining are the programs that the script of an export runs.
var joining = []string{"ip", "nsenter", "unshare", "mount"}

// containers are the services of an exported project, each a process in network and
// mount namespaces of its own, with what a container engine would give it.
func containers(t *testing.T, dir string) (pids map[string]int) {
	t.Helper()
	p := project(t, dir)
	programs := map[string]string{"gswitch": gswitch, "ghost": ghost, "gfabric": gfabric}
	pids = map[string]int{}
	for name, s := range p.Services {
		if s.Network != "none" {
			t.Errorf("%s has the network %q beside its links", name, s.Network)
		}
		script := "set -e\nmount -t tmpfs none /run\nmkdir /run/gswitch /run/ghost\nip link set lo up\n"
		for _, v := range s.Volumes {
			part := strings.Split(v, ":")
			to := filepath.Join("/run/mnt", strings.ReplaceAll(part[1], "/", "_"))
			if strings.HasPrefix(part[1], "/run/") {
				to = part[1]
			}
			if ext := filepath.Ext(part[0]); ext == "" {
				script += fmt.Sprintf("mkdir -p %[2]s\nmount --bind %[1]s %[2]s\n", filepath.Join(dir, part[0]), to)
			} else {
				script += fmt.Sprintf("mkdir -p %[3]s\ntouch %[2]s\nmount --bind %[1]s %[2]s\n", filepath.Join(dir, part[0]), to, filepath.Dir(to))
				for i := range s.Command {
					s.Command[i] = strings.ReplaceAll(s.Command[i], part[1], to)
				}
			}
		}
		script += `exec "$@"`
		args := append([]string{"--mount", "--net", "--propagation", "private", "sh", "-c", script, "sh", programs[s.Image]}, s.Command...)
		c := exec.Command("unshare", args...)
		c.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
		log, err := os.Create(filepath.Join(dir, name+".log"))
		if err != nil {
			t.Fatal(err)
		}
		c.Stdout, c.Stderr = log, log
		started, ended := make(chan error), make(chan struct{})
		go func() {
			runtime.LockOSThread() // the signal above comes when the thread dies
			defer close(ended)
			err := c.Start()
			started <- err
			if err == nil {
				c.Wait()
			}
		}()
		if err := <-started; err != nil {
			t.Fatal(err)
		}
		pids[s.Container] = c.Process.Pid
		eventually(t, s.Container+" has namespaces of its own", func() error {
			own, err := os.Readlink("/proc/self/ns/net")
			if err != nil {
				return err
			}
			its, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", c.Process.Pid))
			if err == nil && its == own {
				err = fmt.Errorf("it is still in %s", own)
			}
			return err
		})
		t.Cleanup(func() {
			c.Process.Signal(unix.SIGTERM)
			select {
			case <-ended:
			case <-time.After(5 * patience): // the kernel may be busy with namespaces that ended before
				t.Errorf("%s does not end: its goroutines follow", name)
				c.Process.Signal(unix.SIGQUIT)
				<-ended
			}
			if t.Failed() {
				text, _ := os.ReadFile(log.Name())
				t.Logf("%s: %s", name, text)
			}
			log.Close()
		})
	}
	return pids
}

// join runs the script that makes the links, with a docker that returns the processes.
func join(t *testing.T, dir string, pids map[string]int) {
	t.Helper()
	script := "#!/bin/sh\ncase $4 in\n"
	for name, pid := range pids {
		script += name + ") echo " + strconv.Itoa(pid) + ";;\n"
	}
	script += "*) exit 1;;\nesac\n"
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "docker"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 { // a second time changes nothing
		c := exec.Command(filepath.Join(dir, "wire.sh"))
		c.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("wire.sh: %v\n%s", err, out)
		}
	}
}

// A scenario's nodes are containers that gfabric export wrote, and gfabric collect
// has them run it, twice: all flows end, every byte is counted, and the results are
// like those of other engines.
func TestContainers(t *testing.T) {
	need(t, joining...)
	file := aScenario(t, "contained", withStream)
	dir := filepath.Join(filepath.Dir(file), "lab")
	if c, out := fabricCommand(file, "export", "compose", file, "--dir", dir); c.Run() != nil {
		t.Fatalf("export: %s", out)
	}
	join(t, dir, containers(t, dir))
	for seed := 1; seed <= 2; seed++ {
		to := fmt.Sprintf("out-%d", seed)
		c, out := fabricCommand(file, "collect", dir, "--scale", "2000", "--out", to, "--seed", strconv.Itoa(seed))
		r := lateOrNot(t, c, out, filepath.Join(filepath.Dir(file), to))
		var names []string
		for _, w := range r.Timing.Workers {
			names = append(names, w.Name)
		}
		if each := []string{"leaf1", "leaf2", "spine1", "h1", "h2", "h3", "h4"}; r.Engine != "containers" || !slices.Equal(names, each) {
			t.Errorf("a run on %s, with workers %v, want %v", r.Engine, names, each)
		}
	}
	c, out := fabricCommand(file, "collect", dir, "--scale", "2000", "--out", "changed", "--set", "topology.generate=leaf-spine(1,2,3)", "--wait", "1s")
	if c.Run() == nil || !strings.Contains(out.String(), "h5: it takes no runs") {
		t.Errorf("of another network: %s", out)
	}
}

// The daemons of an exported topology carry a message between its hosts, and keep one time:
// the root's lies in what the clock of each container says.
func TestContainersOfTopology(t *testing.T) {
	need(t, joining...)
	dir := filepath.Join(t.TempDir(), "lab")
	if out, err := exec.Command(gfabric, "export", "compose", "leaf-spine:1,2,1", "--mode", "l3", "--hosts", "ghost", "--rate", "100Mbps", "--dir", dir).CombinedOutput(); err != nil {
		t.Fatalf("export: %v\n%s", err, out)
	}
	for node, c := range map[string][2]string{"spine1": {"  - name: spine1\n", "    clock: {root: true}\n"}, "leaf1": {"  - name: leaf1\n", "    clock: {parent: spine1}\n"}, "h1": {"version: 1\n", "clock: {}\n"}} {
		file := filepath.Join(dir, "leaf-spine", node+".yaml")
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), c[0]) {
			t.Fatalf("%v, no %q in\n%s", err, c[0], text)
		}
		write(t, file, strings.Replace(string(text), c[0], c[0]+c[1], 1))
	}
	pids := containers(t, dir)
	join(t, dir, pids)
	in := func(node, program string, args ...string) (string, error) {
		args = append([]string{"-t", strconv.Itoa(pids["leaf-spine-"+node]), "--net", "--mount", program}, args...)
		out, err := exec.Command("nsenter", args...).CombinedOutput()
		return string(out), err
	}
	inside := func(args ...string) (string, error) { return in("h1", ghost, args...) }
	eventually(t, "the other host answers", func() error {
		if out, err := inside("ping", "10.0.1.2", "--count", "1"); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	out, err := inside("send", "--to", "10.0.1.2", "--size", "100KB", "--json")
	if err != nil {
		t.Fatalf("send: %v\n%s", err, out)
	}
	eventually(t, "the clocks follow the root", func() error {
		out, err := in("leaf1", gswitch, "show", "clock")
		// Of a machine that was late for long it is the second parent's state.
		if err == nil && !strings.Contains(out, "state primary") && !strings.Contains(out, "state backup") {
			err = errors.New("it does not")
		}
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	var pages []*clocktime.Clock
	for _, node := range []string{"spine1", "leaf1", "h1"} {
		c, err := clocktime.Open(fmt.Sprintf("/proc/%d/root%s", pids["leaf-spine-"+node], control.PagePath("/run/"+map[bool]string{true: "ghost", false: "gswitch"}[node == "h1"]+"/x", node)))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		pages = append(pages, c)
	}
	boundHolds(t, 100, pages[0], pages[1:], func() string {
		out, err := in("leaf1", gswitch, "show", "clock")
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return out
	})
}
