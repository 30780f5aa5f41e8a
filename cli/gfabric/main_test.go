package gfabric

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/vishvananda/netlink"
)

const testPrefix = "fabcmd-"

// binDir is where the commands are built; set by TestMain.
var binDir string

// build builds gfabric and gswitch, once.
var build = sync.OnceValue(func() error {
	for _, name := range []string{"gswitch", "gfabric"} {
		cmd := exec.Command("go", "build", "-o", filepath.Join(binDir, name), "gswitch/cmd/"+name)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("go build %s: %w\n%s", name, err, out)
		}
	}
	return nil
})

func TestMain(m *testing.M) {
	var err error
	if binDir, err = os.MkdirTemp("", "gfabric-test"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(binDir)
	os.Exit(code)
}

// testLab is the built gfabric, for tests that need root.
type testLab struct {
	name string // of its fabric
}

func newLab(t *testing.T, name string) *testLab {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	if err := build(); err != nil {
		t.Fatal(err)
	}
	l := &testLab{testPrefix + name}
	t.Cleanup(func() { l.run(t, "down", l.name) })
	return l
}

// run runs gfabric and returns its standard output and its exit code.
func (l *testLab) run(t *testing.T, args ...string) (string, int) {
	t.Helper()
	cmd := exec.Command(filepath.Join(binDir, "gfabric"), args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if errs.Len() > 0 {
		t.Logf("gfabric %s:\n%s", strings.Join(args, " "), errs.String())
	}
	return out.String(), cmd.ProcessState.ExitCode()
}

// must is run for commands that have to work.
func (l *testLab) must(t *testing.T, args ...string) string {
	t.Helper()
	out, code := l.run(t, args...)
	if code != 0 {
		l.log(t)
		t.Fatalf("gfabric %s: exit code %d\n%s", strings.Join(args, " "), code, out)
	}
	return out
}

// log shows what the switches said, for a test that fails.
func (l *testLab) log(t *testing.T) {
	logs, _ := filepath.Glob("/run/gfabric/" + l.name + "/*.log")
	for _, path := range logs {
		text, _ := os.ReadFile(path)
		t.Logf("%s:\n%s", path, text[max(0, len(text)-4000):])
	}
}

// machine lists what a fabric of these tests could leave behind.
func machine(t *testing.T) []string {
	t.Helper()
	var v []string
	for _, pattern := range []string{"/run/netns/gf." + testPrefix + "*", "/run/gfabric/" + testPrefix + "*"} {
		found, _ := filepath.Glob(pattern)
		v = append(v, found...)
	}
	links, err := netlink.LinkList()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		if strings.Contains(l.Attrs().Name, "leaf") || strings.HasPrefix(l.Attrs().Name, "s1-") {
			v = append(v, "link "+l.Attrs().Name)
		}
	}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		if env, _ := os.ReadFile(d + "/environ"); bytes.Contains(env, []byte("GFABRIC=gfabric:"+testPrefix)) {
			v = append(v, d)
		}
	}
	return v
}

