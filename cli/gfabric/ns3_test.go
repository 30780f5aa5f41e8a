package gfabric

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gswitch/fabric/ns3"
)

// output runs the command line and returns its exit code and what it wrote to
// standard output.
func output(t *testing.T, args ...string) (code int, text string) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	old := os.Stdout
	os.Stdout = w
	defer func() { os.Stdout = old }()
	done := make(chan string)
	go func() {
		b, _ := io.ReadAll(r)
		done <- string(b)
	}()
	code = run(args)
	w.Close()
	return code, <-done
}

// The published incast of 16 senders: its table, its JSON and its file.
func TestNS3(t *testing.T) {
	data := "../../fabric/ns3/testdata/incast16_500K"
	fct := filepath.Join(t.TempDir(), "out.fct")
	args := []string{"ns3", "--topology", data + ".topo", "--flows", data + ".flow", "--cc", "dctcp"}
	code, text := output(t, append(args, "--fct", fct)...)
	if code != 0 {
		t.Fatalf("exit code %d", code)
	}
	for _, want := range []string{"14.485", "668.091 us", "unfinished", "million/s", "digest"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	b, err := os.ReadFile(fct)
	if err != nil {
		t.Fatal(err)
	}
	flows, err := ns3.ParseFCT(fct, b)
	if err != nil || len(flows) != 16 || !strings.HasPrefix(string(b), "0b000201 0b000101 10000 100 500000 2000000000 666846 46080\n") {
		t.Errorf("%v\n%s", err, b)
	}

	code, text = output(t, append(args, "--json")...)
	var x map[string]any
	if err := json.Unmarshal([]byte(text), &x); code != 0 || err != nil {
		t.Fatalf("exit code %d, %v", code, err)
	}
	for _, key := range []string{"flows", "slow_mean", "slow_p50", "slow_p95", "slow_p99", "bands", "last_finish_us", "pfc_events",
		"drops", "wall_s", "events", "frame_hops", "frame_hops_per_s", "digest", "unfinished"} {
		if _, ok := x[key]; !ok {
			t.Errorf("there is no key %q", key)
		}
	}
	if x["flows"] != 16.0 || x["unfinished"] != 0.0 || x["frame_hops"] != 32000.0 {
		t.Errorf("%v", x)
	}

	// Time that is up too early says what had ended, and is a failure.
	if code, text = output(t, append(args, "--until", "2000667us")...); code != exitFailed || !strings.Contains(text, "unfinished  ") {
		t.Errorf("exit code %d\n%s", code, text)
	}
}

func TestNS3Usage(t *testing.T) {
	data := "../../fabric/ns3/testdata/incast16_500K"
	for _, args := range [][]string{
		{},
		{"--topology", data + ".topo"},
		{"--topology", data + ".topo", "--flows", "/nowhere"},
		{"--topology", data + ".flow", "--flows", data + ".flow"},
		{"--topology", data + ".topo", "--flows", data + ".flow", "--cc", "cubic"},
		{"--topology", data + ".topo", "--flows", data + ".flow", "--until", "-1s"},
	} {
		if code, _ := output(t, append([]string{"ns3"}, args...)...); code != exitUsage {
			t.Errorf("%v: exit code %d", args, code)
		}
	}
}
