package ghost

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gswitch/control/cli"
)

// ghost runs the command line in this process.
func ghost(args ...string) (string, error) {
	root := newRoot()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(args)
	err := root.ExecuteContext(context.Background())
	return out.String(), err
}

// What is wrong with a command line is said by its flags, before anything is
// touched, with exit code 2.
func TestUsage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "host.yaml")
	if err := os.WriteFile(file, []byte("version: 1\ninterface: v\naddress: 10.0.0.1/24\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"run":                          "--port IF --addr 10.0.0.1/24",
		"run --port v":                 "--port IF --addr 10.0.0.1/24",
		"run --port v --addr 10.0.0.1": "--addr:",
		"run --port v --addr 10.0.0.1/24 --poll x":             "--poll:",
		"run --port v --addr 10.0.0.1/24 --link-rate fast":     "--link-rate:",
		"run --port v --addr 10.0.0.1/24 --link slow":          "--link:",
		"run --port v --addr 10.0.0.1/24 --recovery reno":      "--recovery:",
		"run --port v --addr 10.0.0.1/24 --pace-jitter 0.7":    "--pace-jitter:",
		"run --port v --addr 10.0.0.1/24 --no-fast-retransmit": "--no-fast-retransmit:",
		"run --port v --addr 10.0.0.1/24 --cc cubic":           "--cc: congestion control \"cubic\" is not known",
		"run -c " + file + " --addr 10.0.0.2/24":               "do not go with -c",
		"run -c /nonexistent.yaml":                             "cannot read the configuration",
		"run --transparent --port g1":                          "a bump needs two interfaces",
		"run --transparent --inner g0 --port g1 --addr ::1/64": "do not go with --transparent",
		"run --transparent --inner g0 --port g1 --flows x":     "--flows:",
		"run --port g1 --addr 10.0.0.1/24 --inner g0":          "--inner goes with --transparent",
		"run --prt v":                          "unknown flag: --prt",
		"send":                                 "--to is missing",
		"send --to 10.0.0.2 --size many":       "invalid argument \"many\"",
		"send --to 10.0.0.2 --cc-option x":     "write name=value",
		"send --to 10.0.0.2 --link-rate 1Gbps": "need --port",
		"ping":                                 "missing: ADDRESS",
		"ping 10.0.0.2 -n 0":                   "nothing would be sent",
		"perf erase --to 10.0.0.2":             "invalid argument \"erase\"",
		"perf read --to 10.0.0.2 -s x":         "--size:",
		"show":                                 "there are bumps, cc, channels, config, drops, flows, host, hosts, limits, pfc, qps",
		"show everything":                      "has no \"everything\"",
		"validate /nonexistent.yaml":           "cannot read",
		"fly":                                  "unknown command",
	} {
		_, err := ghost(strings.Fields(args)...)
		if err == nil || !strings.Contains(strings.ToLower(strings.Join(strings.Fields(err.Error()), " ")), strings.ToLower(want)) || cli.ExitCode(err) != cli.ExitUsage {
			t.Errorf("ghost %s: %v, want %q", args, err, want)
		}
	}
}

func TestValidateAndSchema(t *testing.T) {
	out, err := ghost("validate", "../../config/host.example.yaml")
	if err != nil || !strings.Contains(out, "ok (h1 at 10.0.0.1/24 on veth0)") {
		t.Errorf("%v: %s", err, out)
	}
	out, err = ghost("schema")
	if err != nil || !strings.Contains(out, `"base_rtt"`) {
		t.Errorf("%v: %s", err, out)
	}
	if _, err := ghost("--socket", filepath.Join(t.TempDir(), "none"), "show", "qps"); err == nil || cli.ExitCode(err) != cli.ExitFailure || !strings.Contains(err.Error(), "no daemon listens") {
		t.Errorf("a socket that is not there: %v", err)
	}
}

func TestPrinting(t *testing.T) {
	for ns, want := range map[uint64]string{0: "0ns", 999: "999ns", 12_345: "12.35us", 12_345_678: "12.35ms", 2_000_000_000: "2s"} {
		if got := cli.Span(ns); got != want {
			t.Errorf("cli.Span(%d) is %s, want %s", ns, got, want)
		}
	}
	for bits, want := range map[float64]string{0: "0bps", 999: "999bps", 1.5e9: "1.5Gbps", 123456789: "123.5Mbps"} {
		if got := cli.Rate(bits); got != want {
			t.Errorf("cli.Rate(%v) is %s, want %s", bits, got, want)
		}
	}
	for n, want := range map[uint64]string{0: "0B", 999: "999B", 1000: "1kB", 81_919: "81.92kB"} {
		if got := size(n); got != want {
			t.Errorf("size(%d) is %s, want %s", n, got, want)
		}
	}
}
