package vnet_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"gswitch/cc"
	"gswitch/fabric"
	"gswitch/fabric/vnet"
	"gswitch/frame"
	"gswitch/hostnic"
	inband "gswitch/int"
	"gswitch/transport"
	"gswitch/units"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// Transcripts are stories of hosts with a network between them: what they send,
// what the network loses, and what becomes of their windows. CONTRIBUTING.md
// says how to read and write one; -rewrite writes the answers anew.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, path string) {
		s := &transcript{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.out.Reset()
			if err := s.do(d); err != nil {
				return "error: " + err.Error() + "\n"
			}
			return s.out.String()
		})
		if s.net != nil {
			if err := s.net.Engine.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

type transcript struct {
	net   *vnet.Network
	out   strings.Builder
	lose  []loss
	every frame.Time // 0: packets are written; else windows, so often
	next  map[string]frame.Time
}

// loss is a packet of a host that the network loses, so many times.
type loss struct {
	host  string
	psn   uint32
	times int
}

func (s *transcript) do(d *datadriven.TestData) error {
	words := strings.Fields(d.Input)
	switch d.Cmd {
	case "network":
		return s.build(d)
	case "flow": // h1 > h2, 5000 bytes
		if len(words) != 5 {
			return fmt.Errorf("a flow is: h1 > h2, N bytes")
		}
		src, ok := s.net.HostByName(words[0])
		dst, both := s.net.HostByName(strings.TrimSuffix(words[2], ","))
		bytes, err := strconv.ParseUint(words[3], 10, 64)
		if !ok || !both || err != nil {
			return fmt.Errorf("there are no such hosts, or no number: %s", d.Input)
		}
		return s.net.StartFlow(s.net.Engine.Now(), &vnet.Flow{Src: src, Dst: dst, Bytes: bytes})
	case "lose": // h1 psn 3, 2 times
		l := loss{times: 1}
		if _, err := fmt.Sscanf(d.Input, "%s psn %d, %d times", &l.host, &l.psn, &l.times); err != nil && l.host == "" {
			return fmt.Errorf("a loss is: h1 psn N, N times")
		}
		s.lose = append(s.lose, l)
		return nil
	case "run":
		if len(d.CmdArgs) != 1 {
			return fmt.Errorf("run for how long?")
		}
		by, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			return err
		}
		return s.net.Engine.Run(s.net.Engine.Now() + frame.Time(by))
	}
	return fmt.Errorf("there is no command %q: network, flow, lose, run", d.Cmd)
}

// build makes a network of so many hosts at one switch.
func (s *transcript) build(d *datadriven.TestData) error {
	opt := map[string]string{"hosts": "2", "rate": "10Gbps", "delay": "1us", "recovery": "go-back-n", "cc": "", "telemetry": "none", "windows": "0s"}
	for _, a := range d.CmdArgs {
		if _, known := opt[a.Key]; !known || len(a.Vals) != 1 {
			return fmt.Errorf("%s is not one of: hosts, rate, delay, recovery, cc, telemetry, windows", a.Key)
		}
		opt[a.Key] = a.Vals[0]
	}
	var rate units.Rate
	if err := rate.UnmarshalText([]byte(opt["rate"])); err != nil {
		return err
	}
	delay, err := time.ParseDuration(opt["delay"])
	if err != nil {
		return err
	}
	class := fabric.Class{Rate: rate, Delay: units.Duration(delay)}
	spec := fabric.Spec{Name: "transcript", Generate: "star(" + opt["hosts"] + ")", Classes: map[string]fabric.Class{fabric.ClassHost: class, fabric.ClassFabric: class}}
	topo, err := spec.Build()
	if err != nil {
		return err
	}
	c := &vnet.Config{Topology: topo, Seed: 1}
	if c.Host.Transport.Recovery, err = transport.Lookup(opt["recovery"]); err != nil {
		return err
	}
	if name := opt["cc"]; name != "" {
		f, err := cc.Factory(name, nil)
		if err != nil {
			return err
		}
		c.Host.CC = vnet.Algorithm{Name: name, New: f}
	}
	if opt["telemetry"] == "hpcc" {
		c.INT.Mode = inband.HPCC
	}
	c.Host.Recovery = vnet.Recovery{Cap: true, RTOs: true}
	c.Engine = func(spec *vnet.EngineSpec) (vnet.Engine, error) {
		e, err := vnet.Virtual(spec)
		return &narrator{e, s, topo}, err
	}
	every, err := time.ParseDuration(opt["windows"])
	if err != nil {
		return err
	}
	if s.net != nil {
		if err := s.net.Engine.Close(); err != nil {
			return err
		}
	}
	s.every, s.next, s.lose = frame.Time(every), map[string]frame.Time{}, nil
	s.net, err = vnet.Build(c)
	if err != nil {
		return err
	}
	s.net.OnDone(func(now frame.Time, d *vnet.Done) {
		s.say(now, fmt.Sprintf("%s has delivered %d bytes in %s; packets sent again: %d, timeouts: %d", s.net.HostName(d.Flow.Src), d.Flow.Bytes, instant(d.FCT()), d.Retransmits, d.Timeouts))
	})
	dv := s.net.Derived
	fmt.Fprintf(&s.out, "frames of %d bytes, round trip %s, cap %d packets, timeouts %s and %s\n", dv.MTU, instant(dv.BaseRTT), dv.Transport.Cap, instant(dv.Transport.RTOLow), instant(dv.Transport.RTOHigh))
	return nil
}

