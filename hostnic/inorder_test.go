package hostnic

import (
	"slices"
	"testing"

	"gswitch/frame"
	"gswitch/wire"
)

// A queue pair that was opened after one was closed has its turn after all others, where they
// take turns in the order of opening; else in the place of the one that was closed.
func TestTurnsInOrder(t *testing.T) {
	for inOrder, want := range map[bool][]int{
		// The second is closed before the fourth is opened. The third sent last.
		false: {0, 3, 2, 0, 3, 2},
		true:  {3, 0, 2, 3, 0, 2},
	} {
		p := newPair(t, func(_ int, c *Config) { c.InOrder = inOrder })
		number, sent := map[uint32]int{}, []int{}
		p.seen = func(from int, _ *frame.Meta, b []byte) {
			if from == 0 {
				sent = append(sent, number[wire.BTH(b[wire.EthernetLen+wire.IPv4Len+wire.UDPLen:]).DestQP()])
			}
		}
		var qs [4]uint32
		open := func(i int) {
			qa, qb := p.connect(nil)
			qs[i], number[qb] = qa, i
		}
		for i := range 3 {
			open(i)
		}
		must(t, p.a.SendMessage(0, qs[2], 1000, 0))
		p.run(frame.Millisecond)
		must(t, p.a.CloseQP(p.now, qs[1]))
		open(3)
		for _, i := range []int{0, 2, 3} {
			must(t, p.a.SendMessage(p.now, qs[i], 2000, 0))
		}
		p.run(2 * frame.Millisecond)
		if want = append([]int{2}, want...); !slices.Equal(sent, want) {
			t.Errorf("in order %v: frames of %v, want %v", inOrder, sent, want)
		}
		p.drained()
	}
}

// The places of closed queue pairs are taken again in their order, behind that of the queue
// pair opened last, once there are as many as there may be.
func TestPlacesInOrder(t *testing.T) {
	const places = 4
	p := newPair(t, func(_ int, c *Config) { c.InOrder, c.MaxQPs = true, places })
	var open [places]uint32
	place := func() int {
		c := QPConfig{RemoteAddr: p.b.cfg.Addr, RemoteMAC: p.b.cfg.MAC, Class: 3}
		next, err := p.a.NextQP()
		must(t, err)
		qpn, err := p.a.OpenQP(0, &c)
		if must(t, err); qpn != next {
			t.Fatalf("%#x was opened, and %#x announced", qpn, next)
		}
		i, _ := p.a.numbers.parts(qpn)
		open[i] = qpn
		return int(i)
	}
	var got []int
	for range places - 1 {
		got = append(got, place())
	}
	must(t, p.a.CloseQP(0, open[2]))
	must(t, p.a.CloseQP(0, open[0]))
	got = append(got, place(), place(), place())
	must(t, p.a.CloseQP(0, open[0]))
	must(t, p.a.CloseQP(0, open[3]))
	got = append(got, place(), place())
	if want := []int{0, 1, 2, 3, 0, 2, 3, 0}; !slices.Equal(got, want) {
		t.Errorf("places %v, want %v", got, want)
	}
	if _, err := p.a.NextQP(); err == nil {
		t.Error("there is a fifth place")
	}
}
