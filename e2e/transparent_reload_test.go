package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gswitch/control/api"
)

// The document of a ghost in a wire changes while a stream goes through it, by
// ghost apply and by SIGHUP: new rules are for new channels, the stream goes on,
// and what needs a restart changes nothing.
func TestTransparentReload(t *testing.T) {
	n := newBumpNet(t, 2, 2)
	n.hosts[1].serveLoad(t)
	n.hosts[0].pings(t, "10.0.0.2", 56)
	const size = 8 << 20
	c, out := n.hosts[0].program(t, gfabric, "load", "stream", "10.0.0.2", "--bytes", fmt.Sprint(size), "--time", "0s", "--json")
	eventually(t, "packets in channels", func() error {
		if s := n.bump(0); s.Carried < 300 {
			return fmt.Errorf("%d carried", s.Carried)
		}
		return nil
	})

	file := filepath.Join(t.TempDir(), "next.yaml")
	write(t, file, n.document(0, ", queue: 300KB, rules: [{protocol: icmpv6, flows: pass}]"))
	if r := asked(n.bumps[0], &api.ApplyResponse{}, "apply", "-f", file, "--dry-run"); len(r.Changes) == 0 || r.Generation != 1 {
		t.Errorf("dry run: %v", r)
	}
	if s := n.bump(0); s.Queue != 250_000 {
		t.Errorf("a dry run changed the queue to %d", s.Queue)
	}
	r := asked(n.bumps[0], &api.ApplyResponse{}, "apply", "-f", file)
	if len(r.Changes) == 0 || len(r.Consequences) != 1 || r.Generation != 2 {
		t.Errorf("apply: %v", r)
	}
	if s := n.bump(0); s.Queue != 300_000 {
		t.Errorf("after apply the queue is %d", s.Queue)
	}
	// Echoes over IPv4 have a channel, those over IPv6 pass.
	protocols := func() map[string]bool {
		seen := map[string]bool{}
		for _, c := range asked(n.bumps[0], &api.Channels{}, "show", "channels").Channels {
			seen[c.Protocol] = true
		}
		return seen
	}
	eventually(t, "a channel of echoes", func() error {
		n.hosts[0].pings(t, "10.0.0.2", 56)
		n.hosts[0].pings(t, "fd00::2", 56)
		if seen := protocols(); !seen["icmp"] {
			return fmt.Errorf("channels are of %v", seen)
		}
		return nil
	})
	if seen := protocols(); seen["icmpv6"] {
		t.Errorf("there is a channel for what passes: %v", seen)
	}

	for key, more := range map[string]string{"mtu": ", mtu: 1400", "channels": ", channels: 5"} {
		write(t, file, n.document(0, more))
		if said, code := n.bumps[0].try("apply", "-f", file); code != 1 || !strings.Contains(said, "host b0: "+key+" cannot change while ghost runs: restart it") {
			t.Errorf("%s: exit code %d: %s", key, code, said)
		}
	}

	// The file that it was started with.
	own := n.bumps[0].Args[len(n.bumps[0].Args)-1]
	write(t, own, n.document(0, ", queue: 400KB"))
	n.bumps[0].Process.Signal(unix.SIGHUP)
	eventually(t, "SIGHUP is done", func() error {
		if s := n.bump(0); s.Queue != 400_000 {
			return fmt.Errorf("the queue is %d", s.Queue)
		}
		return nil
	})

	var got streamed
	if err := c.Wait(); err != nil || json.Unmarshal(out.Bytes(), &got) != nil || got.Bytes != size {
		t.Errorf("stream: %v: %s", err, out)
	}
	for i := range n.bumps {
		n.bumps[i].stop(n.hosts[i].ns)
	}
}
