package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gswitch/hostnic/agent"
	"gswitch/verbs"
)

// A program reads and writes the memory that ghost serves, and ghost that which
// a program offers, through a switch.
func TestVerbsAndGhost(t *testing.T) {
	l := newLab(t, 2, labOptions{})
	var ports strings.Builder
	for i := range 2 {
		fmt.Fprintf(&ports, "  - {interface: d%d, netns: %s, rate: 200Mbps, burst: 20ms}\n", i, l.sw)
	}
	runConfig(t, "version: 1\nswitches:\n- name: s1\n  telemetry: {int: true, links: [200Mbps]}\n  ports:\n"+ports.String())
	dir := t.TempDir()
	write(t, filepath.Join(dir, "host.yaml"), fmt.Sprintf(`version: 1
name: gv
netns: %s
interface: eth0
address: 10.0.0.2/24
rate: 200Mbps
base_rtt: 20ms
telemetry: {links: [200Mbps]}
region: 1MiB
serve: true
`, l.hosts[1].ns))
	g := launchProgram(t, ghost, filepath.Join(dir, "sock"), "-c", filepath.Join(dir, "host.yaml"))
	g.await()

	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	h, err := verbs.Open(ctx, verbs.Config{Interface: "eth0", NetNS: l.hosts[0].ns, Address: netip.MustParsePrefix("10.0.0.1/24"),
		Rate: 200e6, BaseRTT: 20 * time.Millisecond, Links: []uint64{200e6}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	q, err := h.Dial(ctx, netip.MustParseAddr("10.0.0.2"), verbs.QPConfig{})
	if err != nil {
		t.Fatal(err)
	}
	served := make([]byte, q.Remote().Len)
	if len(served) != 1<<20 {
		t.Fatalf("ghost offers %d bytes", len(served))
	}
	mine, back := bytes.Repeat([]byte("written by a program "), 5000), make([]byte, 105_000)
	key := q.Remote().RKey
	if _, err := q.PostSend([]verbs.WorkRequest{{WRID: 1, Verb: verbs.Read, Local: served, RKey: key},
		{WRID: 2, Verb: verbs.Write, Local: mine, RKey: key, RemoteAddr: 777, Fence: true}, {WRID: 3, Verb: verbs.Read, Local: back, RKey: key, RemoteAddr: 777}}); err != nil {
		t.Fatal(err)
	}
	var done [4]verbs.Completion
	for want := uint64(1); want <= 3; {
		if err := q.CQ().Wait(ctx); err != nil {
			t.Fatal(err)
		}
		n := q.Poll(done[:])
		for i := range done[:n] {
			if done[i].WRID != want || done[i].Err() != nil {
				t.Fatalf("completion %d: %+v", want, done[i])
			}
			want++
		}
	}
	if !agent.Matches(served, 0) || !bytes.Equal(back, mine) {
		t.Error("what was read is not what is there")
	}
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}

	m, err := h.Register(make([]byte, 1<<16), verbs.RemoteRead|verbs.RemoteWrite)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Listen(verbs.ListenConfig{Offer: m}); err != nil {
		t.Fatal(err)
	}
	for _, op := range []string{"write", "read"} {
		var rows []struct{ Iterations, Corrupt uint64 }
		if err := json.Unmarshal([]byte(g.do("perf", op, "--to", "10.0.0.1", "-n", "4", "-s", "16kB", "--json")), &rows); err != nil {
			t.Fatal(err)
		}
		if len(rows) != 1 || rows[0].Iterations != 4 || rows[0].Corrupt != 0 {
			t.Errorf("perf %s: %+v", op, rows)
		}
	}
	if err := m.Sync(); err != nil {
		t.Fatal(err)
	}
	if !agent.Matches(m.Bytes()[:16_000], 0) {
		t.Error("what ghost wrote is not there")
	}
	if out, code := g.try("send", "--to", "10.0.0.1"); code != 1 || !strings.Contains(out, "does not serve") {
		t.Errorf("messages to a program: exit code %d, %s", code, out)
	}
	g.stop(l.hosts[1].ns)
}
