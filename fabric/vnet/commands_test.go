package vnet

import (
	"testing"
	"time"

	"gswitch/frame"
	"gswitch/tcp"
)

// What a host was given is given to one like it: with the numbers that its queue pairs had,
// though some connections were left out, and with the ports of connections of TCP.
func TestCarry(t *testing.T) {
	made := func() *Network {
		return build(t, &Config{Topology: topology(t, "star(3)", gig, gig, time.Microsecond), Streams: Streams{On: true}})
	}
	n := made()
	var of [3][]Command
	n.OnCommand(func(_ frame.Time, host int, c *Command) { of[host] = append(of[host], *c) })
	var open []Conn
	stream := &TCP{Config: tcp.Default()}
	for _, f := range []Flow{{Src: 0, Dst: 1}, {Src: 2, Dst: 1}, {Src: 0, Dst: 1, TCP: stream}, {Src: 2, Dst: 1, TCP: stream}} {
		c, err := n.Dial(0, &f)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
	}
	if err := n.Close(0, open[0]); err != nil { // its place is taken again
		t.Fatal(err)
	}
	again, err := n.Dial(0, &Flow{Src: 0, Dst: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range append(open[1:], again) {
		if err := n.Send(0, c, 1000, 7); err != nil {
			t.Fatal(err)
		}
	}
	if len(of[0]) != 4+2 || len(of[1]) != 6+2 || len(of[2]) != 2+2 {
		t.Fatalf("%d, %d and %d commands", len(of[0]), len(of[1]), len(of[2]))
	}
	for host := range of {
		for left := range 3 { // the connection that is left out, or none
			x := made()
			for _, c := range of[host] {
				if c.Ends.Conn == Conn(left) && c.Ends.Generation == 0 {
					continue
				}
				if err := x.Carry(0, host, &c); err != nil {
					t.Fatalf("host %d without %d: %+v: %v", host, left, c, err)
				}
				if c.Kind != CommandSend && x.Carry(0, host, &c) == nil {
					t.Errorf("host %d without %d: twice %+v", host, left, c)
				}
			}
			if conn := n.flows.conns[0]; host == 1 && x.flows.conns[0].qpB != conn.qpB || host == 0 && x.flows.conns[0].qpA != conn.qpA {
				t.Errorf("host %d without %d: queue pairs %#x and %#x, not %#x and %#x", host, left, x.flows.conns[0].qpA, x.flows.conns[0].qpB, conn.qpA, conn.qpB)
			}
			for qpn := range x.Hosts[host].QPs {
				v, err := x.Hosts[host].QP(qpn)
				was, there := n.Hosts[host].QP(qpn)
				if err != nil || there != nil || v.Remote != was.Remote || v.Posted != was.Posted {
					t.Errorf("host %d without %d: %+v, not %+v", host, left, v, was)
				}
			}
			if left == 0 && x.Hosts[host].Counts().QPsOpen != n.Hosts[host].Counts().QPsOpen {
				t.Errorf("host %d: %d queue pairs, not %d", host, x.Hosts[host].Counts().QPsOpen, n.Hosts[host].Counts().QPsOpen)
			}
			for _, c := range []Conn{open[2], open[3]} {
				if n.flows.conns[c-1].flow.Src != host {
					continue
				}
				is, was := x.stacks[host].Conn(x.flows.conns[c-1].qpA), n.stacks[host].Conn(n.flows.conns[c-1].qpA)
				if is == nil || was == nil || is.Due() != was.Due() {
					t.Errorf("host %d: %v, not %v", host, is, was)
				}
			}
		}
	}
	x := made()
	for _, c := range []Command{{Kind: CommandSend, Ends: Ends{Conn: 1}}, {Kind: CommandClose, Ends: Ends{Conn: 1}}, {}, {Ends: Ends{Conn: maxConns + 1}},
		{Ends: Ends{Conn: 1}, Flow: Flow{Src: 1, Dst: 2}}, {Ends: Ends{Conn: 1}, Flow: Flow{Src: 0, Dst: 3}}} {
		if x.Carry(0, 0, &c) == nil {
			t.Errorf("host 0 carried out %+v", c)
		}
	}
	was := len(of[0])
	if !n.Inject(0, 0, make([]byte, 100), 1) || len(of[0]) != was+1 || x.Carry(0, 0, &of[0][was]) != nil {
		t.Error("a frame is not sent again")
	}
	was = len(of[0])
	if n.TakeReports(0, 0, "meters", nil); len(of[0]) != was+1 || of[0][was].Of != "meters" || x.Carry(0, 0, &of[0][was]) != nil {
		t.Error("the taking of reports is no command")
	}
	for _, c := range []Command{{Kind: CommandInject, Frame: make([]byte, 1<<16)}, {Kind: CommandInject, Class: 8}} {
		if x.Carry(0, 0, &c) == nil {
			t.Errorf("host 0 sent %d bytes in class %d", len(c.Frame), c.Class)
		}
	}
	if x.Carry(0, 3, &of[0][0]) == nil || x.Carry(0, -1, &of[0][0]) == nil {
		t.Error("a host that is not there carried something out")
	}
}
