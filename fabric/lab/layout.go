package lab

import (
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"strings"

	"gswitch/config"
	"gswitch/fabric"
	"gswitch/units"
)

// Options say how a topology is laid out on the machine.
type Options struct {
	// Each gives every switch its own process and namespace, with veth pairs
	// between switches. Otherwise one process holds all of them and in-process
	// wires join them.
	Each bool
	// Poll is the poll mode of the workers: spin, adaptive or sleep.
	Poll string
	// CPUs pins workers: one worker for each. None: one worker, not pinned.
	CPUs []int
	// Listen is a TCP address of this machine where the switches' API and
	// metrics are served too. For one process only.
	Listen string
	// Adjust may change the configuration of a switch before it is checked.
	Adjust func(node int, sw *config.Switch)
	// Owned says that the fabric is to live no longer than the process that
	// raises it: what a killed one leaves is not whole.
	Owned bool
	// Sysctls are settings of the hosts, such as net.ipv4.tcp_ecn.
	Sysctls map[string]string
	// Run are further flags of gswitch run.
	Run []string
}

// Layout is everything that a fabric makes on the machine.
type Layout struct {
	Plan       *fabric.Plan
	Namespaces []Namespace
	Veths      []Veth
	Processes  []Process
	dir        string
	owned      bool
	sysctls    map[string]string // of the hosts
}

// Namespace is a network namespace under /run/netns.
type Namespace struct {
	Name string `json:"name"`
	Node int    `json:"node"` // the node that is in it; -1 for that of all switches
}

// Veth is a pair of interfaces that carries a link.
type Veth struct {
	Link int `json:"link"` // index into the topology's links
	A    Dev `json:"a"`
	B    Dev `json:"b"`
}

// Dev is one end of a pair.
type Dev struct {
	Namespace int    `json:"namespace"` // index into Layout.Namespaces
	Name      string `json:"name"`
	Node      int    `json:"node"`
	mac       fabric.MAC
}

// Process is one gswitch.
type Process struct {
	Name      string
	Namespace int   // -1: that of the caller
	Switches  []int // nodes
	Config    *config.Config
	File, Log string // paths
	Socket    string
	run       []string // further flags
}

// hostDev is what a host's interface is called.
const hostDev = "eth0"

// switchSpace is the namespace of all switches; no node can have that name.
const switchSpace = "_switches"

// namespaceName returns the name under /run/netns of a node's namespace.
func namespaceName(fabricName, node string) string { return "gf." + fabricName + "." + node }

// NewLayout lays a plan out. Nothing is made yet.
func NewLayout(p *fabric.Plan, o Options) (*Layout, error) {
	if o.Each && o.Listen != "" {
		return nil, fmt.Errorf("only one process can listen on %s: leave --listen or --processes each out", o.Listen)
	}
	t := p.Topology
	l := &Layout{Plan: p, dir: filepath.Join(runDir, t.Name), owned: o.Owned, sysctls: maps.Clone(hostSysctls)}
	for key, v := range o.Sysctls {
		l.sysctls[strings.ReplaceAll(key, ".", "/")] = v
	}
	space := make([]int, len(t.Nodes)) // of each node
	for _, h := range t.Hosts() {
		space[h] = l.addNamespace(t.Nodes[h].Name, h)
	}
	if o.Each {
		for _, s := range t.Switches() {
			space[s] = l.addNamespace(t.Nodes[s].Name, s)
			l.addProcess(t.Nodes[s].Name, space[s], []int{s}, o)
		}
	} else {
		all := l.addNamespace(switchSpace, -1)
		for _, s := range t.Switches() {
			space[s] = all
		}
		process := all
		if o.Listen != "" {
			// A namespace has TCP ports of its own. Outside of it the process
			// can be reached; its ports find their interfaces by name.
			process = -1
		}
		l.addProcess("gswitch", process, t.Switches(), o)
	}
	ports := l.plug(space, o)
	if o.Listen != "" {
		for _, s := range t.Switches() {
			for i := range ports[s] {
				if ports[s][i].Interface != "" {
					ports[s][i].NetNS = l.Namespaces[space[s]].Name
				}
			}
		}
	}
	for i := range l.Processes {
		pr := &l.Processes[i]
		for _, s := range pr.Switches {
			sw := l.switchConfig(s, len(pr.Switches), ports[s])
			if o.Adjust != nil {
				o.Adjust(s, &sw)
			}
			pr.Config.Switches = append(pr.Config.Switches, sw)
		}
		if err := pr.Config.Check(); err != nil {
			return nil, fmt.Errorf("configuration of %s: %w", pr.Name, err)
		}
	}
	return l, nil
}

func (l *Layout) addNamespace(node string, n int) int {
	l.Namespaces = append(l.Namespaces, Namespace{Name: namespaceName(l.Plan.Topology.Name, node), Node: n})
	return len(l.Namespaces) - 1
}

func (l *Layout) addProcess(name string, space int, switches []int, o Options) {
	p := Process{
		Name: name, Namespace: space, Switches: switches,
		File:   filepath.Join(l.dir, name+".yaml"),
		Log:    filepath.Join(l.dir, name+".log"),
		Socket: filepath.Join(l.dir, name+".sock"),
		run:    o.Run,
	}
	p.Config = &config.Config{Version: 1, Control: config.Control{Socket: p.Socket, Listen: o.Listen}}
	if len(o.CPUs) == 0 {
		p.Config.Workers = []config.Worker{{Poll: o.Poll}}
	}
	for _, cpu := range o.CPUs {
		p.Config.Workers = append(p.Config.Workers, config.Worker{CPU: &cpu, Poll: o.Poll})
	}
	l.Processes = append(l.Processes, p)
}

