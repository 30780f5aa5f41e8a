package gfabric

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gswitch/cc"
)

// gfabric runs the built command and returns both outputs together and the
// exit code.
func gfabric(t *testing.T, args ...string) (string, int) {
	t.Helper()
	if err := build(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(binDir, "gfabric"), args...)
	out, _ := cmd.CombinedOutput()
	return string(out), cmd.ProcessState.ExitCode()
}

func TestCCListNamesEveryAlgorithm(t *testing.T) {
	out, code := gfabric(t, "cc", "list")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	infos := cc.Infos()
	if len(lines) != len(infos)+1 {
		t.Fatalf("%d lines for %d algorithms", len(lines), len(infos))
	}
	for i, in := range infos {
		line := lines[i+1]
		if strings.Fields(line)[0] != in.Name || !strings.Contains(line, in.Kind) || !strings.Contains(line, in.Needs.String()) || !strings.Contains(line, in.Cite) || len(line) > 80 {
			t.Errorf("%s is listed as %q", in.Name, line)
		}
	}
	text, code := gfabric(t, "cc", "list", "--json")
	var list []cc.Info
	if err := json.Unmarshal([]byte(text), &list); err != nil || code != 0 || len(list) != len(infos) || len(list[0].Params) != len(infos[0].Params) {
		t.Errorf("--json: exit code %d, %d algorithms, %v", code, len(list), err)
	}
}

func TestCCShowListsEveryOption(t *testing.T) {
	for _, in := range cc.Infos() {
		out, code := gfabric(t, "cc", "show", in.Name)
		if code != 0 {
			t.Fatalf("%s: exit code %d: %s", in.Name, code, out)
		}
		for _, line := range strings.Split(out, "\n") {
			if len(line) > 80 && !strings.HasPrefix(line, "paper") {
				t.Errorf("%s: a line of %d characters: %s", in.Name, len(line), line)
			}
		}
		out = words(out)
		if !strings.Contains(out, words(in.Title)) || !strings.Contains(out, words(in.Paper)) || !strings.Contains(out, words(in.Note)) {
			t.Errorf("%s: title, paper or note is not shown", in.Name)
		}
		for _, p := range in.Params {
			for _, want := range []string{p.Name + " (" + string(p.Unit) + ") " + p.Doc, "default " + p.Default, "source " + p.Source} {
				if !strings.Contains(out, words(want)) {
					t.Errorf("%s: %q is not shown", in.Name, want)
				}
			}
		}
	}
	text, code := gfabric(t, "cc", "show", "dcqcn-original", "--json")
	var in cc.Info
	if err := json.Unmarshal([]byte(text), &in); err != nil || code != 0 || in.Of != "dcqcn" || in.Preset["ti"] != "55us" || len(in.Params) == 0 {
		t.Errorf("--json: exit code %d, %v: %+v", code, err, in)
	}
}

func TestCCMistakesAreOfUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"cc", "show", "cubic"}, "known are aimd, dcqcn"},
		{[]string{"cc", "show"}, "missing: NAME"},
		{[]string{"cc", "list", "hpcc"}, "hpcc"},
		{[]string{"cc", "lst"}, "lst"},
		{[]string{"cc"}, "gfabric cc list"},
	} {
		if out, code := gfabric(t, c.args...); code != exitUsage || !strings.Contains(out, c.want) {
			t.Errorf("%v: exit code %d, %q", c.args, code, out)
		}
	}
}

// words is s with every run of spaces and newlines as one space.
func words(s string) string { return strings.Join(strings.Fields(s), " ") }
