package export

import (
	"fmt"
	"net"
	"net/netip"
	"slices"

	"go.yaml.in/yaml/v3"

	"gswitch/fabric"
	"gswitch/fabric/lab"
	"gswitch/units"
)

// Hosts says what the hosts of a topology are.
type Hosts string

const (
	Kernel Hosts = "kernel" // containers with a kernel's own stack
	Ghost  Hosts = "ghost"  // RDMA hosts
)

// Images are names of images.
type Images struct {
	Gswitch, Ghost, Gfabric string
	Kernel                  string // of hosts with a kernel's own stack, with ip and ethtool for containerlab
}

// metrics is where daemons serve metrics, in the management network of the engine.
const metrics = "0.0.0.0:9479"

// wait is how long nodes wait for their links, which come after the containers.
const wait = "60s"

// Class is the lossless one of data between ghosts.
const Class = 3

// Topology makes the switches of a layout, each with a process of its own, and its
// hosts containers that run the daemons.
func Topology(l *lab.Layout, hosts Hosts, images Images) (*Lab, error) {
	t := l.Plan.Topology
	out := &Lab{Name: t.Name, About: fmt.Sprintf("%s: %s and %s.", t.Name, fabric.Count(len(t.Switches()), "switch", "switches"), fabric.Count(len(t.Hosts()), "host", "hosts")), Links: links(t, 0)}
	for i := range l.Processes {
		p := &l.Processes[i]
		if len(p.Switches) != 1 {
			return nil, fmt.Errorf("process %s has %d switches: a container has one", p.Name, len(p.Switches))
		}
		c := *p.Config
		c.Control.Socket, c.Control.Listen = "", metrics
		c.Switches = slices.Clone(c.Switches)
		sw := &c.Switches[0]
		sw.Ports = slices.Clone(sw.Ports)
		for port := range sw.Ports {
			sw.Ports[port].Interface, sw.Ports[port].NetNS = Interface(port), ""
		}
		if err := c.Check(); err != nil {
			return nil, fmt.Errorf("configuration of %s: %w", p.Name, err)
		}
		out.Nodes = append(out.Nodes, daemon(p.Name, images.Gswitch, "/etc/gswitch/gswitch.yaml", c.YAML()))
	}
	for _, h := range t.Hosts() {
		n, err := host(l.Plan, h, hosts, images)
		if err != nil {
			return nil, err
		}
		out.Nodes = append(out.Nodes, n)
	}
	return out, nil
}

func daemon(name, image, file string, text []byte) Node {
	return Node{Name: name, Image: image, Command: []string{"run", "-c", file, "--wait", wait}, Files: []File{{Path: file, Text: text}}}
}

func host(p *fabric.Plan, h int, hosts Hosts, images Images) (Node, error) {
	name, plan := p.Topology.Nodes[h].Name, &p.Nodes[h]
	if len(p.Topology.Nodes[h].Links) != 1 {
		return Node{}, fmt.Errorf("host %s has %d links: a host has one", name, len(p.Topology.Nodes[h].Links))
	}
	if hosts == Ghost {
		text, err := ghost(p, h)
		return daemon(name, images.Ghost, "/etc/ghost/ghost.yaml", text), err
	}
	dev := Interface(0)
	n := Node{Name: name, Image: images.Kernel, Command: []string{"sleep", "infinity"}, Kernel: []string{
		// A veth hands over frames whose checksums are not filled in: a switch would
		// pass them on, and TCP hang.
		"ethtool -K " + dev + " tx off tso off gso off txvlan off",
		"ip link set " + dev + " address " + plan.MAC.String(),
	}}
	for _, a := range plan.Address {
		n.Kernel = append(n.Kernel, fmt.Sprintf("ip address replace %v dev %s%s", a, dev, nodad(a.Addr())))
	}
	for _, gw := range plan.Gateway {
		// Not the default route, which is that of the management network.
		for _, to := range others(p, gw) {
			n.Kernel = append(n.Kernel, fmt.Sprintf("ip route replace %v via %v", to, gw))
		}
	}
	return n, nil
}

func nodad(a netip.Addr) string {
	if a.Is6() {
		return " nodad"
	}
	return ""
}

// others are the networks of hosts behind other switches than the one that has a
// gateway, in order.
func others(p *fabric.Plan, gw netip.Addr) (v []netip.Prefix) {
	for _, s := range p.Topology.Switches() {
		for _, a := range p.Nodes[s].Address {
			if net := a.Masked(); a.Addr().Is4() == gw.Is4() && !net.Contains(gw) && !slices.Contains(v, net) {
				v = append(v, net)
			}
		}
	}
	return v
}

// ghost is the document of an RDMA host, as people write it (docs/GHOST.md).
func ghost(p *fabric.Plan, h int) ([]byte, error) {
	t, plan := p.Topology, &p.Nodes[h]
	link := &t.Links[t.Nodes[h].Links[0]]
	type list []int
	doc := struct {
		Version   int
		Name      string
		Interface string
		MAC       string
		Address   string
		Gateway   string              `yaml:",omitempty"`
		Rate      string              `yaml:",omitempty"`
		BaseRTT   string              `yaml:"base_rtt"`
		Telemetry map[string][]string `yaml:",omitempty"`
		Class     int
		PFC       map[string]list `yaml:",flow"`
		CNP       bool
		Serve     bool
		Control   map[string]string
	}{Version: 1, Name: t.Nodes[h].Name, Interface: Interface(0), MAC: net.HardwareAddr(plan.MAC[:]).String(), BaseRTT: "auto", Class: Class,
		PFC: map[string]list{"classes": {Class}}, CNP: true, Serve: true, Control: map[string]string{"listen": metrics}}
	doc.Address = plan.Address[0].String()
	if len(plan.Gateway) > 0 {
		doc.Gateway = plan.Gateway[0].String()
	}
	if link.Rate > 0 {
		doc.Rate = units.Rate(link.Rate).String()
	}
	if rates := Rates(t); rates != nil {
		doc.Telemetry = map[string][]string{"links": {}}
		for _, r := range rates {
			doc.Telemetry["links"] = append(doc.Telemetry["links"], r.String())
		}
	}
	return yaml.Marshal(&doc)
}

// Rates are those of all links, from the slowest; nil if one has none.
func Rates(t *fabric.Topology) (v []units.Rate) {
	for i := range t.Links {
		if t.Links[i].Rate == 0 {
			return nil
		}
		v = append(v, units.Rate(t.Links[i].Rate))
	}
	slices.Sort(v)
	return slices.Compact(v)
}
