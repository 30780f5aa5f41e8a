package vswitch_test

import (
	"bytes"
	"fmt"
	"net/netip"
	"testing"

	escapepoint "gswitch/escape/point"
	"gswitch/frame"
	"gswitch/vswitch"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// While the watchdog drains a queue, a frame that has escaped from a neighbour's
// queue is dropped like any other for it, and takes no place.
func TestWatchdogDropsWhatEscaped(t *testing.T) {
	cfg := bridge(3, 10e9)
	cfg.Class.Queue[6] = 7
	cfg.Options = vswitch.Options{escapepoint.Name: escapepoint.Config{Queue: 6}}
	cfg.PFC.Watchdog.Detect = 100 * frame.Microsecond
	for i := range cfg.Ports {
		if i > 0 {
			cfg.Ports[i].Options = vswitch.Options{escapepoint.Name: escapepoint.Neighbor{}}
		}
	}
	d := newDevice(t, cfg, 1, 256)
	defer d.close(3)
	data := roce(3, 2, 1, 500)
	escaped := append(append(bytes.Clone(data[:12]), byte(wire.EtherTypeTokenMark>>8), byte(wire.EtherTypeTokenMark&0xff), 1, 3), data[12:]...)

	d.receive(1, wt.PFC(host(9), 1<<3, 0xffff))
	d.receive(2, escaped)
	if v := escapepoint.Views(d.node(1), nil)[1]; v.Parked != 1 {
		t.Fatalf("before the storm: %+v", v)
	}
	d.sends(2, 300*frame.Microsecond)
	if storms := d.node(1).PFC(1).Storms(); storms != 1<<3 || d.counts(2).Drops[frame.PFCWatchdog] != 1 {
		t.Fatalf("storms %08b, drops %v", storms, d.counts(2).Drops[frame.PFCWatchdog])
	}
	d.receive(2, escaped)
	if v := escapepoint.Views(d.node(1), nil)[1]; d.counts(2).Drops[frame.PFCWatchdog] != 2 || v.Parked != 0 || v.Taken != 0 {
		t.Errorf("in the storm: %d dropped, %+v", d.counts(2).Drops[frame.PFCWatchdog], v)
	}
}

// A flow of which a neighbour asks for tokens is entered at the port by which its
// frames leave, also where its source decides among several next hops.
func TestRequestsGoWhereFramesGo(t *testing.T) {
	cfg := bridge(3, 10e9)
	cfg.Class.Queue[6] = 7
	cfg.Options = vswitch.Options{escapepoint.Name: escapepoint.Config{Queue: 6}}
	cfg.FDB.Static = nil
	hops := []vswitch.NextHop{}
	for i := range cfg.Ports {
		cfg.Ports[i].Options = vswitch.Options{escapepoint.Name: escapepoint.Neighbor{}}
		cfg.Ports[i].Addresses = []netip.Prefix{netip.MustParsePrefix(fmt.Sprintf("10.0.%d.254/24", i))}
		at := netip.AddrFrom4([4]byte{10, 0, byte(i), 1})
		cfg.Neighbors = append(cfg.Neighbors, vswitch.StaticNeighbor{Addr: at, MAC: host(i + 1)})
		if i > 0 {
			hops = append(hops, vswitch.NextHop{Via: at})
		}
	}
	cfg.Routes = []vswitch.Route{{Prefix: netip.MustParsePrefix("20.0.0.0/8"), NextHops: hops}}
	d := newDevice(t, cfg, 1, 256)
	defer d.close(3)
	var left [3]uint64
	for src := range 32 {
		from := fmt.Sprint("10.9.0.", src)
		d.receive(0, wt.Frame(wt.Eth(deviceMAC, host(1)), wt.IPv4(from, "20.0.0.1"), wt.UDP(1000, 2000), wt.Zeros(100)))
		for p := range left {
			left[p] += uint64(len(d.sends(uint16(p), frame.Microsecond)))
		}
		f := wire.RequestFields{Src: host(1), Hops: 1, Class: 3, Flow: wire.FlowID{Addrs: uint64(10<<24|9<<16|src)<<32 | 20<<24 | 1, Ports: 1000<<16 | 2000, Proto: wire.ProtoUDP}}
		b := make([]byte, wire.MinFrame)
		f.Encode(b)
		d.receive(0, b)
		for p, v := range escapepoint.Views(d.node(0), nil) {
			if v.Requests != left[p] {
				t.Fatalf("of %d flows %v left by each port, but port %d has %d requests", src+1, left, p, v.Requests)
			}
		}
	}
	if left[1] == 0 || left[2] == 0 {
		t.Errorf("all flows left by one port: %v", left)
	}
}
