package host

import (
	"context"
	"strings"
	"testing"
	"time"

	"gswitch/config"
	"gswitch/control/api"
	"gswitch/hostnic/agent"
)

func parsed(t *testing.T) *config.Host {
	c, err := config.ParseHosts("host.yaml", []byte("version: 1\ninterface: nosuch0\naddress: 10.0.0.1/24\n"))
	if err != nil {
		t.Fatal(err)
	}
	return &c.Hosts[0]
}

// What a caller may ask for is bounded, and what is beyond is said.
func TestBounds(t *testing.T) {
	h := parsed(t)
	for want, change := range map[string]func(r *api.TransferRequest){
		"is not an IP address":                     func(r *api.TransferRequest) { r.To = "h2" },
		`operation "atomic": must be`:              func(r *api.TransferRequest) { r.Operation = "atomic" },
		"are longer than":                          func(r *api.TransferRequest) { r.Size = maxSize + 1 },
		"0 messages are not between":               func(r *api.TransferRequest) { r.Count = 0 },
		"4294967295 messages are not between":      func(r *api.TransferRequest) { r.Count = 1<<32 - 1 },
		"pings are more than":                      func(r *api.TransferRequest) { r.Operation, r.Count = "ping", maxPings+1 },
		"messages at once are more than":           func(r *api.TransferRequest) { r.Depth = maxDepth + 1 },
		"-5 ns is not between 0 and 24h0m0s":       func(r *api.TransferRequest) { r.Interval = ^uint64(4) },
		"class 8 is not between":                   func(r *api.TransferRequest) { r.Class = 8 },
		"congestion control \"hppc\" is not known": func(r *api.TransferRequest) { r.Congestion = "hppc" },
		"hpcc needs telemetry":                     func(r *api.TransferRequest) { r.Congestion, r.Telemetry = "hpcc", "none" },
		"nonesuch":                                 func(r *api.TransferRequest) { r.Recovery = "nonesuch" },
		"":                                         func(*api.TransferRequest) {},
	} {
		r := &api.TransferRequest{To: "10.0.0.2", Operation: "send", Size: 1000, Count: 1, Class: -1}
		change(r)
		_, err := transfer(h, r)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("want %q, the error is %v", want, err)
		}
	}
}

// Transfers share a bound of memory, which they give back.
func TestMemory(t *testing.T) {
	var d Daemon
	pings := &agent.Transfer{Trace: true, Size: 64, Count: 10}
	release, err := d.allocate(pings)
	if err != nil || len(pings.Data) != 64 || cap(pings.Samples) != 10 || cap(pings.Paths) != 10 || !agent.Matches(pings.Data, 0) || d.held != need(pings) {
		t.Fatalf("%v: %d bytes are held", err, d.held)
	}
	long := &agent.Transfer{Size: maxSize, Count: 1}
	for range maxHeld/maxSize - 1 {
		if err := d.reserve(need(long)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.allocate(long); err == nil || !strings.Contains(err.Error(), "wait for their end") || long.Data != nil {
		t.Errorf("more than there may be: %v", err)
	}
	held := d.held
	if release(); d.held != held-need(pings) {
		t.Errorf("%d bytes are held, of %d", d.held, held)
	}
}

// A signal ends waiting for an interface.
func TestWaitEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := find(ctx, parsed(t), time.Now().Add(1000*time.Hour)); err == nil || !strings.Contains(err.Error(), "nosuch0") {
		t.Errorf("the error is %v", err)
	}
}
