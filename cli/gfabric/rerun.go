package gfabric

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
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
	case len(words) > 0 && end == frame.Never:
		return usagef("at which instant? Choose it with --at")
	case len(words) > 0 && f.node == "":
		return usagef("which switch is to be shown? Choose it with --node")
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

// switchOfRun serves the API of a daemon that runs a switch of a run.
func switchOfRun(n *vnet.Network, name string, h *replay.Header) (http.Handler, error) {
	k, ok := n.SwitchByName(name)
	if !ok {
		return nil, usagef("--node %s: the run has no switch of this name", name)
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
