package gfabric

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gswitch/fabric/pauses"
)

const congested = `version: 1
topology: {generate: "dumbbell(2, 1)", classes: {host: {rate: 10Gbps, delay: 1us}, fabric: {rate: 10Gbps, delay: 1us}}}
pfc: {enabled: true}
switch: {buffer: {size: 1MB, xoff: 20KB, xon_offset: 2KB}}
hosts: {params: {window: none}}
workload: [{kind: incast, from: [h1, h2], to: [h3], size: 500KB}]
duration: 2ms
`

// What two hosts send to a third one spreads pauses from its port to them.
func TestPFCTraceOfAScenario(t *testing.T) {
	file := filepath.Join(t.TempDir(), "congested.yaml")
	if err := os.WriteFile(file, []byte(congested), 0o666); err != nil {
		t.Fatal(err)
	}
	out, code := gfabric(t, "pfc", "trace", file, "--json")
	from := strings.Index(out, "{")
	var tr pauses.Trace
	if code != 0 || from < 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}
	if err := json.NewDecoder(strings.NewReader(out[from:])).Decode(&tr); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if len(tr.Pauses) == 0 || len(tr.Roots) == 0 || tr.Roots[0].Why != pauses.Congestion || tr.Roots[0].At.Node != "s1" || tr.Roots[0].At.To != "s2" {
		t.Errorf("%d pauses, roots %+v", len(tr.Pauses), tr.Roots)
	}
	out, code = gfabric(t, "pfc", "trace", file, "--from", "10us", "--to", "1ms")
	if code != 0 || !strings.Contains(out, "s1>s2 class 0: congested") || !strings.Contains(out, "s1 paused h1") {
		t.Errorf("exit code %d: %s", code, out)
	}
}

func TestPFCRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "quiet.yaml")
	if err := os.WriteFile(file, []byte(strings.Replace(congested, "pfc: {enabled: true}\n", "", 1)), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, v := range []struct {
		args string
		want string
	}{
		{"pfc", "pfc what? There are deadlock, trace"},
		{"pfc trace nosuch.yaml", "no such file"},
		{"pfc deadlock " + file, "gfabric pfc trace " + file + " names the circles"},
		{"pfc trace " + file, "no port sends pauses without pfc.enabled: true"},
		{"pfc trace " + file + " --from soon", "--from"},
		{"pfc trace " + file + " --from 2ms --to 1ms", "is not after"},
		{"pfc trace lab --from 2ms", "--last says how far back"},
		{"pfc trace lab --on netns", "--on is for scenarios"},
		{"pfc trace lab --keep 5", "--keep is for scenarios"},
		{"pfc trace lab --last 10s --seed 2", "--seed is for scenarios"},
		{"pfc deadlock lab --after -1s", "negative"},
	} {
		if out, code := gfabric(t, strings.Fields(v.args)...); code != 2 || !strings.Contains(out, v.want) {
			t.Errorf("%s: exit code %d: %s", v.args, code, out)
		}
	}
}
