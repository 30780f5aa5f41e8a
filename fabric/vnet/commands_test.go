package vnet

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"gswitch/command/commandtest"
	"gswitch/frame"
	"gswitch/hostnic"
	"gswitch/tcp"
)

func someHostChanges() []HostChange {
	return []HostChange{
		&OpenEnd{Ends: Ends{3, 2, [2]uint32{0x105, 0x206}}, Flow: Flow{Group: 1, Src: 4, Dst: 300, ID: 1 << 40, NoECN: true, SrcPort: 0xc000, AckPort: 7}},
		&OpenEnd{Ends: Ends{Conn: maxConns}},
		&OpenEnd{Ends: Ends{Conn: math.MaxUint32, QPN: [2]uint32{1, 2}}, Flow: Flow{Dst: 1}}, // which Carry refuses
		&Post{Conn: 3, Generation: 2, Bytes: 1 << 50, ID: 9},
		&CloseEnd{3, 2},
		OfNIC{hostnic.TakeReports{Feature: "meters"}},
		OfNIC{&hostnic.Inject{Frame: []byte{1, 2, 3}, Class: 7}},
	}
}

func TestHostChangesAreEncoded(t *testing.T) {
	commandtest.Encoded(t, someHostChanges(), DecodeHostChange)
	// The form outlives the version: records that were made keep their meaning.
	for i, want := range [][]byte{
		{16, 1, 3, 2, 0x85, 2, 0x86, 4, 1, 4, 0xac, 2, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20, 0x80, 0x80, 3, 7},
		4: {18, 3, 2}, 5: []byte("\x06\x06meters"), 6: {8, 7, 3, 1, 2, 3},
	} {
		if got := someHostChanges()[i].Encode(nil); want != nil && !bytes.Equal(got, want) {
			t.Errorf("change %d is encoded as %x, want %x", i, got, want)
		}
	}
	for _, bad := range []string{"", "\x00", "\x05", "\x0f", "\x13", "\x10\x02", "\x11\x00\x00\x01\x01", "\x12\x01", "\x12\x01\x00\x00", "\x08\x08\x00", "\x08\x01\x04abc", `{"Kind":2}`} {
		if c, err := DecodeHostChange([]byte(bad)); err == nil {
			t.Errorf("%x is taken for %+v", bad, c)
		}
	}
}

func FuzzDecodeHostChange(f *testing.F) { commandtest.Fuzz(f, someHostChanges(), DecodeHostChange) }

