package transparent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"syscall"
	"time"

	"gswitch/control"
	"gswitch/control/api"
	"gswitch/fabric/lab"
	"gswitch/fabric/load"
)

// Result is what one of the runs measured.
type Result struct {
	Single   float64         `json:"single_bps"`     // goodput of one stream on the idle fabric
	Idle     *load.Latency   `json:"idle"`           // requests on the idle fabric
	Incast   []float64       `json:"incast_bps"`     // goodput of each stream to the host where they meet
	Beside   *load.Latency   `json:"beside"`         // requests to that host, meanwhile
	Across   *load.Latency   `json:"across"`         // requests between two hosts that send or receive none of it
	Port     string          `json:"port"`           // with the longest queue, over the time of the run
	QueueP50 time.Duration   `json:"queue_p50_ns"`   // what frames waited there
	QueueP99 time.Duration   `json:"queue_p99_ns"`   //
	Peak     uint64          `json:"queue_peak"`     // bytes there
	Mean     float64         `json:"queue_mean"`     // bytes there, over the time of the run
	Drops    uint64          `json:"switch_drops"`   // frames that switches' queues refused
	Bump     *api.BumpStatus `json:"bump,omitempty"` // of the host where they meet
}

// settling is left out of what is measured at the start of the load.
const settling = time.Second

// measure runs the load: first one stream on the idle fabric, then streams
// from four hosts of three other leaves to the last host, with requests beside.
func (d *demo) measure(ctx context.Context, r *Result) error {
	hosts := d.layout.Plan.Topology.Hosts()
	name := func(i int) string { return d.layout.Plan.Topology.Nodes[hosts[i]].Name }
	for i := range hosts {
		stop, err := d.serve(ctx, name(i))
		if err != nil {
			return err
		}
		defer stop()
	}
	for i := range hosts {
		if err := d.reaches(ctx, name(i), d.address(hosts[(i+3)%len(hosts)])); err != nil {
			return err
		}
	}
	to := len(hosts) - 1
	r.Idle, r.Beside, r.Across = new(load.Latency), new(load.Latency), new(load.Latency)
	if err := d.load(ctx, name(1), r.Idle, "request", "--time", min(2*time.Second, d.Duration/4).String(), "--interval", "10ms", d.address(hosts[to])); err != nil {
		return err
	}
	var s load.StreamResult
	d.Log("one stream, %v", d.Duration/2)
	if err := d.load(ctx, name(0), &s, "stream", "--time", (d.Duration / 2).String(), d.address(hosts[3])); err != nil {
		return err
	}
	r.Single = s.BitsPerSecond
	senders := []int{0, 1, 2, 4}
	r.Incast = make([]float64, len(senders))
	d.Log("%d streams to %s, %v", len(senders), name(to), d.Duration)
	errs := make([]error, len(senders)+2)
	var wg sync.WaitGroup
	for i, from := range senders {
		wg.Go(func() {
			var s load.StreamResult
			errs[i] = d.load(ctx, name(from), &s, "stream", "--time", d.Duration.String(), d.address(hosts[to]))
			r.Incast[i] = s.BitsPerSecond
		})
	}
	for i, probe := range []struct {
		from, to int
		out      *load.Latency
	}{{5, to, r.Beside}, {3, 6, r.Across}} {
		wg.Go(func() {
			select {
			case <-time.After(settling):
			case <-ctx.Done():
			}
			errs[len(senders)+i] = d.load(ctx, name(probe.from), probe.out, "request", "--time", (d.Duration - 2*settling).String(), "--interval", "5ms", d.address(hosts[probe.to]))
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return d.counters(ctx, r, name(to))
}

// counters reads the queue of the port to a host, and its bump.
func (d *demo) counters(ctx context.Context, r *Result, host string) error {
	queues, err := d.client.ListQueues(ctx, &api.ListRequest{})
	if err != nil {
		return err
	}
	for _, q := range queues.Queues {
		r.Drops += q.Drops
		// Streams may also meet at a spine, by the hash of their addresses.
		if q.MeanBytes >= r.Mean {
			r.Port, r.QueueP50, r.QueueP99, r.Peak, r.Mean = q.Switch+"/"+q.Port, time.Duration(q.SojournP50), time.Duration(q.SojournP99), q.PeakBytes, q.MeanBytes
		}
	}
	if !d.ghosts {
		return nil
	}
	bumps, err := control.DialTransparent(d.socket).ListBumps(ctx, &api.ListBumpsRequest{Host: host})
	if err != nil {
		return err
	}
	r.Bump = bumps.Bumps[0]
	return nil
}

// address returns the IPv4 address of a node.
func (d *demo) address(node int) string {
	p := &d.layout.Plan.Nodes[node]
	if len(p.Loopback) > 0 {
		return p.Loopback[0].String()
	}
	return p.Address[0].Addr().String()
}

// serve answers load tests in a host.
func (d *demo) serve(ctx context.Context, host string) (stop func(), err error) {
	c, err := lab.NewCommand(ctx, d.Name, host, d.Self, "load", "serve")
	if err != nil {
		return nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	stop = func() {
		_ = c.Process.Signal(syscall.SIGTERM) // one that has ended needs none
		_ = c.Wait()                          // its end, whatever it was, is wanted
	}
	line := make([]byte, 256)
	n, err := out.Read(line)
	if err != nil || !bytes.Contains(line[:n], []byte("ready")) {
		stop()
		return nil, fmt.Errorf("the load server of %s ended at its start: %s", host, line[:n])
	}
	return stop, nil
}

// reaches waits until a host reaches another: links that went down are up
// again, and neighbours are found.
func (d *demo) reaches(ctx context.Context, host, address string) error {
	for deadline := time.Now().Add(slack); ; {
		err := d.load(ctx, host, new(load.Latency), "ping", "--count", "3", "--interval", "10ms", address)
		if err == nil || ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// slack is what a tool may take beyond the time that it was given.
const slack = 60 * time.Second

// load runs a load test in a host.
func (d *demo) load(ctx context.Context, host string, result any, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, d.Duration+slack)
	defer cancel()
	c, err := lab.NewCommand(ctx, d.Name, host, d.Self, append([]string{"load", args[0], "--json"}, args[1:]...)...)
	if err != nil {
		return err
	}
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		return fmt.Errorf("gfabric load in %s: %w %s", host, err, bytes.TrimSpace(errs.Bytes()))
	}
	return json.Unmarshal(out.Bytes(), result)
}
