package gfabric

import (
	"net/http"
	"slices"
	"strings"

	"gswitch/control"
	"gswitch/control/host"
	"gswitch/fabric"
	runner "gswitch/fabric/run"
	"gswitch/fabric/vnet"
	"gswitch/replay"
)

// nodeOfRun serves the API of a daemon that runs a switch or a host of a run: the one of a name,
// or the only one of which a program has verbs, if name is empty. program may be empty: either.
func nodeOfRun(n *vnet.Network, name, program string, h *replay.Header) (http.Handler, error) {
	name, err := chosenNode(n, name, program)
	if err != nil {
		return nil, err
	}
	if k, is := n.SwitchByName(name); is {
		return control.Shown(n.Switches[k], name, n.Topology.PortNames(n.Topology.Switches()[k]), h, n.Engine.Now())
	}
	k, _ := n.HostByName(name)
	return hostOfRun(n, k, h).Handler(), nil
}

// chosenNode is the node of a name that verbs of a program show, "": of any of the two. Without a
// name it is the only one there is.
func chosenNode(n *vnet.Network, name, program string) (string, error) {
	all, what := n.Topology.Switches(), "switch"
	switch program {
	case "ghost":
		all, what = n.Topology.Hosts(), "host"
	case "":
		all, what = slices.Concat(all, n.Topology.Hosts()), "switch or host"
	}
	names := make([]string, len(all))
	for i, node := range all {
		names[i] = n.Topology.Nodes[node].Name
	}
	_, isSwitch := n.SwitchByName(name)
	_, isHost := n.HostByName(name)
	switch {
	case name == "" && len(names) == 1:
		return names[0], nil
	case name == "":
		return "", usagef("which %s is to be shown? Choose it with --node: %s", what, strings.Join(names, ", "))
	case slices.Contains(names, name):
		return name, nil
	case isSwitch || isHost:
		return "", usagef("--node: %s has no verbs of %s; those of the run that have are %s", name, program, strings.Join(names, ", "))
	}
	return "", usagef("--node: the run has no %s %q, it has %s", what, name, strings.Join(names, ", "))
}

// hostOfRun is a host of a run, with its flows.
func hostOfRun(n *vnet.Network, k int, h *replay.Header) *host.Shown {
	at := &n.Plan.Nodes[n.HostNode(k)]
	rate := n.Topology.Links[n.Topology.Nodes[n.HostNode(k)].Links[0]].Rate
	s := &host.Shown{Name: n.HostName(k), Version: h.Build, NIC: n.Hosts[k], Address: at.Address[0], Rate: float64(rate), BaseRTT: n.Derived.BaseRTT,
		Payload: n.Payload(), Congestion: runner.ControlName(n.Congestion()), Now: n.Engine.Now()}
	copy(s.MAC[:], at.MAC[:])
	for o := range n.EachOpen {
		f := host.ShownFlow{QPN: o.QPN, Remote: o.Peer, Sends: o.Flow.Src == k, Congestion: runner.ControlName(o.Control), Bytes: o.Posted}
		peer := o.Flow.Dst
		if o.Flow.Dst == k {
			f.QPN, f.Remote, peer = o.Peer, o.QPN, o.Flow.Src
		} else if !f.Sends {
			continue
		}
		f.Peer = n.Plan.Nodes[n.HostNode(peer)].Address[0].Addr()
		s.Flows = append(s.Flows, f)
	}
	return s
}

// shownNode is whom a verb of a program shows behind an event at a node: that one, if the program
// has verbs of it.
func shownNode(t *fabric.Topology, name, program string) string {
	node, ok := t.Lookup(name)
	if ok && (t.Nodes[node].Kind == fabric.Host) == (program == "ghost") {
		return name
	}
	return ""
}