// The switches are real: from every kind of fabric a host reaches the others
// by name over both versions of IP, TCP arrives unharmed, nothing stays.
func TestFabric(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		last string // the host farthest from h1
	}{
		{"star", []string{"star:3"}, "h3"},
		{"line", []string{"line:3", "--rate", "500Mbps"}, "h3"},
		{"spine", []string{"leaf-spine:2,3,1", "--rate", "500Mbps"}, "h3"},
		{"each", []string{"leaf-spine:2,2,1", "--processes", "each", "--poll", "sleep"}, "h2"},
		{"routed", []string{"dumbbell:1,1", "--mode", "l3", "--mtu", "3000"}, "h2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, c.name)
			before := machine(t)
			l.must(t, append([]string{"up", "--name", l.name}, c.args...)...)
			in := func(host string, args ...string) []string {
				return append([]string{"exec", "--name", l.name, host, "--"}, args...)
			}
			self := filepath.Join(binDir, "gfabric")
			ok := true
			for _, version := range []string{"-4", "-6"} {
				if out, code := l.run(t, in("h1", self, "load", "ping", version, "--interval", "50ms", "--timeout", "2s", c.last)...); code != 0 {
					t.Errorf("ping %s: %s", version, out)
					ok = false
				}
			}
			server := exec.Command(self, in(c.last, self, "load", "serve")...)
			out, err := server.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := server.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				server.Process.Kill()
				server.Wait()
			}()
			if n, err := out.Read(make([]byte, 64)); err != nil || n == 0 {
				t.Fatalf("the server does not get ready: %v", err)
			}
			for _, bytes := range []string{"3", "4000000"} {
				text, code := l.run(t, in("h1", self, "load", "stream", "--json", "--streams", "2", "--time", "0", "--bytes", bytes, c.last)...)
				if code != 0 {
					t.Errorf("stream: exit code %d %s", code, text)
					ok = false
				}
			}
			if text, code := l.run(t, in("h1", self, "load", "ping", "--count", "1", c.last)...); code != 0 || !strings.Contains(text, "1 answered") {
				t.Errorf("load ping by name: exit code %d %s", code, text)
			}
			if text, code := l.run(t, in("h1", self, "load", "ping", "--count", "1", "--timeout", "10ms", "203.0.113.9")...); code != exitFailed || strings.Contains(text, "min") {
				t.Errorf("load ping of nobody: exit code %d %s", code, text)
			}
			for _, args := range [][]string{
				in("h1", "sh", "-c", "exit 7"),
				{"exec", "h1", "--name", l.name, "--", "sh", "-c", "exit 7"},
				{"exec", "h1", "--name=" + l.name, "sh", "-c", "exit 7"},
			} {
				if _, code := l.run(t, args...); code != 7 {
					t.Errorf("gfabric %s: the exit code 7 became %d", strings.Join(args, " "), code)
				}
			}
			if _, code := l.run(t, in("h1", "no-such-program")...); code != 127 {
				t.Errorf("a program that is not there: exit code %d", code)
			}
			var list []struct {
				Healthy  bool
				Problems []string
			}
			if err := json.Unmarshal([]byte(l.must(t, "status", "--json", "--name", l.name)), &list); err != nil || len(list) != 1 || !list[0].Healthy {
				t.Errorf("status %+v, %v", list, err)
				ok = false
			}
			if !ok {
				l.log(t)
			}
			l.must(t, "down", l.name)
			if d := cmp.Diff(before, machine(t)); d != "" {
				t.Errorf("left behind (+):\n%s", d)
			}
		})
	}
}

// Prometheus reads the switches of a fabric where up says, gswitch by the
// socket that status shows.
func TestListen(t *testing.T) {
	l := newLab(t, "listen")
	before := machine(t)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	l.must(t, "up", "--name", l.name, "--listen", address, "line:2")
	l.must(t, "exec", "--name", l.name, "h1", "--", filepath.Join(binDir, "gfabric"), "load", "ping", "--count", "1", "--timeout", "2s", "h2")
	r, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil || !bytes.Contains(text, []byte(`switch="s2"`)) {
		t.Errorf("metrics: %v\n%.2000s", err, text)
	}
	status := l.must(t, "status", "--name", l.name)
	socket := "/run/gfabric/" + l.name + "/gswitch.sock"
	for _, want := range []string{"http://" + address + "/metrics", socket} {
		if !strings.Contains(status, want) {
			t.Errorf("status does not name %s:\n%s", want, status)
		}
	}
	if out, err := exec.Command(filepath.Join(binDir, "gswitch"), "--socket", socket, "show", "ports").CombinedOutput(); err != nil || !bytes.Contains(out, []byte("s2")) {
		t.Errorf("gswitch show ports: %v\n%s", err, out)
	}
	l.must(t, "down", l.name)
	if d := cmp.Diff(before, machine(t)); d != "" {
		t.Errorf("left behind (+):\n%s", d)
	}
}

// Three links of 5 ms make a round trip of no less than 30 ms.
func TestDelay(t *testing.T) {
	l := newLab(t, "delay")
	l.must(t, "up", "--name", l.name, "line:2", "--delay", "5ms")
	var r struct {
		Count int
		Min   float64 `json:"min_us"`
	}
	out := l.must(t, "exec", "--name", l.name, "h1", "--", filepath.Join(binDir, "gfabric"), "load", "ping", "--json", "10.0.0.2")
	if err := json.Unmarshal([]byte(out), &r); err != nil || r.Count != 3 || r.Min < 30000 {
		t.Errorf("%v, %s", err, out)
	}
}

// All switches of a fabric are recorded, and each replays alone.
func TestUpRecords(t *testing.T) {
	l := newLab(t, "record")
	dir := t.TempDir()
	l.must(t, "up", "--name", l.name, "line:2", "--record", dir)
	l.must(t, "exec", "--name", l.name, "h1", "--", filepath.Join(binDir, "gfabric"), "load", "ping", "10.0.0.2")
	l.must(t, "down", l.name)
	files, _ := filepath.Glob(filepath.Join(dir, "*.grec"))
	if len(files) != 2 {
		t.Fatalf("the records of two switches: %v", files)
	}
	for _, file := range files {
		for want, until := range map[string][]string{": identical": nil, "nothing to compare": {"--until", "sent >= 6"}} {
			cmd := exec.Command(filepath.Join(binDir, "gfabric"), append([]string{"replay", file}, until...)...)
			if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
				t.Errorf("%v: %v: %s", until, err, out)
			}
		}
	}
	if _, code := l.run(t, "up", "--name", l.name, "line:2", "--record-last", "8MiB"); code != 2 {
		t.Errorf("--record-last without a directory: exit code %d", code)
	}
}

