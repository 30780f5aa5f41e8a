package demo

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"gswitch/fabric/lab"
	"gswitch/fabric/load"
)

// Flow is a TCP stream between two hosts.
type Flow struct {
	From, To      string
	BitsPerSecond float64
	Retransmits   int // -1: the tool does not report it
	Err           error
}

// Probe is a pair of hosts whose request latency is measured under load.
type Probe struct {
	From, To string
	DSCP     int
	load.Latency
	Err error
}

// distances say to which others each host sends: so many places further in the list
// of hosts. With two hosts to a leaf all of these cross the spines, and every
// host sends and receives two streams.
var distances = []int{2, 5}

// probeInterval is the time between requests of a probe.
const probeInterval = 5 * time.Millisecond

// expedited is the code point EF of RFC 3246: class 5, a queue above that of
// the streams.
const expedited = 46

// load runs streams and probes at the same time, with the live view beside.
func (d *demo) load(ctx context.Context) *Result {
	hosts := d.hosts()
	r := &Result{Rate: d.Rate, HostRate: d.hostRate(), Hosts: hosts, Tool: "iperf3"}
	iperf, err := exec.LookPath("iperf3")
	if err != nil {
		r.Tool = "gfabric load"
	}
	for i := range hosts {
		for _, k := range distances {
			r.Flows = append(r.Flows, Flow{From: hosts[i], To: hosts[(i+k)%len(hosts)], Retransmits: -1})
		}
		if i%2 == 0 {
			to := hosts[(i+len(hosts)/2+1)%len(hosts)]
			r.Probes = append(r.Probes, Probe{From: hosts[i], To: to}, Probe{From: hosts[i], To: to, DSCP: expedited})
		}
	}
	for _, h := range hosts {
		stop, err := d.server(ctx, h, d.Self, "ready", "load", "serve")
		if err != nil {
			r.Failures = append(r.Failures, err.Error())
			return r
		}
		defer stop()
	}
	if iperf != "" {
		for i := range r.Flows {
			stop, err := d.server(ctx, r.Flows[i].To, iperf, "listening", "-s", "--forceflush", "-p", iperfPort(i))
			if err != nil {
				r.Failures = append(r.Failures, err.Error())
				return r
			}
			defer stop()
		}
	}
	heading(d.Out, "load: %d TCP streams by %s, %d probes of request latency, %v", len(r.Flows), r.Tool, len(r.Probes), d.Duration)
	watchCtx, stopWatch := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { d.watch(watchCtx) })
	watching.Go(func() { watchNaps(watchCtx, &r.Late) })
	var wg sync.WaitGroup
	for i := range r.Flows {
		f := &r.Flows[i]
		wg.Go(func() {
			if iperf != "" {
				f.Err = d.iperf(ctx, iperf, f, iperfPort(i))
			} else {
				f.Err = d.stream(ctx, f)
			}
		})
	}
	for i := range r.Probes {
		p := &r.Probes[i]
		wg.Go(func() {
			p.Err = d.own(ctx, p.From, &p.Latency, "request", "--time", d.Duration.String(), "--interval", probeInterval.String(), "--dscp", strconv.Itoa(p.DSCP), d.address(p.To))
		})
	}
	wg.Wait()
	stopWatch()
	watching.Wait()
	return r
}

func iperfPort(flow int) string { return strconv.Itoa(5201 + flow) }

// server starts a program in a host and waits until it prints a line with the
// word that says that it is there.
func (d *demo) server(ctx context.Context, host, program, word string, args ...string) (stop func(), err error) {
	cmd, err := lab.NewCommand(ctx, d.Name, host, program, args...)
	if err != nil {
		return nil, err
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stop = func() {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.Contains(lines.Text(), word) {
			go io.Copy(io.Discard, out)
			return stop, nil
		}
	}
	stop()
	return nil, fmt.Errorf("%s in %s ended at its start: %s", program, host, bytes.TrimSpace(errs.Bytes()))
}

// slack is what a tool may take beyond the time that it was given.
const slack = 15 * time.Second

// run runs a program in a host and returns what it prints.
func (d *demo) run(ctx context.Context, host, program string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, d.Duration+slack)
	defer cancel()
	cmd, err := lab.NewCommand(ctx, d.Name, host, program, args...)
	if err != nil {
		return nil, err
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return out.Bytes(), fmt.Errorf("%w %s", err, bytes.TrimSpace(errs.Bytes()))
	}
	return out.Bytes(), nil
}

// own runs one of our own load tests in a host.
func (d *demo) own(ctx context.Context, host string, result any, args ...string) error {
	out, err := d.run(ctx, host, d.Self, append([]string{"load", args[0], "--json"}, args[1:]...)...)
	if err != nil {
		return err
	}
	return json.Unmarshal(out, result)
}

func (d *demo) stream(ctx context.Context, f *Flow) error {
	var s load.StreamResult
	err := d.own(ctx, f.From, &s, "stream", "--time", d.Duration.String(), d.address(f.To))
	f.BitsPerSecond = s.BitsPerSecond
	return err
}

func (d *demo) iperf(ctx context.Context, program string, f *Flow, port string) error {
	seconds := strconv.Itoa(max(1, int(d.Duration/time.Second)))
	out, runErr := d.run(ctx, f.From, program, "-c", d.address(f.To), "-p", port, "-t", seconds, "-J", "--connect-timeout", "5000")
	return errors.Join(f.readIperf(out), runErr)
}

// readIperf reads the report of iperf3 -J.
func (f *Flow) readIperf(out []byte) error {
	var report struct {
		Error string
		End   struct {
			Received struct {
				BitsPerSecond float64 `json:"bits_per_second"`
			} `json:"sum_received"`
			Sent struct {
				Retransmits *int
			} `json:"sum_sent"`
		}
	}
	if err := json.Unmarshal(out, &report); err != nil {
		return fmt.Errorf("iperf3 gave no report: %w", err)
	}
	if report.Error != "" {
		return errors.New("iperf3: " + report.Error)
	}
	f.BitsPerSecond = report.End.Received.BitsPerSecond
	if report.End.Sent.Retransmits != nil {
		f.Retransmits = *report.End.Sent.Retransmits
	}
	return nil
}

// isTerminal reports whether f is a terminal, and its size.
func isTerminal(f *os.File) (rows, columns int, yes bool) {
	size, err := winsize(f)
	if err != nil {
		return 0, 0, false
	}
	return int(size.Row), int(size.Col), size.Row > 0
}
