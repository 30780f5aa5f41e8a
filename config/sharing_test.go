package config_test

import (
	"fmt"
	"strings"
	"testing"

	"gswitch/config"
	"gswitch/frame"
	"gswitch/vswitch"
)

// The switches of a document share the packet memory of their daemon. Whatever waits in
// some of them leaves the others what they need: here two hosts each at three switches fill
// all queues of their slow ports with the smallest frames, and a pair at a fourth one
// loses nothing. All come to have less when there are more.
func TestSwitchesLeaveMemoryToOthers(t *testing.T) {
	var doc strings.Builder
	doc.WriteString("version: 1\nworkers: [{}]\nswitches:\n")
	const switches = 4
	for i := range switches {
		fmt.Fprintf(&doc, "  - name: s%d\n    ports:\n", i)
		for _, p := range []string{"a", "b"} {
			fmt.Fprintf(&doc, "      - {name: %s, interface: %s%d, trust: pcp, rate: %s}\n", p, p, i, map[bool]string{true: "1Gbps", false: "1Mbps"}[i == switches-1])
		}
	}
	c, err := config.Parse("document", []byte(doc.String()))
	if err != nil {
		t.Fatal(err)
	}
	const chunks = 4096
	arena := frame.MustArena(chunks, 2048, frame.DefaultHeadroom)
	depot := frame.NewDepot(arena)
	pool := depot.NewPool(arena)
	now := frame.Second
	var nodes []*vswitch.Node
	resolved := c.Resolved()
	for i := range resolved.Switches {
		sw, err := vswitch.New(resolved.Switches[i].VSwitch(nil), []*frame.Pool{pool})
		if err != nil {
			t.Fatal(err)
		}
		n := sw.Nodes[0]
		for p := range uint16(2) {
			n.SetLink(now, p, true)
		}
		nodes = append(nodes, n)
	}
	nowhere := 0 // to receive into
	in := func(n *vswitch.Node, port uint16, b []byte) {
		r := pool.New(b)
		if r == frame.Nil {
			nowhere++
			return
		}
		n.Receive(now, port, []frame.Ref{r})
	}
	out := func(n *vswitch.Node, port uint16) (sent int) {
		var v [64]frame.Ref
		for k := n.Transmit(now, port, v[:]); k > 0; k = n.Transmit(now, port, v[:]) {
			for _, r := range v[:k] {
				pool.Free(r)
			}
			sent += k
		}
		return sent
	}
	pair, others := nodes[switches-1], nodes[:switches-1]
	for _, n := range nodes { // all are known
		in(n, 0, tagged(2, 1, 0, 14))
		in(n, 1, tagged(1, 2, 0, 14))
	}
	arrived := 0
	const steps = 1000
	for range steps {
		for _, n := range others {
			for class := range uint8(8) {
				in(n, 0, tagged(2, 1, class, 14))
				in(n, 1, tagged(1, 2, class, 14))
			}
			out(n, 0)
			out(n, 1)
		}
		in(pair, 0, tagged(2, 1, 0, 1000))
		now += 20 * frame.Microsecond
		for _, n := range nodes {
			n.Advance(now)
		}
		arrived += out(pair, 1)
	}
	arrived += out(pair, 1)
	held := chunks - depot.Free() - pool.Available()
	if arrived != steps+1 || nowhere != 0 || held > chunks/2 || held < chunks/4 { // one is the first
		t.Errorf("%d of %d frames arrived; %d frames had nowhere to go, %d of %d chunks are held", arrived, steps+1, nowhere, held, chunks)
	}
	for _, n := range nodes {
		for p := range uint16(2) {
			n.SetLink(now, p, false)
		}
		n.Flush(now)
	}
	if pool.Drain(); depot.Free() != chunks {
		t.Errorf("%d of %d chunks came back", depot.Free(), chunks)
	}
}
