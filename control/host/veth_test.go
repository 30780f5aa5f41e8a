package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"gswitch/config"
	"gswitch/control"
	"gswitch/control/api"
	"gswitch/dataplane/xsk"
	"gswitch/dataplane/xsk/xsktest"
)

// cable is a namespace with the two ends of a veth, v0 and v1.
func cable(t *testing.T) (ns string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root for network namespaces and AF_XDP")
	}
	ns = fmt.Sprintf("ghosttest-%d", os.Getpid())
	xsktest.NetNS(t, ns)
	err := xsk.InNetNS(ns, func() error {
		if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "v0"}, PeerName: "v1"}); err != nil {
			return err
		}
		for _, name := range []string{"v0", "v1"} {
			// Nothing but what the hosts send is on the cable.
			if err := os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/disable_ipv6", []byte("1"), 0); err != nil {
				return err
			}
			link, err := netlink.LinkByName(name)
			if err == nil {
				err = netlink.LinkSetUp(link)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return ns
}

// served runs the hosts of a document and returns a client of them.
func served(t *testing.T, text string) (*Daemon, api.HostClient) {
	t.Helper()
	doc, err := config.ParseHosts("hosts.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(t.TempDir(), "sock")
	listeners, err := control.Listen(config.Control{Socket: socket})
	if err != nil {
		t.Fatal(err)
	}
	// What a test has for a socket is no change of any document.
	d, err := New(context.Background(), doc, Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Override: func(c *config.Hosts) { c.Control.Socket = socket }})
	if err != nil {
		t.Fatal(errors.Join(err, closeAll(listeners)))
	}
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- d.Serve(ctx, listeners) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-done, d.Stop()); err != nil {
			t.Error(err)
		}
	})
	return d, control.DialHost(socket)
}

func closeAll(listeners []net.Listener) (err error) {
	for _, l := range listeners {
		err = errors.Join(err, l.Close())
	}
	return err
}

const pairOfHosts = `version: 1
workers: [{poll: sleep}, {poll: sleep}]
hosts:
- {name: a, netns: NS, interface: v0, address: 10.0.0.1/24, rate: 100Mbps, base_rtt: 20ms, burst: 20ms, congestion: dctcp, telemetry: {format: none}, serve: true, region: 64KiB}
- {name: b, netns: NS, interface: v1, address: 10.0.0.2/24, rate: 100Mbps, base_rtt: 20ms, burst: 20ms, congestion: dctcp, telemetry: {format: none}, serve: true, region: 64KiB}
`

// sent sends messages from a host and returns what came of them.
func sent(client api.HostClient, host, to string, size uint64) (*api.TransferReport, error) {
	s, err := client.Transfer(context.Background(), &api.TransferRequest{Host: host, To: to, Operation: "send", Size: size, Count: 1, Class: -1})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	for s.Receive() {
		if m := s.Msg(); m.Done {
			return m, nil
		}
	}
	return nil, errors.Join(errors.New("it ended early"), s.Err())
}

