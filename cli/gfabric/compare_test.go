package gfabric

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gswitch/control/cli"
	"gswitch/fabric/report"
	"gswitch/fabric/results"
)

func TestParseShare(t *testing.T) {
	for in, want := range map[string]float64{"10%": 0.1, "0.1": 0.1, "0%": 0, "250 %": 2.5} {
		if got, err := parseShare(in); err != nil || got != want {
			t.Errorf("%q: %v %v, want %v", in, got, err, want)
		}
	}
	for _, in := range []string{"", "%", "-1%", "NaN", "x"} {
		if _, err := parseShare(in); err == nil || cli.ExitCode(err) != exitUsage {
			t.Errorf("%q: error %v", in, err)
		}
	}
}

func TestJudge(t *testing.T) {
	file := func(v float64) *results.File {
		return &results.File{Runs: []results.Run{{Name: "hpcc", Values: map[string]float64{"slowdown_p99": v}}}}
	}
	c := report.Compare([]string{"a", "b"}, []*results.File{file(2), file(2.2)})
	var out bytes.Buffer
	if err := judge(&out, c, "slowdown_*", "11%"); err != nil || out.Len() > 0 {
		t.Errorf("error %v\n%s", err, &out)
	}
	if err := judge(&out, c, "*", "5%"); err == nil || !strings.Contains(out.String(), "hpcc: slowdown_p99: 2 in a, 2.20 in b +10.0 %") {
		t.Errorf("error %v\n%s", err, &out)
	}
	if err := judge(&out, c, "goodput*", "5%"); err == nil || cli.ExitCode(err) != exitUsage {
		t.Errorf("error %v", err)
	}
}

// A command that was given no results says which file is missing, with the
// exit code of a mistake.
func TestReportAndCompareExitCodes(t *testing.T) {
	dir := t.TempDir()
	f := &results.File{Scenario: "s", Runs: []results.Run{{Name: "a", Values: map[string]float64{"drops_total": 1}}}}
	if err := results.Save(dir, f); err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(t.TempDir(), "page.html")
	for _, c := range []struct {
		args []string
		want int
	}{
		{[]string{"report", dir, "--html", page}, 0},
		{[]string{"report", filepath.Join(dir, "none")}, exitUsage},
		{[]string{"compare", dir}, exitUsage},
		{[]string{"compare", dir, filepath.Join(dir, "none")}, exitUsage},
	} {
		if got := run(c.args); got != c.want {
			t.Errorf("%v: exit code %d, want %d", c.args, got, c.want)
		}
	}
	if b, err := os.ReadFile(page); err != nil || !bytes.Contains(b, []byte("</html>")) {
		t.Errorf("page: %v", err)
	}
}