// The demo works with the machine's ping and iperf3 and, where these are
// missing, with our own.
func TestDemo(t *testing.T) {
	for name, path := range map[string]string{"demo": os.Getenv("PATH"), "own": "/nonexistent"} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, name)
			t.Setenv("PATH", path)
			before := machine(t)
			out := l.must(t, "demo", "fabric", "--name", l.name, "--time", "2s", "--rate", "20Mbps")
			for _, want := range []string{"ping: 62 pairs", " 0 lost", "throughput in Mb/s", "P99", "drops by reason", "pauses", "lateness in ms", "All 62 pings answered"} {
				if !strings.Contains(out, want) {
					t.Errorf("the demo does not show %q:\n%s", want, out)
				}
			}
			if name == "own" && !strings.Contains(out, "by gfabric load") {
				t.Errorf("it does not say that it used its own tools:\n%s", out)
			}
			if d := cmp.Diff(before, machine(t)); d != "" {
				t.Errorf("left behind (+):\n%s", d)
			}
		})
	}
}

// Every verb says in its help how it is used.
func TestExamples(t *testing.T) {
	root, _ := command()
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Example == "" || !strings.Contains(c.Example, c.Name()) {
			t.Errorf("%s has no example", c.CommandPath())
		}
		for line := range strings.Lines(c.Example) {
			if len(line) > 80 {
				t.Errorf("%s: %d columns: %s", c.CommandPath(), len(line), line)
			}
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root)
}

func TestExitCodes(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.yaml")
	if err := os.WriteFile(bad, []byte("version: 1\nhots: [a]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{"--help"}, 0},
		{[]string{"--version"}, 0},
		{[]string{"version"}, 0},
		{[]string{"plan", "leaf-spine:2,4,2"}, 0},
		{[]string{"plan", "--config", "ring:4"}, 0},
		{[]string{"graph", "fat-tree:4"}, 0},
		{[]string{"graph", "--format", "dot", "star:2"}, 0},
		{[]string{"graph", "--format", "mermaid", "star:2"}, 0},
		{[]string{"plan", bad}, exitUsage},
		{[]string{"plan", "star:x"}, exitUsage},
		{[]string{"plan", "star:2", "--mode", "l4"}, exitUsage},
		{[]string{"plan", "star:2", "--poll", "often"}, exitUsage},
		{[]string{"plan", filepath.Join(dir, "absent.yaml")}, exitUsage},
		{[]string{"plan", "ring:4", "--mode", "l2"}, exitUsage},
		{[]string{"down", "no-such-fabric-here"}, 0},
		{[]string{"status", "--name", "no-such-fabric-here"}, exitFailed},
		{[]string{"exec", "--name", "no-such-fabric-here", "h1", "--", "true"}, exitFailed},
		{[]string{"up"}, exitUsage},
		{[]string{"no-such-command"}, exitUsage},
		{[]string{"status", "--no-such-flag"}, exitUsage},
		{[]string{"plan", "star:2", "--rate", "5"}, exitUsage},
		{[]string{"plan", "star:2", "--processes", "two"}, exitUsage},
		{[]string{"plan", "star:2", "--listen", "127.0.0.1:9100", "--processes", "each"}, exitUsage},
		{[]string{"plan", "star:2", "--listen", "nowhere"}, exitUsage},
		{[]string{"graph", "star:2", "--format", "png"}, exitUsage},
		{[]string{"down", "--all", "x"}, exitUsage},
		{[]string{"exec"}, exitUsage},
		{[]string{"run", "../../scenarios/quickstart.yaml", "--jobs", "-1"}, exitUsage},
		{[]string{"run", "../../scenarios/quickstart.yaml", "--cores", "-1"}, exitUsage},
		{[]string{"exec", "h1"}, exitUsage},
		{[]string{"exec", "h1", "--no-such-flag", "true"}, exitUsage},
		{[]string{"exec", "h1", "--name", "no-such-fabric-here", "--", "true"}, exitFailed},
		{[]string{"exec", "h1", "--help"}, 0},
		{[]string{"exec", "h1", "--"}, exitUsage},
	} {
		if slices.Contains(c.args, "down") && os.Geteuid() != 0 {
			continue
		}
		stdout, stderr := os.Stdout, os.Stderr
		null, _ := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		os.Stdout, os.Stderr = null, null
		code := run(c.args)
		os.Stdout, os.Stderr = stdout, stderr
		null.Close()
		if code != c.code {
			t.Errorf("gfabric %s: exit code %d, want %d", strings.Join(c.args, " "), code, c.code)
		}
	}
}
