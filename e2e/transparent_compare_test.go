package e2e

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// soakBytes is how much TestTransparentSoak transfers; make soak asks for more.
var soakBytes = flag.Uint64("transfer", 16<<20, "bytes that TestTransparentSoak transfers through channels")

// compared is one of the two runs of gfabric transparent, as --json prints it.
type compared struct {
	Single   float64   `json:"single_bps"`
	Idle     requests  `json:"idle"`
	Incast   []float64 `json:"incast_bps"`
	Beside   requests  `json:"beside"`
	Across   requests  `json:"across"`
	Port     string    `json:"port"`
	QueueP50 float64   `json:"queue_p50_ns"`
	QueueP99 float64   `json:"queue_p99_ns"`
	Peak     float64   `json:"queue_peak"`
	Mean     float64   `json:"queue_mean"`
	Drops    *float64  `json:"switch_drops"`
	Bump     *struct {
		Name      string `json:"name"`
		Packet    int    `json:"packet"`
		Mtu       int    `json:"mtu"`
		Carried   uint64 `json:"carried"`
		Delivered uint64 `json:"delivered"`
	} `json:"bump"`
}

// requests is what is reported of their times.
type requests struct {
	Count int     `json:"count"`
	P50   float64 `json:"p50_us"`
	P99   float64 `json:"p99_us"`
	P999  float64 `json:"p999_us"`
}

// The comparison as users run it, with the least load that it takes. Whatever
// the machine does, it ends well, every byte arrived as it was sent (servers
// compare them, and a stream that differs ends the run), packets went through
// channels, what waits at the port with the longest queue waits a shorter time
// with ghosts, every number is printed, and nothing is left.
func TestTransparentCompared(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("raises namespaces: run as root")
	}
	name := fmt.Sprintf("e2e-c%d", os.Getpid())
	c := exec.Command(gfabric, "transparent", "--json", "--name", name, "--time", "3s")
	var printed strings.Builder
	c.Stderr = &printed
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, printed.String())
	}
	var r struct {
		Runs []compared `json:"runs"`
	}
	d := json.NewDecoder(bytes.NewReader(out))
	if err := d.Decode(&r); err != nil || len(r.Runs) != 2 {
		t.Fatalf("%v\n%s", err, out)
	}
	for i, v := range r.Runs {
		if v.Single <= 0 || len(v.Incast) != 4 || v.Port == "" || v.QueueP50 <= 0 || v.QueueP99 < v.QueueP50 || v.Peak <= 0 || v.Mean <= 0 || v.Drops == nil || (v.Bump != nil) != (i == 1) {
			t.Errorf("run %d lacks something: %s", i, out)
		}
		for _, bps := range v.Incast {
			if bps <= 0 {
				t.Errorf("run %d: a stream stood still: %v", i, v.Incast)
			}
		}
		for what, latency := range map[string]requests{"idle": v.Idle, "beside": v.Beside, "across": v.Across} {
			if latency.Count == 0 || latency.P50 <= 0 || latency.P99 < latency.P50 || latency.P999 < latency.P99 {
				t.Errorf("run %d: requests %s: %+v", i, what, latency)
			}
		}
	}
	if t.Failed() {
		return
	}
	bare, ghosts := r.Runs[0], r.Runs[1]
	// Four streams of some 30 Mb/s together, for 3 s, in packets of 1412 bytes:
	// a tenth of that on the worst machine.
	if b := ghosts.Bump; b.Delivered < 700 || b.Carried < 200 || b.Packet >= b.Mtu {
		t.Errorf("packets did not go through channels: %+v", b)
	}
	if ghosts.QueueP50 >= bare.QueueP50 {
		t.Errorf("frames wait %v ns with ghosts, %v ns without", ghosts.QueueP50, bare.QueueP50)
	}
	t.Logf("queue p50 %.2f ms bare, %.2f ms with ghosts; one stream %.1f and %.1f Mb/s, four %.1f and %.1f Mb/s", bare.QueueP50/1e6, ghosts.QueueP50/1e6,
		bare.Single/1e6, ghosts.Single/1e6, total(bare.Incast)/1e6, total(ghosts.Incast)/1e6)
	if left := namespacesOf(t, name); left != nil {
		t.Errorf("left behind: %v", left)
	}
	if out, err := exec.Command(gfabric, "status", name).CombinedOutput(); err == nil {
		t.Errorf("the fabric is still there:\n%s", out)
	}
}

func total(v []float64) (sum float64) {
	for _, x := range v {
		sum += x
	}
	return sum
}

// namespacesOf returns the network namespaces of a fabric.
func namespacesOf(t *testing.T, fabric string) (names []string) {
	t.Helper()
	all, err := os.ReadDir("/run/netns")
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, n := range all {
		if strings.Contains(n.Name(), fabric) {
			names = append(names, n.Name())
		}
	}
	return names
}

// A transfer through channels in both directions, every byte compared by the
// receiver, for as long as the test sets.
func TestTransparentSoak(t *testing.T) {
	n := newBumpNet(t, 2, 2)
	n.hosts[0].serveLoad(t)
	n.hosts[1].serveLoad(t)
	n.hosts[0].pings(t, "10.0.0.2", 56)
	size := *soakBytes / 8
	var runs []*exec.Cmd
	var outs []*bytes.Buffer
	for i, address := range []string{"10.0.0.2", "10.0.0.1"} {
		c, out := n.hosts[i].program(t, gfabric, "load", "stream", address, "--streams", "4", "--bytes", fmt.Sprint(size), "--time", "0s", "--json")
		runs, outs = append(runs, c), append(outs, out)
	}
	for i, c := range runs {
		var r streamed
		if err := c.Wait(); err != nil || json.Unmarshal(outs[i].Bytes(), &r) != nil || r.Bytes != 4*size {
			t.Errorf("from host %d: %v: %s", i, err, outs[i])
		}
	}
	for i := range n.bumps {
		s := n.bump(i)
		// Packets of at most 1412 bytes; the first few of a stream pass.
		if s.LostChannels != 0 || s.Delivered < 4*size/1412*9/10 {
			t.Errorf("host %d: %v", i, s)
		}
		t.Logf("host %d: %d packets carried, %d delivered, %d passed, %d sent again, %d timeouts", i, s.Carried, s.Delivered, s.PassedOut, s.Retransmissions, s.Timeouts)
		n.bumps[i].stop(n.hosts[i].ns)
	}
}