func (s *transcript) say(at frame.Time, line string) {
	fmt.Fprintf(&s.out, "%s %s\n", instant(at), line)
}

func instant(t frame.Time) string { return fmt.Sprintf("%.3fus", float64(t)/1000) }

// narrator is an engine that writes down what hosts send and what becomes of it.
type narrator struct {
	vnet.Engine
	s    *transcript
	topo *fabric.Topology
}

type narratedNode struct {
	frame.Stepper
	s    *transcript
	name string
	pool *frame.Pool
}

func (e *narrator) AddNode(node int, n frame.Stepper, after func(frame.Time)) int {
	if e.topo.Nodes[node].Kind == fabric.Host {
		n = &narratedNode{n, e.s, e.topo.Nodes[node].Name, e.Engine.Pool(node)}
	}
	return e.Engine.AddNode(node, n, after)
}

// Transmit reports what leaves, and takes out what the network loses.
func (n *narratedNode) Transmit(now frame.Time, port uint16, out []frame.Ref) int {
	k := n.Stepper.Transmit(now, port, out)
	kept := out[:0]
	for _, r := range out[:k] {
		m, b := n.pool.Meta(r), n.pool.Bytes(r)
		line, lost := n.name+" sends "+segment(b, int(m.Wire)), n.lost(b, m)
		if lost {
			line += ": lost"
		}
		if n.s.every == 0 || lost {
			n.s.say(m.Depart, line)
		}
		if lost {
			n.pool.Free(r)
			continue
		}
		kept = append(kept, r)
	}
	return len(kept)
}

// segment is what stands behind addresses, which are always the same here.
func segment(b []byte, bytes int) string {
	w := wt.Words(b, bytes)
	if _, rest, ok := strings.Cut(w, "> RoCE, "); ok {
		return rest
	}
	return w
}

func (n *narratedNode) lost(b []byte, m *frame.Meta) bool {
	p := wt.ParseHead(b, int(m.Wire))
	if p.Flags&frame.HasRoCE == 0 {
		return false
	}
	for i := range n.s.lose {
		l := &n.s.lose[i]
		if l.host == n.name && l.times > 0 && wire.BTH(b[wire.BTHOffset(&p, b):]).PSN() == l.psn {
			l.times--
			return true
		}
	}
	return false
}

// Receive reports windows, once in a while.
func (n *narratedNode) Receive(now frame.Time, port uint16, v []frame.Ref) {
	n.Stepper.Receive(now, port, v)
	nic, ok := n.Stepper.(*hostnic.NIC)
	if !ok || n.s.every == 0 || now < n.s.next[n.name] {
		return
	}
	for qpn := range nic.QPs {
		if q, err := nic.QP(qpn); err == nil && q.Posted > 0 {
			n.s.next[n.name] = now + n.s.every
			n.s.say(now, fmt.Sprintf("%s has a window of %.0f bytes and a rate of %.2f Gb/s; %d bytes are in flight", n.name, q.Window, q.Rate/1e9, q.InFlight))
		}
	}
}