// Transfers, readers and changes at once: everything that goroutines share is
// touched. What the changes do not touch arrives as it was sent.
func TestEverythingAtOnce(t *testing.T) {
	text := strings.ReplaceAll(pairOfHosts, "NS", cable(t))
	d, client := served(t, text)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var readers, movers sync.WaitGroup
	for _, read := range []func() error{
		func() error { _, err := client.ListHosts(ctx, &api.ListHostsRequest{}); return err },
		func() error { _, err := client.ListFlows(ctx, &api.ListFlowsRequest{}); return err },
		func() error { _, err := client.ListQueuePairs(ctx, &api.ListQueuePairsRequest{Host: "b"}); return err },
		func() error { _, err := client.GetConfig(ctx, &api.GetConfigRequest{}); return err },
	} {
		readers.Go(func() {
			for ; ctx.Err() == nil; time.Sleep(time.Millisecond) { // they leave the processors to others too
				if err := read(); err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for from, to := range map[string]string{"a": "10.0.0.2", "b": "10.0.0.1"} {
		movers.Go(func() {
			for range 3 {
				if m, err := sent(client, from, to, 30e3); err != nil || m.Error != "" || m.Result.VerifiedBytes != 30e3 || m.Result.Corrupt != 0 {
					t.Errorf("from %s: %v, %v", from, err, m)
					return
				}
			}
		})
	}
	for i := range 10 {
		next := text
		if i%2 == 0 {
			next = strings.NewReplacer("region: 64KiB", "region: 128KiB", "rate: 100Mbps", "rate: 80Mbps", "congestion: dctcp", "congestion: timely").Replace(text)
		}
		r, err := client.Apply(ctx, &api.ApplyRequest{Yaml: next, File: "hosts.yaml"})
		if err != nil || len(r.Changes) != 6 || len(r.Consequences) != 0 || r.Generation != uint64(i+2) {
			t.Fatalf("%v: %v", err, r)
		}
		d.Snapshot()
	}
	movers.Wait()
	cancel()
	readers.Wait()
}

// A host that is built anew ends what its callers wait for, and says so; one
// that goes and comes again works. What is refused changes nothing.
func TestRebuild(t *testing.T) {
	text := strings.ReplaceAll(pairOfHosts, "NS", cable(t))
	_, client := served(t, text)
	ctx := context.Background()
	serving, err := client.Serve(ctx, &api.ServeRequest{Host: "a"})
	if err != nil {
		t.Fatal(err)
	}
	defer serving.Close()
	if !serving.Receive() {
		t.Fatal(serving.Err())
	}
	under, err := client.Transfer(ctx, &api.TransferRequest{Host: "a", To: "10.0.0.2", Operation: "send", Size: 100e6, Count: 1, Class: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer under.Close()
	for running := false; !running; time.Sleep(time.Millisecond) {
		flows, err := client.ListFlows(ctx, &api.ListFlowsRequest{Host: "a"})
		if err != nil {
			t.Fatal(err)
		}
		running = len(flows.Flows) > 0 && flows.Flows[0].State == "running"
	}
	apply := func(old, new string, dry bool) (*api.ApplyResponse, error) {
		return client.Apply(ctx, &api.ApplyRequest{Yaml: strings.Replace(text, old, new, 1), File: "hosts.yaml", DryRun: dry})
	}
	for _, dry := range []bool{true, false} {
		r, err := apply("10.0.0.1/24", "10.0.0.8/24", dry)
		if err != nil || len(r.Changes) != 1 || len(r.Consequences) != 1 || r.Consequences[0] != "! host a: is built anew, since address changes; its queue pair ends" {
			t.Fatalf("%v: %v", err, r)
		}
	}
	last := &api.TransferReport{}
	for under.Receive() {
		last = under.Msg()
	}
	if !last.Done || !strings.Contains(last.Error, "taken down") {
		t.Errorf("the transfer ended with %v, %v", last, under.Err())
	}
	for serving.Receive() {
	}
	if err := serving.Err(); err == nil || !strings.Contains(err.Error(), "host a was taken down") {
		t.Errorf("serving ended with %v", err)
	}
	if m, err := sent(client, "b", "10.0.0.8", 5000); err != nil || m.Error != "" {
		t.Errorf("to the new address: %v, %v", err, m)
	}

	// b goes, and comes again.
	gone := text[:strings.Index(text, "- {name: b")]
	if r, err := client.Apply(ctx, &api.ApplyRequest{Yaml: gone}); err != nil || len(r.Consequences) != 2 {
		t.Fatalf("%v: %v", err, r)
	}
	if _, err := client.GetHost(ctx, &api.GetHostRequest{Host: "b"}); err == nil || !strings.Contains(err.Error(), `no host "b"; there are a`) {
		t.Errorf("the error is %v", err)
	}
	if r, err := client.Apply(ctx, &api.ApplyRequest{Yaml: text}); err != nil || len(r.Consequences) != 1 || !strings.HasPrefix(r.Consequences[0], "+ host b: comes, at 10.0.0.2/24 on v1") {
		t.Fatalf("%v: %v", err, r)
	}
	if m, err := sent(client, "a", "10.0.0.2", 5000); err != nil || m.Error != "" {
		t.Errorf("to the host that came again: %v, %v", err, m)
	}

	// What is refused changes nothing.
	before, err := client.GetConfig(ctx, &api.GetConfigRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, want string }{
		{"interface: v1", "interface: v9", "there is no interface v9"},
		{"workers: [{poll: sleep}, {poll: sleep}]", "workers: [{poll: sleep}]", "restart it for"},
		{"rate: 100Mbps", "rate: 100Mbp", "hosts.yaml:4:"},
		{"region: 64KiB}", "region: 64KiB, payload: 3000}", "restart it"},
	} {
		if r, err := apply(c.old, c.new, false); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v", c.new, err, r)
		}
	}
	after, err := client.GetConfig(ctx, &api.GetConfigRequest{})
	if err != nil || after.Yaml != before.Yaml || after.Generation != before.Generation {
		t.Errorf("%v: refused, but changed to\n%s", err, after.GetYaml())
	}
}
