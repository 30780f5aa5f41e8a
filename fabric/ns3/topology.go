package ns3

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"gswitch/fabric"
	"gswitch/units"
)

// Bounds of what a topology file may describe: node numbers are the third and
// second byte of an address (AddrOf).
const (
	maxNodes = 1 << 15
	maxLinks = 1 << 17
)

// Topology is a topology file:
//
//	nodes switches links
//	number of every switch
//	node node rate delay loss      (one line a link)
type Topology struct {
	Nodes    int
	IsSwitch []bool // by node
	Links    []Link
}

// Link joins nodes A and B.
type Link struct {
	A, B  int
	Rate  uint64        // bit/s
	Delay time.Duration // one way
	Loss  float64       // probability that a frame is lost, each way
}

// ParseTopology reads a topology file. file is the name that errors carry.
func ParseTopology(file string, data []byte) (*Topology, error) {
	r := &reader{file: file, data: data}
	f, err := r.row(3, "numbers of nodes, switches and links")
	if err != nil {
		return nil, err
	}
	var n [3]uint64
	for i, c := range []struct {
		what string
		max  uint64
	}{{"number of nodes", maxNodes}, {"number of switches", maxNodes}, {"number of links", maxLinks}} {
		if n[i], err = r.number(f[i], c.max, c.what); err != nil {
			return nil, err
		}
	}
	if n[1] > n[0] {
		return nil, r.fail("%d switches among %d nodes", n[1], n[0])
	}
	t := &Topology{Nodes: int(n[0]), IsSwitch: make([]bool, n[0])}
	if err := t.readSwitches(r, int(n[1])); err != nil {
		return nil, err
	}
	for range n[2] {
		l, err := t.readLink(r)
		if err != nil {
			return nil, err
		}
		t.Links = append(t.Links, l)
	}
	return t, r.end("link")
}

func (t *Topology) readSwitches(r *reader, n int) error {
	if n == 0 {
		return r.fail("no switches; hosts are linked to switches only")
	}
	f, err := r.row(n, "the numbers of the switches")
	if err != nil {
		return err
	}
	for _, b := range f {
		id, err := r.node(b, t.Nodes)
		if err != nil {
			return err
		}
		if t.IsSwitch[id] {
			return r.fail("switch %d is named twice", id)
		}
		t.IsSwitch[id] = true
	}
	return nil
}

func (t *Topology) readLink(r *reader) (l Link, err error) {
	f, err := r.row(5, "a link (node, node, rate, delay, loss)")
	if err != nil {
		return l, err
	}
	if l.A, err = r.node(f[0], t.Nodes); err != nil {
		return l, err
	}
	if l.B, err = r.node(f[1], t.Nodes); err != nil {
		return l, err
	}
	if l.Rate, err = r.rate(f[2]); err != nil {
		return l, err
	}
	if l.Delay, err = r.delay(f[3]); err != nil {
		return l, err
	}
	l.Loss, err = strconv.ParseFloat(string(f[4]), 64)
	switch {
	case err != nil || !(l.Loss >= 0 && l.Loss < 1):
		return l, r.fail("loss %q is not a probability from 0 to below 1", f[4])
	case l.A == l.B:
		return l, r.fail("the link joins node %d to itself", l.A)
	case !t.IsSwitch[l.A] && !t.IsSwitch[l.B]:
		return l, r.fail("the link joins the hosts %d and %d; put a switch between them", l.A, l.B)
	}
	return l, nil
}

func (r *reader) node(b []byte, nodes int) (int, error) {
	v, err := r.number(b, math.MaxInt32, "node")
	if err == nil && v >= uint64(nodes) {
		err = r.fail("node %d is not one of the %d nodes, which count from 0", v, nodes)
	}
	return int(v), err
}

// quantity parses a number with a unit, in whole bit/s or nanoseconds.
func (r *reader) quantity(b []byte, kind *units.Kind, what, example string) (uint64, error) {
	v, err := kind.Number(string(b))
	if err != nil || !(v >= 0 && v <= 1e15) {
		return 0, r.fail("%s %q is not a number with a unit, such as %s", what, b, example)
	}
	return uint64(math.Round(v)), nil
}

func (r *reader) rate(b []byte) (uint64, error) {
	v, err := r.quantity(b, units.Bits, "rate", "100Gbps")
	if err == nil && v < 1e6 {
		err = r.fail("rate %q is below 1Mbps", b)
	}
	return v, err
}

// maxDelay is a second: longer links need no data-centre simulator.
const maxDelay = 1e9

func (r *reader) delay(b []byte) (time.Duration, error) {
	v, err := r.quantity(b, units.Time, "delay", "1000ns")
	if err == nil && v > maxDelay {
		err = r.fail("delay %q is above 1s", b)
	}
	return time.Duration(v), err
}

// Name is the name of a node in the fabric: h5, s16.
func (t *Topology) Name(node int) string {
	if t.IsSwitch[node] {
		return fmt.Sprintf("s%d", node)
	}
	return fmt.Sprintf("h%d", node)
}

// Fabric returns the network of the file. Nodes that no link reaches are left
// out: published files have some.
func (t *Topology) Fabric(name string) (*fabric.Topology, error) {
	linked := make([]bool, t.Nodes)
	s := fabric.Spec{Name: fabricName(name)}
	for i := range t.Links {
		l := &t.Links[i]
		linked[l.A], linked[l.B] = true, true
		rate, delay := units.Rate(l.Rate), units.Duration(l.Delay)
		s.Links = append(s.Links, fabric.LinkSpec{A: t.Name(l.A), B: t.Name(l.B), Rate: &rate, Delay: &delay})
	}
	for i, is := range t.IsSwitch {
		switch {
		case !linked[i]:
		case is:
			s.Switches = append(s.Switches, t.Name(i))
		default:
			s.Hosts = append(s.Hosts, t.Name(i))
		}
	}
	return s.Build()
}

// fabricName turns a file's name into one that a fabric may have.
func fabricName(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, s)
	s = strings.Trim(s[:min(len(s), 32)], "-")
	if s == "" {
		return "ns3"
	}
	return s
}
