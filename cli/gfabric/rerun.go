package gfabric

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"gswitch/control"
	"gswitch/fabric"
	runner "gswitch/fabric/run"
	"gswitch/fabric/vnet"
	"gswitch/frame"
	"gswitch/replay"
)

// again makes the run of a record happen again.
func (f *replayFlags) again(ctx context.Context, name string, in *replay.Reader, end frame.Time, words []string, stdout, stderr io.Writer) error {
	switch {
	case f.trace != "" || f.pcap != "" || f.until != "":
		return usagef("%s is of a whole run: --trace, --pcap and --until are for records of one switch or host", name)
	case len(words) > 0 && words[0] != "gswitch":
		return usagef("of a whole run verbs of gswitch show a switch, chosen by --node; %s is another program", words[0])
	}
	if len(words) > 0 {
		last, err := f.last(name)
		switch {
		case err != nil:
			return err
		case end == frame.Never:
			end = last
		case end > last:
			return usagef("--at %v: the record ends at %v", end.Duration(), last.Duration())
		}
	}
	x := runner.Replay{Instants: []frame.Time{end}}
	if end != frame.Never {
		x.At = func(n *vnet.Network, _ frame.Time) error {
			if len(words) == 0 {
				return nil
			}
			handler, err := switchOfRun(n, f.node, &in.Header)
			if err != nil {
				return err
			}
			return shown(ctx, handler, words, stdout, stderr)
		}
	}
	began := time.Now()
	err := x.Again(ctx, in)
	if err != nil && !errors.Is(err, replay.ErrCut) {
		return fmt.Errorf("%s: %w", name, err)
	}
	cut := ""
	if x.Cut != nil {
		cut = "; " + x.Cut.Error()
	}
	frames, sums := x.Player.Sent()
	fmt.Fprintf(stderr, "replayed %v of %s in %v: %d calls, %d frames sent, %d hashes compared: identical%s\n", x.Player.Now().Duration().Round(time.Microsecond), in.Header.Name,
		time.Since(began).Round(time.Millisecond), x.Player.Steps(), frames, sums, cut)
	return nil
}

// last is the last instant at which one can look at the run of a record.
func (f *replayFlags) last(name string) (frame.Time, error) {
	file, in, err := f.open(name)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	length, err := replay.Length(in)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return max(0, length-1), nil
}

// switchOfRun serves the API of a daemon that runs a switch of a run, the only one if
// name is empty.
func switchOfRun(n *vnet.Network, name string, h *replay.Header) (http.Handler, error) {
	var names []string
	for _, node := range n.Topology.Switches() {
		names = append(names, n.Topology.Nodes[node].Name)
	}
	if name == "" && len(names) == 1 {
		name = names[0]
	}
	k, ok := n.SwitchByName(name)
	switch {
	case name == "":
		return nil, usagef("which switch is to be shown? Choose it with --node: %s", strings.Join(names, ", "))
	case !ok:
		return nil, usagef("--node %s: the run has no switch of this name, it has %s", name, strings.Join(names, ", "))
	}
	return control.Shown(n.Switches[k], name, portNames(n.Topology, n.Topology.Switches()[k]), h, n.Engine.Now())
}

// portNames names the ports of a node of a topology by what is at their other ends.
func portNames(t *fabric.Topology, node int) (names []string) {
	for port, link := range t.Nodes[node].Links {
		far := t.Links[link].A
		if far.Node == node && far.Port == port {
			far = t.Links[link].B
		}
		name := t.Nodes[far.Node].Name
		if slices.Contains(names, name) {
			name = fmt.Sprintf("%s-%d", name, port)
		}
		names = append(names, name)
	}
	return names
}
