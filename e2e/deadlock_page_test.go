package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The page's own recipe: three processes run into a deadlock, and Escape, applied
// while it stands, clears it.
func TestDeadlockOfThePage(t *testing.T) {
	need(t, "bash", "ping", "sysctl")
	if os.Geteuid() != 0 {
		t.Skip("needs root, for network namespaces and AF_XDP sockets")
	}
	text, err := os.ReadFile("../docs/OPERATING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, page, ok := strings.Cut(string(text), "\n#### A deadlock to make, and to clear\n")
	steps := strings.Split(page, "```")
	if !ok || len(steps) < 5 {
		t.Fatal("the page has no such recipe")
	}
	dir := checkout(t)
	// Under a name of its own, so that no fabric of the machine is touched.
	name := fmt.Sprintf("circle-%d", os.Getpid())
	t.Cleanup(func() { exec.Command(gfabric, "down", name).Run() })
	step := func(i int) {
		t.Helper()
		script, ok := strings.CutPrefix(steps[i], "bash\n")
		if !ok {
			t.Fatalf("no commands in %q", steps[i])
		}
		script = strings.NewReplacer("--name circle", "--name "+name, "gfabric/circle", "gfabric/"+name, "exec ", "exec --name "+name+" ").Replace(script)
		c := exec.Command("bash", "-e", "-o", "pipefail", "-c", script)
		c.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", script, err, out)
		}
	}
	circles := func() (string, int) {
		c := exec.Command(gfabric, "pfc", "deadlock", name, "--after", "1s")
		out, _ := c.CombinedOutput()
		return string(out), c.ProcessState.ExitCode()
	}

	step(1)
	eventually(t, "a deadlock of a second", func() error {
		if out, code := circles(); code != 1 || !strings.Contains(out, "class 3: s1>s2, s2>s3, s3>s1") {
			return fmt.Errorf("exit code %d: %s", code, out)
		}
		return nil
	})
	step(3)
	eventually(t, "no deadlock", func() error {
		if out, code := circles(); code != 0 || !strings.Contains(out, "no queues wait for each other in a circle") {
			return fmt.Errorf("exit code %d: %s", code, out)
		}
		return nil
	})
	out, err := exec.Command(gswitch, "--socket", "/run/gfabric/"+name+"/s1.sock", "show", "escape", "--json").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "\"arrived\"") {
		t.Errorf("no frame came to s1 on a token: %v\n%s", err, out)
	}
}
