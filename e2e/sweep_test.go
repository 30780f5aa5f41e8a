package e2e

import (
	"bufio"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A sweep by two worker processes, of which one is killed while it works, leaves
// the files that a run on this machine leaves, byte for byte but for how long it took.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	write(t, token, "a token of this test\n")
	scenario := []string{"../scenarios/quickstart.yaml", "--short", "--seed", "1,2,3,4", "--set", "workload.burst.size=4MB"}
	local := exec.Command(gfabric, append([]string{"run", "--quiet", "--fresh", "--out", filepath.Join(dir, "local")}, scenario...)...)
	if out, err := local.CombinedOutput(); local.ProcessState == nil {
		t.Fatalf("%v\n%s", err, out)
	}
	address := freePort(t)
	sweep := exec.Command(gfabric, append([]string{"sweep", "--quiet", "--workers", "0", "--listen", address, "--token-file", token, "--out", filepath.Join(dir, "swept")}, scenario...)...)
	var said strings.Builder
	sweep.Stderr = &said
	if err := sweep.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sweep.Process.Kill(); sweep.Wait() })
	worker := func() (*exec.Cmd, *bufio.Scanner) {
		c := exec.Command(gfabric, "worker", "--nats", "nats://"+address, "--token-file", token, "--jobs", "1")
		pipe, err := c.StderrPipe()
		if err == nil {
			err = c.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Process.Kill(); c.Wait() })
		return c, bufio.NewScanner(pipe)
	}
	// One begins with a run and is killed; the other does what is left, and that run.
	for killed := false; !killed; {
		first, log := worker()
		for log.Scan() { // the server may not listen yet: then it ends, and is started again
			if strings.Contains(log.Text(), "msg=begins") {
				first.Process.Kill()
				killed = true
			}
		}
		first.Wait()
	}
	_, log := worker()
	go func() {
		for log.Scan() {
		}
	}()
	if err := sweep.Wait(); err != nil && sweep.ProcessState.ExitCode() != local.ProcessState.ExitCode() {
		t.Fatalf("%v\n%s", err, said.String())
	}
	want, got := files(t, filepath.Join(dir, "local")), files(t, filepath.Join(dir, "swept"))
	if len(want) < 8 || len(want) != len(got) {
		t.Errorf("%d files, want %d", len(got), len(want))
	}
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%s differs", name)
		}
	}
}

// took is how long runs took, and the page with all results.
var took = regexp.MustCompile(`"wall_seconds": [0-9.e-]+`)

// files reads a directory of results.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	v := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "report.html" { // which has results.json in it
			return err
		}
		text, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		v[rel] = took.ReplaceAllString(string(text), "")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return v
}
