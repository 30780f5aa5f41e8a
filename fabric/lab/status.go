package lab

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"strings"
	"time"

	"github.com/vishvananda/netlink"

	"gswitch/fabric"
	"gswitch/table"
	"gswitch/units"
)

// Status is what is there of a fabric.
type Status struct {
	Name      string           `json:"name"`
	Phase     string           `json:"phase"` // creating, up, removing
	Mode      fabric.Mode      `json:"mode"`
	Created   time.Time        `json:"created"`
	Healthy   bool             `json:"healthy"`
	Problems  []string         `json:"problems"`
	Hosts     []HostStatus     `json:"hosts"`
	Processes []ProcessStatus  `json:"processes"`
	Links     []LinkStatus     `json:"links"`
	Topology  *fabric.Topology `json:"-"`
}

// HostStatus is one host.
type HostStatus struct {
	Name      string         `json:"name"`
	Namespace string         `json:"namespace"`
	Interface string         `json:"interface"`
	MAC       string         `json:"mac"`
	Addresses []netip.Prefix `json:"addresses"`
	Switch    string         `json:"switch"`
	Up        bool           `json:"up"`
}

// ProcessStatus is one gswitch.
type ProcessStatus struct {
	Name      string   `json:"name"`
	Switches  []string `json:"switches"`
	PID       int      `json:"pid"`
	Running   bool     `json:"running"`
	Namespace string   `json:"namespace"`
	Config    string   `json:"config"`
	Log       string   `json:"log"`
	Socket    string   `json:"socket"`
	Listen    string   `json:"listen,omitempty"` // TCP address of API and metrics
}

// LinkStatus is one link.
type LinkStatus struct {
	A     string `json:"a"`
	B     string `json:"b"`
	Kind  string `json:"kind"` // veth or wire
	Rate  string `json:"rate"`
	MTU   int    `json:"mtu"`
	Delay string `json:"delay"`
	Up    bool   `json:"up"`
}

// Inspect compares a fabric's state with what is there.
func Inspect(name string) (*Status, error) {
	s, err := readState(name)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return nil, fmt.Errorf("there is no fabric %q", name)
	}
	return s.inspect(), nil
}

// List inspects every fabric.
func List() ([]*Status, error) {
	all, err := names()
	if err != nil {
		return nil, err
	}
	v := []*Status{} // nothing is an empty list in JSON too
	for _, name := range all {
		s, err := readState(name)
		if err != nil {
			return nil, err
		}
		if s != nil {
			v = append(v, s.inspect())
		}
	}
	return v, nil
}

func (s *state) inspect() *Status {
	t := s.Topology
	st := &Status{Name: s.Name, Phase: s.Phase, Mode: t.Mode, Created: s.Created, Topology: t, Problems: []string{}}
	problem := func(format string, args ...any) { st.Problems = append(st.Problems, fmt.Sprintf(format, args...)) }
	switch {
	case s.Phase == phaseCreating && s.Maker.alive():
		problem("is being raised by process %d", s.Maker.PID)
	case s.Phase != phaseUp:
		problem("was left while %s; gfabric down or up cleans it", s.Phase)
	case s.Owned && !s.Maker.alive():
		problem("process %d, which raised it for itself, was killed; gfabric down --name %s removes what it left", s.Maker.PID, s.Name)
	}
	up := s.devicesUp(problem)
	plan, err := fabric.NewPlan(t)
	if err != nil {
		problem("%v", err)
		plan = &fabric.Plan{Nodes: make([]fabric.NodePlan, len(t.Nodes))}
	}
	for _, h := range t.Hosts() {
		st.Hosts = append(st.Hosts, HostStatus{
			Name: t.Nodes[h].Name, Namespace: namespaceName(s.Name, t.Nodes[h].Name), Interface: hostDev, MAC: plan.Nodes[h].MAC.String(),
			Addresses: plan.Nodes[h].Address, Switch: t.Nodes[t.Peer(h, 0).Node].Name,
		})
	}
	running := map[string]bool{} // by name of the switch
	for _, p := range s.Processes {
		ps := ProcessStatus{Name: p.Name, Switches: p.Switches, PID: p.Proc.PID, Running: p.Proc.alive(), Namespace: p.Namespace, Config: p.Config, Log: p.Log, Socket: p.Socket, Listen: p.Listen}
		if !ps.Running {
			problem("gswitch process %s (%d) is not running; its log is %s", p.Name, p.Proc.PID, p.Log)
		}
		for _, sw := range p.Switches {
			running[sw] = ps.Running
		}
		st.Processes = append(st.Processes, ps)
	}
	for i := range t.Links {
		l := &t.Links[i]
		a, b := t.Nodes[l.A.Node].Name, t.Nodes[l.B.Node].Name
		ls := LinkStatus{A: a, B: b, Kind: "wire", Rate: units.Rate(l.Rate).String(), MTU: l.MTU, Delay: l.Delay.String(), Up: running[a] && running[b]}
		st.Links = append(st.Links, ls)
	}
	for i, v := range s.Veths {
		ls := &st.Links[v.Link]
		ls.Kind, ls.Up = "veth", up[i]
		if t.Nodes[v.A.Node].Kind == fabric.Host || t.Nodes[v.B.Node].Kind == fabric.Host {
			for h := range st.Hosts {
				if st.Hosts[h].Name == ls.A || st.Hosts[h].Name == ls.B {
					st.Hosts[h].Up = up[i]
				}
			}
		}
		if !up[i] {
			problem("link %s - %s is down", ls.A, ls.B)
		}
	}
	st.Healthy = len(st.Problems) == 0
	return st
}

