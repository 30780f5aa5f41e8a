package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"sync"

	"gswitch/fabric/lab"
	"gswitch/fabric/load"
)

// pingCount is how many echo requests go from each host to each other node.
const pingCount = 3

// Ping is the outcome of echo requests from one node to another.
type Ping struct {
	From, To   string
	Sent, Lost int
	Min, Max   float64 // milliseconds
	Err        error
}

// pingAll sends from every host to every other host, and from the first host
// to the switches. Hosts send at the same time, each to one after the other.
func (d *demo) pingAll(ctx context.Context) []Ping {
	hosts := d.hosts()
	results := make([][]Ping, len(hosts))
	tool, _ := exec.LookPath("ping")
	var wg sync.WaitGroup
	for i, from := range hosts {
		var targets []string
		for k := 1; k < len(hosts); k++ {
			targets = append(targets, hosts[(i+k)%len(hosts)])
		}
		if i == 0 {
			for _, s := range d.layout.Plan.Topology.Switches() {
				targets = append(targets, d.layout.Plan.Topology.Nodes[s].Name)
			}
		}
		wg.Go(func() {
			for _, to := range targets {
				results[i] = append(results[i], d.ping(ctx, tool, from, to))
			}
		})
	}
	wg.Wait()
	var all []Ping
	for _, r := range results {
		all = append(all, r...)
	}
	return all
}

// ping uses the ping of the system, or our own where there is none.
func (d *demo) ping(ctx context.Context, tool, from, to string) Ping {
	p := Ping{From: from, To: to, Sent: pingCount}
	args := []string{"-n", "-q", "-c", strconv.Itoa(pingCount), "-i", "0.02", "-W", "2", d.address(to)}
	if tool == "" {
		tool, args = d.Self, []string{"load", "ping", "--json", "--count", strconv.Itoa(pingCount), "--interval", "20ms", "--timeout", "2s", d.address(to)}
	}
	cmd, err := lab.NewCommand(ctx, d.Name, from, tool, args...)
	if err != nil {
		p.Err = err
		return p
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run() // fails also where answers are missing
	if tool == d.Self {
		p.readOwn(out.Bytes())
	} else {
		p.readSystem(out.String())
	}
	if err != nil && p.Lost == 0 {
		p.Err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(errs.Bytes()))
	}
	return p
}

var (
	pingLoss = regexp.MustCompile(`(\d+) packets transmitted, (\d+) (?:packets )?received`)
	pingTime = regexp.MustCompile(`= ([0-9.]+)/[0-9.]+/([0-9.]+)`)
)

// readSystem reads the summary that every common ping prints.
func (p *Ping) readSystem(out string) {
	m := pingLoss.FindStringSubmatch(out)
	if m == nil {
		p.Lost = p.Sent
		return
	}
	p.Sent, _ = strconv.Atoi(m[1])
	got, _ := strconv.Atoi(m[2])
	p.Lost = p.Sent - got
	if m := pingTime.FindStringSubmatch(out); m != nil {
		p.Min, _ = strconv.ParseFloat(m[1], 64)
		p.Max, _ = strconv.ParseFloat(m[2], 64)
	}
}

func (p *Ping) readOwn(out []byte) {
	var l load.Latency
	if json.Unmarshal(out, &l) != nil {
		p.Lost = p.Sent
		return
	}
	p.Lost, p.Min, p.Max = p.Sent-l.Count, l.Min/1e3, l.Max/1e3
}

// pingColumns is how many columns of the matrix fit beside their row's name
// into the 80 of a terminal.
const pingColumns = 10

// writePings draws matrices: rows send, columns answer, cells are the best
// round trip in milliseconds. The switches, which do not send, have their own.
func writePings(w io.Writer, pings []Ping) {
	var from, to []string
	cell := map[[2]string]string{}
	sent, lost := 0, 0
	for _, p := range pings {
		from, to = addOnce(from, p.From), addOnce(to, p.To)
		sent += p.Sent
		lost += p.Lost
		text := fmt.Sprintf("%.2f", p.Min)
		switch {
		case p.Err != nil:
			text = "FAIL"
		case p.Lost > 0:
			text = fmt.Sprintf("-%d/%d", p.Lost, p.Sent)
		}
		cell[[2]string{p.From, p.To}] = text
	}
	heading(w, "ping: %d pairs, %d echo requests, %d lost (best round trip in ms)", len(pings), sent, lost)
	others := slices.DeleteFunc(to, func(name string) bool { return slices.Contains(from, name) })
	for _, part := range [][]string{from, others} {
		for columns := range slices.Chunk(part, pingColumns) {
			writeMatrix(w, from, columns, cell)
		}
	}
}

// writeMatrix leaves out rows that have nothing in these columns.
func writeMatrix(w io.Writer, rows, columns []string, cell map[[2]string]string) {
	fmt.Fprintf(w, "%6s", "")
	for _, to := range columns {
		fmt.Fprintf(w, " %6s", to)
	}
	fmt.Fprintln(w)
	for _, from := range rows {
		line, empty := fmt.Sprintf("%6s", from), true
		for _, to := range columns {
			text := cell[[2]string{from, to}]
			if text == "" {
				text = "."
			} else {
				empty = false
			}
			line += fmt.Sprintf(" %6s", text)
		}
		if !empty {
			fmt.Fprintln(w, line)
		}
	}
}

func addOnce(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}