// plug gives every link a veth pair or a wire and returns the ports of every
// switch, by port number, with what they are plugged into filled in.
func (l *Layout) plug(space []int, o Options) [][]config.Port {
	t := l.Plan.Topology
	ports := make([][]config.Port, len(t.Nodes))
	for i := range t.Nodes {
		ports[i] = make([]config.Port, len(t.Nodes[i].Links))
	}
	names := deviceNames{t: t, used: map[Dev]bool{}}
	for i := range t.Links {
		li := &t.Links[i]
		bothSwitches := t.Nodes[li.A.Node].Kind == fabric.Switch && t.Nodes[li.B.Node].Kind == fabric.Switch
		if bothSwitches && !o.Each {
			wire := fmt.Sprintf("%s:%d-%s:%d", t.Nodes[li.A.Node].Name, li.A.Port, t.Nodes[li.B.Node].Name, li.B.Port)
			ports[li.A.Node][li.A.Port].Wire = wire
			ports[li.B.Node][li.B.Port].Wire = wire
			continue
		}
		v := Veth{Link: i, A: names.dev(li.A, li.B, space), B: names.dev(li.B, li.A, space)}
		v.A.mac, v.B.mac = l.deviceMAC(li.A), l.deviceMAC(li.B)
		ports[li.A.Node][li.A.Port].Interface = v.A.Name
		ports[li.B.Node][li.B.Port].Interface = v.B.Name
		if bothSwitches {
			ports[li.A.Node][li.A.Port].Faces, ports[li.B.Node][li.B.Port].Faces = "switch", "switch"
		}
		l.Veths = append(l.Veths, v)
	}
	return ports
}

// deviceMAC is the address of an interface: a host's own; at a switch one
// that only the kernel ever uses.
func (l *Layout) deviceMAC(e fabric.End) fabric.MAC {
	m := l.Plan.Nodes[e.Node].MAC
	if l.Plan.Topology.Nodes[e.Node].Kind == fabric.Switch {
		m[1], m[5] = 0x02, byte(e.Port)
	}
	return m
}

// deviceNames makes names that fit into 15 bytes and say what is plugged in.
type deviceNames struct {
	t    *fabric.Topology
	used map[Dev]bool // by Namespace and Name alone
}

const maxDevName = 15 // IFNAMSIZ of netdevice(7), without the final zero

func (d *deviceNames) dev(e, far fabric.End, space []int) Dev {
	n := &d.t.Nodes[e.Node]
	if n.Kind == fabric.Host {
		return Dev{Namespace: space[e.Node], Name: hostDev, Node: e.Node}
	}
	dev := Dev{Namespace: space[e.Node], Name: n.Name + "-" + d.t.Nodes[far.Node].Name}
	if len(dev.Name) > maxDevName || d.used[dev] {
		dev.Name = fmt.Sprintf("n%dp%d", e.Node, e.Port)
	}
	d.used[dev] = true
	dev.Node = e.Node
	return dev
}

// Packet memory: what one process takes for the buffers of its switches, and
// the least for a port. It is locked and touched at the start, so that more
// would cost seconds and memory that a lab of many switches has no use for.
const (
	bufferBudget = units.Size(64 << 20)
	mostBuffer   = units.Size(16 << 20)
	leastBuffer  = units.Size(64 << 10) // for each port
)

// bufferSize is the buffer of a switch that shares its process with others.
func bufferSize(switches, ports int) units.Size {
	return max(min(bufferBudget/units.Size(switches), mostBuffer), leastBuffer*units.Size(ports))
}

// switchConfig completes the configuration of switch s, one of several in its
// process.
func (l *Layout) switchConfig(s, switches int, ports []config.Port) config.Switch {
	t, n := l.Plan.Topology, &l.Plan.Nodes[s]
	mac := config.MAC(n.MAC)
	sw := config.Switch{Name: t.Nodes[s].Name, MAC: &mac, Loopback: n.Loopback, Ports: ports}
	names := t.PortNames(s)
	for p := range ports {
		link := &t.Links[t.Nodes[s].Links[p]]
		port := &ports[p]
		port.Name = names[p]
		port.Rate = units.Rate(link.Rate)
		port.Delay = units.Duration(link.Delay)
		if t.Nodes[link.Other(s).Node].Kind == fabric.Host {
			// The kernel delays nothing that a host sends, so the switch's end
			// holds frames for both ways: round trips are right.
			port.Delay *= 2
		}
		port.MTU = link.MTU
		port.Addresses = n.Ports[p]
	}
	sw.Buffer.Size = bufferSize(switches, len(ports))
	if len(n.Address) > 0 {
		sw.VLANs = []config.VLAN{{ID: 1, Name: "hosts", Addresses: n.Address}}
	}
	for _, r := range n.Routes {
		route := config.Route{Prefix: r.Prefix}
		for _, via := range r.Via {
			route.NextHops = append(route.NextHops, config.NextHop{Via: via})
		}
		sw.Routes = append(sw.Routes, route)
	}
	return sw
}

// WriteConfigs writes the configuration of every process, one YAML document
// after the other.
func (l *Layout) WriteConfigs(w io.Writer) error {
	for i := range l.Processes {
		p := &l.Processes[i]
		if i > 0 {
			if _, err := io.WriteString(w, "---\n"); err != nil {
				return err
			}
		}
		if _, err := fmt.Fprintf(w, "# %s\n%s", p.File, p.Config.YAML()); err != nil {
			return err
		}
	}
	return nil
}