// devicesUp reports for every veth pair whether both ends are there and up.
func (s *state) devicesUp(problem func(string, ...any)) []bool {
	up := make([]bool, len(s.Veths))
	for i := range up {
		up[i] = true
	}
	for i, n := range s.Namespaces {
		flags := map[string]bool{}
		ns, err := openNamespace(n.Name, s.marker())
		switch {
		case errors.Is(err, fs.ErrNotExist):
			problem("namespace %s is gone", n.Name)
		case err != nil:
			problem("%v", err)
		default:
			if h, err := netlink.NewHandleAt(ns); err == nil {
				links, _ := h.LinkList()
				for _, l := range links {
					flags[l.Attrs().Name] = l.Attrs().OperState == netlink.OperUp
				}
				h.Close()
			}
			ns.Close()
		}
		for k, v := range s.Veths {
			for _, d := range []Dev{v.A, v.B} {
				if d.Namespace == i && !flags[d.Name] {
					up[k] = false
				}
			}
		}
	}
	return up
}

// mostNamed is how many switches a line of the table names.
const mostNamed = 4

// WriteTable writes the status for humans.
func (st *Status) WriteTable(w io.Writer) error {
	var b strings.Builder
	word := "healthy"
	if !st.Healthy {
		word = "NOT WHOLE"
	}
	fmt.Fprintf(&b, "fabric %s: %s (%s), %s, since %s\n", st.Name, word, st.Phase, st.Mode, st.Created.Local().Format(time.DateTime))
	for _, p := range st.Problems {
		fmt.Fprintf(&b, "  problem: %s\n", p)
	}
	hosts := table.New("HOST", "UP", "ADDRESSES", "SWITCH", "NAMESPACE")
	for _, h := range st.Hosts {
		words := make([]string, len(h.Addresses))
		for i, a := range h.Addresses {
			words[i] = a.String()
		}
		hosts.Row(h.Name, yes(h.Up), strings.Join(words, " "), h.Switch, h.Namespace)
	}
	processes := table.New("PROCESS", "RUNNING", "PID", "SWITCHES", "SOCKET")
	for _, p := range st.Processes {
		switches := strings.Join(p.Switches, " ")
		if len(p.Switches) > mostNamed {
			switches = fmt.Sprintf("%s to %s (%d)", p.Switches[0], p.Switches[len(p.Switches)-1], len(p.Switches))
		}
		processes.Row(p.Name, yes(p.Running), p.PID, switches, p.Socket)
	}
	b.WriteByte('\n')
	hosts.Print(&b)
	b.WriteByte('\n')
	processes.Print(&b)
	for _, p := range st.Processes {
		if p.Listen != "" {
			fmt.Fprintf(&b, "\nmetrics of %s: http://%s/metrics\n", p.Name, p.Listen)
		}
	}
	links := table.New("LINK", "UP", "KIND", "RATE", "DELAY", "MTU")
	for _, l := range st.Links {
		links.Rowf("%s - %s\t%s\t%s\t%s\t%s\t%d", l.A, l.B, yes(l.Up), l.Kind, l.Rate, l.Delay, l.MTU)
	}
	b.WriteByte('\n')
	links.Print(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "NO"
}
