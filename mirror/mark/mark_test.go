package mark

import (
	"net/netip"
	"strings"
	"testing"

	"gswitch/frame"
	"gswitch/hostnic"
	"gswitch/mirror"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

func dst(prefix string) []mirror.Match {
	return []mirror.Match{{Name: "there", Headers: "both", Protocol: "udp", Dst: netip.MustParsePrefix(prefix)}}
}

func configOf(t *testing.T, s *Section) Config {
	t.Helper()
	o, err := s.Options(nil)
	if err != nil {
		t.Fatal(err)
	}
	return o.(Config)
}

// host is a NIC that sends frames which it is given, and what it sends.
type host struct {
	t    *testing.T
	nic  *hostnic.NIC
	pool *frame.Pool
	now  frame.Time
}

func newHost(t *testing.T, c Config) *host {
	t.Helper()
	pool := frame.NewPool(frame.MustArena(64, 2048, frame.DefaultHeadroom))
	n, err := hostnic.New(&hostnic.Config{Name: "h", MAC: wire.MAC{2, 0, 0, 0, 0, 1}, Addr: netip.MustParseAddr("10.0.0.1"), Rate: 10e9, Overhead: 24, Payload: 1000,
		AckClass: -1, AckPauseClass: -1, Options: hostnic.Options{Name: c}}, pool)
	if err != nil {
		t.Fatal(err)
	}
	n.SetLink(0, 0, true)
	return &host{t: t, nic: n, pool: pool}
}

// send has a frame leave, and returns it as it left.
func (h *host) send(b []byte) []byte {
	h.t.Helper()
	h.now += 10 * frame.Microsecond
	h.nic.Advance(h.now)
	if !h.nic.QueueFrame(h.now, h.pool.New(b), false, 1) {
		h.t.Fatal("the frame is not taken")
	}
	var out [4]frame.Ref
	if k := h.nic.Transmit(h.now, 0, out[:]); k != 1 {
		h.t.Fatalf("%d frames leave", k)
	}
	left := append([]byte(nil), h.pool.Bytes(out[0])...)
	h.pool.Free(out[0])
	return left
}

func (h *host) counted() (v [2]float64) {
	h.nic.ReadFeatures(func(_ *hostnic.Feature, counter int, value float64, _ ...string) { v[counter] = value })
	return v
}

func datagram(to string, dscp uint8) []byte {
	return wt.Frame(wt.Eth(wire.MAC{2, 0, 0, 0, 0, 2}, wire.MAC{2, 0, 0, 0, 0, 1}), wt.IPv4("10.0.0.1", to, wt.TOS(dscp<<2|wire.ECT0)), wt.UDP(1000, 2000), wt.Zeros(40))
}

// What a rule matches leaves with the bit and a good checksum, all else as it was; of the
// rest nothing changes.
func TestMarks(t *testing.T) {
	h := newHost(t, configOf(t, &Section{Match: dst("10.0.1.0/24"), Most: 10}))
	for _, dscp := range []uint8{0, 8, 9} {
		plain := datagram("10.0.2.9", dscp)
		if got := h.send(plain); string(got) != string(plain) {
			t.Errorf("DSCP %d: what no rule matches leaves as % x, it was % x", dscp, got, plain)
		}
		chosen := datagram("10.0.1.9", dscp)
		got := h.send(chosen)
		ip := wire.IPv4(got[wire.EthernetLen:])
		if ip.DSCP() != dscp|mirror.DebugDSCP || ip.ECN() != wire.ECT0 || !ip.ChecksumOK() {
			t.Errorf("DSCP %d becomes %d, ECN %d, the checksum is good: %v", dscp, ip.DSCP(), ip.ECN(), ip.ChecksumOK())
		}
		was := wire.IPv4(chosen[wire.EthernetLen:])
		was[1], got[wire.EthernetLen+1] = 0, 0
		was.SetChecksum(0)
		ip.SetChecksum(0)
		if string(got) != string(chosen) {
			t.Errorf("more than the DSCP has changed: % x", got)
		}
	}
	if v := h.counted(); v != [2]float64{3, 0} {
		t.Errorf("marked and unmarked: %v", v)
	}
}

// No more are marked in a second than may be.
func TestMostMarks(t *testing.T) {
	h := newHost(t, configOf(t, &Section{Match: dst("10.0.1.0/24"), Most: 3}))
	marked := func() (n int) {
		for range 5 {
			if wire.IPv4(h.send(datagram("10.0.1.9", 0))[wire.EthernetLen:]).DSCP() != 0 {
				n++
			}
		}
		return n
	}
	if n := marked(); n != 3 {
		t.Errorf("%d of 5 are marked, want 3", n)
	}
	h.now += frame.Second
	if n := marked(); n != 3 || h.counted() != [2]float64{6, 4} {
		t.Errorf("a second later %d of 5, %v", n, h.counted())
	}
}

func TestRefusals(t *testing.T) {
	for want, s := range map[string]*Section{
		"no packet is to be marked": {Most: 1},
		"match[0]: MAC control":     {Match: []mirror.Match{{Name: "p", Headers: "both", Control: true}}, Most: 1},
		"only those of IPv4":        {Match: dst("fd00::/64"), Most: 1},
	} {
		if _, err := s.Options(nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