// What a host was given is given to one like it: with the numbers that its queue pairs had,
// though some connections were left out, and with the ports of connections of TCP.
func TestCarry(t *testing.T) {
	made := func() *Network {
		return build(t, &Config{Topology: topology(t, "star(3)", gig, gig, time.Microsecond), Streams: Streams{On: true}})
	}
	n := made()
	stream := &TCP{Config: tcp.Default()}
	var of [3][][]byte
	n.OnCommand(func(now frame.Time, node int, c frame.Command) {
		host := n.HostAt(node)
		of[host] = append(of[host], c.Encode(nil))
		c.Do(now)
	})
	decode := func(b []byte) HostChange {
		c, err := DecodeHostChange(b)
		if err != nil {
			t.Fatal(err)
		}
		if open, is := c.(*OpenEnd); is && open.Flow.Group == 1 {
			open.Flow.TCP = stream
		}
		return c
	}
	var open []Conn
	for _, f := range []Flow{{Src: 0, Dst: 1}, {Src: 2, Dst: 1}, {Group: 1, Src: 0, Dst: 1, TCP: stream}, {Group: 1, Src: 2, Dst: 1, TCP: stream}} {
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
			for _, b := range of[host] {
				c, again := decode(b), true
				switch c := c.(type) {
				case *OpenEnd:
					if c.Conn == Conn(left) && c.Generation == 0 {
						continue
					}
				case *CloseEnd:
					if c.Conn == Conn(left) && c.Generation == 0 {
						continue
					}
				case *Post:
					if c.Conn == Conn(left) && c.Generation == 0 {
						continue
					}
					again = false
				}
				if err := x.Carry(0, host, c); err != nil {
					t.Fatalf("host %d without %d: %+v: %v", host, left, c, err)
				}
				if again && x.Carry(0, host, decode(b)) == nil {
					t.Errorf("host %d without %d: twice %+v", host, left, c)
				}
			}
			if is, was := x.flows.conns[0].qp, n.flows.conns[0].qp; host < 2 && is[host] != was[host] {
				t.Errorf("host %d without %d: queue pairs %#x, not %#x", host, left, is, was)
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
				is, was := x.stacks[host].Conn(x.flows.conns[c-1].qp[0]), n.stacks[host].Conn(n.flows.conns[c-1].qp[0])
				if is == nil || was == nil || is.Due() != was.Due() {
					t.Errorf("host %d: %v, not %v", host, is, was)
				}
			}
		}
	}
	x := made()
	for _, c := range []HostChange{&Post{Conn: 1}, &CloseEnd{Conn: 1}, &OpenEnd{}, &OpenEnd{Ends: Ends{Conn: maxConns + 1}, Flow: Flow{Src: 0, Dst: 1}},
		&OpenEnd{Ends: Ends{Conn: 1}, Flow: Flow{Src: 1, Dst: 2}}, &OpenEnd{Ends: Ends{Conn: 1}, Flow: Flow{Src: 0, Dst: 3}}} {
		if x.Carry(0, 0, c) == nil {
			t.Errorf("host 0 carried out %+v", c)
		}
	}
	received := decode(of[1][0]).(*OpenEnd)
	if err := x.Carry(0, 1, received); err != nil {
		t.Fatal(err)
	}
	if x.Carry(0, 1, &Post{Conn: received.Conn, Generation: received.Generation, Bytes: 1}) == nil {
		t.Error("the receiver of a connection of RDMA posted a message")
	}
	if x.Carry(0, 2, &OpenEnd{Ends: Ends{Conn: 9}, Flow: Flow{Src: 2, Dst: 1}}) == nil || x.Hosts[2].Counts().QPsOpen != 0 {
		t.Error("a queue pair without a number is open")
	}
	was, sent := len(of[0]), &hostnic.Inject{Frame: make([]byte, 100), Class: 1}
	if err := n.ChangeHost(0, 0, sent); err != nil || !sent.Sent || len(of[0]) != was+1 {
		t.Fatalf("a frame is not sent: %v", err)
	}
	repeated := decode(of[0][was])
	if err := x.Carry(0, 0, repeated); err != nil || !repeated.(OfNIC).Change.(*hostnic.Inject).Sent {
		t.Errorf("a frame is not sent again: %v", err)
	}
	was = len(of[0])
	if err := n.ChangeHost(0, 0, hostnic.TakeReports{Feature: "meters"}); err != nil || len(of[0]) != was+1 || x.Carry(0, 0, decode(of[0][was])) != nil {
		t.Errorf("the taking of reports is no command: %v", err)
	}
	for _, c := range []*hostnic.Inject{{Frame: make([]byte, 1<<16)}, {Class: 8}} {
		if x.Carry(0, 0, OfNIC{c}) == nil || c.Sent {
			t.Errorf("host 0 sent %d bytes in class %d", len(c.Frame), c.Class)
		}
	}
	if x.Carry(0, 3, decode(of[0][0])) == nil || x.Carry(0, -1, decode(of[0][0])) == nil {
		t.Error("a host that is not there carried something out")
	}
}

// A number that no network has is refused before there is memory for the connections below it.
func TestConnectionBeyondAll(t *testing.T) {
	n := build(t, &Config{Topology: topology(t, "star(2)", gig, gig, time.Microsecond)})
	f := Flow{Src: 0, Dst: 1}
	for _, c := range []Conn{maxConns + 1, 1 << 24, math.MaxUint32} {
		ends := Ends{Conn: c, QPN: [2]uint32{1, 2}}
		forged, err := DecodeHostChange((&OpenEnd{Ends: ends, Flow: f}).Encode(nil))
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{n.Carry(0, 0, forged), n.OpenEnds(0, &f, ends, [2]bool{true, false})} {
			if err == nil || !strings.Contains(err.Error(), "is beyond the 1048576 that a network may have") {
				t.Errorf("connection %d: %v", c, err)
			}
		}
	}
	if len(n.flows.conns) != 0 {
		t.Errorf("there is memory for %d connections", len(n.flows.conns))
	}
}

// A connection of which one end cannot be opened has none.
func TestNoHalfOfAConnection(t *testing.T) {
	n := build(t, &Config{Topology: topology(t, "star(3)", gig, gig, time.Microsecond), AdjustHost: func(name string, c *hostnic.Config) {
		if name == "h2" {
			c.MaxQPs = 3
		}
	}})
	for i := range 3 {
		if err := n.StartFlow(0, &Flow{Src: 2 * (i % 2), Dst: 1, Bytes: 1 << 20}); err != nil {
			t.Fatal(err)
		}
	}
	next, err := n.Hosts[0].NextQP()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Dial(0, &Flow{Src: 0, Dst: 1}); !errors.Is(err, hostnic.ErrQPs) {
		t.Errorf("a connection to a host that has no room: %v", err)
	}
	if is, err := n.Hosts[0].NextQP(); err != nil || is != next || n.Hosts[0].Counts().QPsOpen != 2 || n.Counts().Open != 3 {
		t.Errorf("the sender has %d open, and %d connections; next is %#x, was %#x, %v", n.Hosts[0].Counts().QPsOpen, n.Counts().Open, is, next, err)
	}
}
