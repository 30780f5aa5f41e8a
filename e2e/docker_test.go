package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// aDocker is a docker daemon of a test's own, without networks and settings of the machine: it touches nothing that
// another one has. The function runs its command.
func aDocker(t *testing.T) func(args ...string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	write(t, in("config.json"), "{}")
	socket := "unix://" + in("s")
	log, err := os.Create(in("log"))
	if err != nil {
		t.Fatal(err)
	}
	d := exec.Command("dockerd", "--config-file", in("config.json"), "--host", socket, "--pidfile", in("pid"),
		"--data-root", in("data"), "--exec-root", in("run"), "--storage-driver", "vfs",
		"--containerd-namespace", "e2e", "--containerd-plugins-namespace", "e2e-plugins",
		"--bridge", "none", "--iptables=false", "--ip6tables=false", "--ip-forward=false")
	d.Stdout, d.Stderr = log, log
	// It ends in order, its containers before it, with the thread that began it.
	d.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGTERM}
	started, ended := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer close(ended)
		err := d.Start()
		started <- err
		if err == nil {
			d.Wait()
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		d.Process.Signal(unix.SIGTERM)
		<-ended
		if text, _ := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("dockerd: %s", text)
		}
		log.Close()
	})
	t.Setenv("DOCKER_HOST", socket)
	t.Setenv("DOCKER_CONFIG", in("client"))
	t.Setenv("DOCKER_BUILDKIT", "0")
	docker := func(args ...string) (string, error) {
		out, err := exec.Command("docker", args...).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("docker %s: %w: %s", strings.Join(args, " "), err, out)
		}
		return strings.TrimSpace(string(out)), err
	}
	eventually(t, "dockerd answers", func() error {
		select {
		case <-ended:
			text, _ := os.ReadFile(log.Name())
			t.Fatalf("dockerd ended: %s", text)
		default:
		}
		_, err := docker("version")
		return err
	})
	return docker
}

// The images that deploy/container makes run in docker as compose.yaml of an export has them, joined by its wire.sh: a
// message crosses the switch, docker stop ends all three within its time, and neither a link nor a namespace is left.
// An older docker has neither BPF nor PERFMON, so that containers have what deploy/README.md says for it.
func TestImagesInDocker(t *testing.T) {
	need(t, append([]string{"dockerd", "docker"}, joining...)...)
	docker := aDocker(t)
	must := func(args ...string) string {
		t.Helper()
		out, err := docker(args...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}

	root := t.TempDir() // as the repository's after make build
	if err := os.MkdirAll(filepath.Join(root, "bin/run"), 0o755); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{gswitch: "bin/gswitch", ghost: "bin/ghost", "../deploy/container/Dockerfile": "Dockerfile"} {
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(filepath.Join(root, to), text, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, image := range []string{"gswitch", "ghost"} {
		must("build", "--network", "none", "--target", image, "-t", image, root)
	}

	lab := filepath.Join(t.TempDir(), "lab")
	export := exec.Command(gfabric, "export", "compose", "star:2", "--hosts", "ghost", "--rate", "100Mbps", "--dir", lab)
	if out, err := export.CombinedOutput(); err != nil {
		t.Fatalf("export: %v\n%s", err, out)
	}
	namespaces := map[string]string{} // of network, by container
	for name, s := range project(t, lab).Services {
		args := []string{"run", "--detach", "--name", s.Container, "--network", s.Network, "--user", "0",
			"--security-opt", "seccomp=unconfined", "--cap-drop", "ALL", "--sysctl", "net.ipv6.conf.all.disable_ipv6=1"}
		for _, c := range []string{"NET_ADMIN", "NET_RAW", "SYS_ADMIN", "IPC_LOCK", "DAC_OVERRIDE"} {
			args = append(args, "--cap-add", c)
		}
		for _, v := range s.Volumes {
			args = append(args, "--volume", filepath.Join(lab, v))
		}
		t.Cleanup(func() {
			if out, err := docker("logs", s.Container); t.Failed() {
				t.Logf("%s: %v\n%s", name, err, out)
			}
			docker("rm", "--force", s.Container)
		})
		must(append(append(args, s.Image), s.Command...)...)
		namespaces[s.Container] = "/proc/" + must("inspect", "--format", "{{.State.Pid}}", s.Container) + "/ns/net"
	}
	for range 2 { // a second time changes nothing
		if out, err := exec.Command(filepath.Join(lab, "wire.sh")).CombinedOutput(); err != nil {
			t.Fatalf("wire.sh: %v\n%s", err, out)
		}
	}
	eventually(t, "the other host answers", func() error {
		_, err := docker("exec", "star-h1", "/ghost", "ping", "10.0.0.2", "--count", "1")
		return err
	})
	must("exec", "star-h1", "/ghost", "send", "--to", "10.0.0.2", "--size", "1MB")
	if out := must("exec", "star-s1", "/gswitch", "show", "ports"); !strings.Contains(out, "eth2") {
		t.Errorf("show ports: %s", out)
	}

	stop := func(container string) {
		t.Helper()
		must("stop", "-t", "60", container)
		if code := must("inspect", "--format", "{{.State.ExitCode}} {{.State.OOMKilled}}", container); code != "0 false" {
			t.Errorf("%s ended with %s", container, code)
		}
	}
	links := func() (string, error) {
		out, err := exec.Command("nsenter", "--net="+namespaces["star-s1"], "ip", "-oneline", "link").CombinedOutput()
		return string(out), err
	}
	if now, err := links(); err != nil || strings.Count(now, "\n") != 3 {
		t.Fatalf("%v: the switch has, of lo and two links,\n%s", err, now)
	}
	stop("star-h1")
	stop("star-h2")
	eventually(t, "links went with the hosts", func() error {
		now, err := links()
		if err == nil && strings.Count(now, "\n") != 1 {
			err = fmt.Errorf("links are\n%s", now)
		}
		return err
	})
	own, err := os.Readlink(namespaces["star-s1"])
	if err != nil {
		t.Fatal(err)
	}
	stop("star-s1")
	eventually(t, "nothing is in the namespace of the switch", func() error {
		all, err := filepath.Glob("/proc/[0-9]*/ns/net")
		for _, p := range all {
			if ns, _ := os.Readlink(p); ns == own {
				err = fmt.Errorf("%s is %s", p, ns)
			}
		}
		return err
	})
}
