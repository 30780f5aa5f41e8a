package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The demo as users run it, where there is no terminal.

// demoFile is the demo's scenario under a name that is no other test's.
func demoFile(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../scenarios/demo.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return aScenario(t, "demo", string(text))
}

// The short form of the demo on real frames: lines meanwhile, the table beside
// the prediction, the page; nothing is left. A run that did not keep time is
// said to be invalid; then the demo is repeated slower.
func TestDemo(t *testing.T) {
	file := demoFile(t)
	for scale := 1000; ; scale *= 4 {
		c := exec.Command(gfabric, "demo", "--scenario", file, "--short", "--json", "--scale", fmt.Sprint(scale), "--out", "out")
		c.Dir = filepath.Dir(file)
		var printed strings.Builder
		c.Stderr = &printed
		out, err := c.Output()
		var v struct {
			Runs []struct {
				Name                string
				Predicted, Measured map[string]float64
			}
			Held    int      `json:"expectations_held"`
			Failed  []string `json:"expectations_failed"`
			Invalid []string
			Report  string
		}
		if wrong := json.Unmarshal(out, &v); wrong != nil {
			t.Fatalf("%v, %v\n%s\n%s", err, wrong, out, printed.String())
		}
		for _, want := range []string{"== DCQCN on real frames\n", "== HPCC on real frames\n", " ended", "report.html", "gfabric run " + file + " --short --on netns --view"} {
			if !strings.Contains(printed.String(), want) {
				t.Errorf("it does not print %q:\n%s", want, printed.String())
			}
		}
		if left := wiresLeft(nameOf(file)); left != nil {
			t.Errorf("left behind: %v", left)
		}
		if len(v.Failed) > 0 || len(v.Runs) != 2 || v.Runs[0].Name != "dcqcn" || v.Runs[1].Name != "hpcc" {
			t.Fatalf("%s\n%s", out, printed.String())
		}
		if len(v.Invalid) > 0 {
			if c.ProcessState.ExitCode() != 1 || !strings.Contains(printed.String(), "INVALID") {
				t.Fatalf("exit code %d of runs that did not keep time\n%s", c.ProcessState.ExitCode(), printed.String())
			}
			if scale < 16_000 {
				t.Logf("%v did not keep time at scale %d, again slower", v.Invalid, scale)
				continue
			}
			t.Skipf("this machine does not keep time: %v", v.Invalid)
		}
		if err != nil || v.Held == 0 {
			t.Errorf("%v, %d expectations held\n%s", err, v.Held, printed.String())
		}
		for _, r := range v.Runs {
			if r.Predicted["fct_p95_seconds"] <= 0 || r.Measured["fct_p95_seconds"] <= 0 {
				t.Errorf("%+v", r)
			}
		}
		page, err := os.ReadFile(filepath.Join(c.Dir, v.Report))
		if err != nil || !strings.Contains(string(page), "hpcc, sim") || !strings.Contains(string(page), "dcqcn, netns") {
			t.Errorf("the page does not have both: %v", err)
		}
		return
	}
}

// A demo that is killed leaves what the next one removes; one that is
// interrupted leaves nothing.
func TestDemoKilled(t *testing.T) {
	file := demoFile(t)
	name := nameOf(file)
	start := func() (*exec.Cmd, fmt.Stringer) {
		c, out := fabricCommand(file, "demo", "--scenario", file, "--scale", "20000", "--out", "out")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Process.Kill(); c.Wait() })
		eventually(t, "programs on the wires", func() error {
			return onTheWires(name, "h1", "h9")
		})
		return c, out
	}
	c, _ := start()
	c.Process.Kill()
	c.Wait()
	if wiresLeft(name) == nil {
		t.Error("the first was not killed in the middle")
	}
	c, out := start()
	c.Process.Signal(syscall.SIGINT)
	c.Wait()
	if code := c.ProcessState.ExitCode(); code != 1 || !strings.Contains(out.String(), "interrupted") {
		t.Errorf("interrupted: exit code %d\n%s", code, out)
	}
	if left := wiresLeft(name); left != nil {
		t.Errorf("left behind: %v", left)
	}
}

// Without root the demo says what it needs and offers what it can show, and
// that works.
func TestDemoWithoutRoot(t *testing.T) {
	scenario, err := os.ReadFile("../scenarios/demo.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir, run := withoutRoot(t, map[string][]byte{"scenarios/demo.yaml": scenario})
	if out, code := run("demo"); code != 1 || !strings.Contains(out, "need root") || !strings.Contains(out, "gfabric demo --on sim") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	out, code := run("demo", "--on", "sim", "--short", "--scale", "1", "--out", "out")
	if code != 0 || !strings.Contains(out, "expectations of scenarios/demo.yaml hold") || !strings.Contains(out, "== HPCC in virtual time") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	if _, err := os.Stat(filepath.Join(dir, "out", "report.html")); err != nil {
		t.Error(err)
	}
}
