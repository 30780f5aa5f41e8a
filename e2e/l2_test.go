package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gswitch/control/api"
	"gswitch/wire"
)

// broadcast is the address of all stations.
var broadcast = wire.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// The switch of the command line: three hosts reach each other in every poll
// mode.
func TestLearningSwitch(t *testing.T) {
	for _, poll := range []string{"spin", "adaptive", "sleep"} {
		t.Run(poll, func(t *testing.T) {
			l := newLab(t, 3, labOptions{})
			for i, h := range l.hosts {
				h.address(t, []string{fmt.Sprintf("10.0.0.%d/24", i+1)})
			}
			d := run(t, "--netns", l.sw, "--port", "d0", "--port", "d1", "--port", "d2", "--poll", poll)
			for i, from := range l.hosts {
				for j, to := range l.hosts {
					if i != j {
						from.pings(t, fmt.Sprintf("10.0.0.%d", j+1), 56)
						transfer(t, from, to, fmt.Sprintf("10.0.0.%d", j+1), 1<<20)
					}
				}
			}
			if losses := d.losses(); len(losses) > 0 {
				t.Errorf("losses: %v", losses)
			}
			learned := map[string]string{}
			for _, e := range show(d, &api.FDB{}, "fdb").Entries {
				learned[e.Mac] = e.Port
			}
			for _, h := range l.hosts {
				if learned[h.mac.String()] != h.port() {
					t.Errorf("%v was learned at %q, is at %s", h.mac, learned[h.mac.String()], h.port())
				}
			}
			for _, h := range l.hosts {
				p := d.ports()[h.port()]
				if p.State != "up" || p.Mode != "native" || !slices.Contains(p.Setup, "promiscuous on") || !slices.Contains(p.Setup, "qdisc pfifo") || len(p.Warnings) > 0 {
					t.Errorf("%s: state %s, mode %s, set up %q, warnings %q", p.Name, p.State, p.Mode, p.Setup, p.Warnings)
				}
				if p.Xsk.RxInvalid+p.Xsk.TxInvalid > 0 {
					t.Errorf("%s: the kernel refused descriptors: %v", p.Name, p.Xsk)
				}
			}
			d.stop(l.sw)
		})
	}
}

// What is set on the switch's ends is reported, and what the hosts should have
// turned off is warned of.
func TestOffloadsAreReported(t *testing.T) {
	l := newLab(t, 2, labOptions{offloads: true})
	d := run(t, "--netns", l.sw, "--port", "d0", "--port", "d1")
	p := d.ports()["d0"]
	for _, want := range []string{"tx-checksum-ip-generic off", "tx-vlan-hw-insert off", "promiscuous on", "link set up", "qdisc pfifo"} {
		if !slices.Contains(p.Setup, want) {
			t.Errorf("not set up: %s; but %q", want, p.Setup)
		}
	}
	warnings := strings.Join(p.Warnings, "\n")
	for _, want := range []string{"eth0", "tx-checksum-ip-generic is on", "tx-vlan-hw-insert is on", "ethtool -K eth0"} {
		if !strings.Contains(warnings, want) {
			t.Errorf("the warnings do not say %q: %s", want, warnings)
		}
	}
	if out := d.do("show", "ports"); !strings.Contains(out, "warning: d0: peer") {
		t.Errorf("show ports does not warn:\n%s", out)
	}
	d.stop(l.sw)
}

// until receives test frames on r until the one with number marker comes, and
// returns the others. A switch keeps the order, so what it forwards of what
// was sent before the marker comes before it.
func until(t testing.TB, r *raw, marker uint64) (numbers []uint64, tcis []int) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		b, _ := r.recv(time.Second)
		if b == nil {
			continue
		}
		n, tci := numberOf(b)
		if n == marker {
			return numbers, append(tcis, tci)
		}
		numbers, tcis = append(numbers, n), append(tcis, tci)
	}
	t.Fatalf("frame %d did not arrive", marker)
	return nil, nil
}

func TestVLANs(t *testing.T) {
	l := newLab(t, 4, labOptions{})
	d, _ := runConfig(t, fmt.Sprintf(`version: 1
switches:
  - name: s1
    ports:
      - {interface: d0, netns: %[1]s, vlan: {access: 10}}
      - {interface: d1, netns: %[1]s, vlan: {access: 10}}
      - {interface: d2, netns: %[1]s, vlan: {access: 20}}
      - {interface: d3, netns: %[1]s, vlan: {trunk: [10, 20, 30], native: 99}}
    vlans: [{id: 10}, {id: 20}, {id: 30}, {id: 99}]
`, l.sw))
	var r []*raw
	for _, h := range l.hosts {
		// A socket of one EtherType sees frames after the kernel has taken away
		// the tags that it has no interface for.
		r = append(r, h.raw(t, etherAll))
	}
	send := func(from int, tci int, number uint64) {
		t.Helper()
		if err := r[from].send(testFrame(broadcast, l.hosts[from].mac, tci, number, 64)); err != nil {
			t.Fatal(err)
		}
	}
	// What number, with what tag, arrives where, before the marker does. The
	// markers 110, 120 go to VLANs 10 and 20 by the trunk.
	send(0, -1, 1)       // from access 10
	send(2, -1, 2)       // from access 20
	send(0, 20, 3)       // a tag at an access port that is not its own
	send(3, 3<<13|10, 4) // from the trunk, priority 3
	send(3, 3<<13|30, 5) // a VLAN that only the trunk has
	send(3, -1, 6)       // native, which only the trunk has
	send(3, 3<<13|40, 7) // a VLAN that the trunk does not have
	eventually(t, "seven frames are done with", func() error {
		if n := d.ports()["d0"].RxFrames + d.ports()["d2"].RxFrames + d.ports()["d3"].RxFrames; n != 7 {
			return fmt.Errorf("%d", n)
		}
		return nil
	})
	send(3, 10, 110)
	send(3, 20, 120)
	if numbers, tcis := until(t, r[1], 110); len(numbers) != 2 || numbers[0]+numbers[1] != 1+4 || !slices.Equal(tcis, []int{-1, -1, -1}) {
		t.Errorf("host 1 got %v with tags %v, want 1 and 4 without", numbers, tcis)
	}
	send(0, -1, 130)
	for i, want := range []struct {
		marker  uint64
		numbers []uint64
		tcis    []int
	}{
		{110, []uint64{4}, []int{-1, -1}},
		{130, nil, []int{-1}},
		{120, nil, []int{-1}},
		{130, []uint64{1, 2}, []int{10, 20, 10}},
	} {
		numbers, tcis := until(t, r[i], want.marker)
		slices.Sort(numbers) // of different ports
		if i == 3 {
			for k := range tcis {
				tcis[k] &= 0xfff
			}
			slices.Sort(tcis[:len(tcis)-1])
		}
		if !slices.Equal(numbers, want.numbers) || !slices.Equal(tcis, want.tcis) {
			t.Errorf("host %d got %v with tags %v, want %v with %v", i, numbers, tcis, want.numbers, want.tcis)
		}
	}
	drops := d.drops()
	if drops["vlan-ingress"] != 2 || drops["no-vlan-member"] != 2 {
		t.Errorf("drops: %v, want vlan-ingress 2 (frames 3, 7), no-vlan-member 2 (frames 5, 6)", drops)
	}
	d.stop(l.sw)
}

// Frames that IEEE 802.1Q keeps between neighbours, and frames that cannot be,
// end at the switch under their reasons.
func TestFramesThatAreNotForwarded(t *testing.T) {
	l := newLab(t, 2, labOptions{mtu: 4000})
	d, _ := runConfig(t, fmt.Sprintf("version: 1\nswitches: [{name: s1, ports: [{interface: d0, netns: %[1]s}, {interface: d1, netns: %[1]s}]}]\n", l.sw))
	from, to := l.hosts[0].raw(t, etherTest), l.hosts[1].raw(t, etherTest)
	src := l.hosts[0].mac
	var errs []error
	for last := range byte(16) {
		errs = append(errs, from.send(testFrame(wire.MAC{1, 0x80, 0xc2, 0, 0, last}, src, -1, 1, 64)))
	}
	errs = append(errs,
		from.send(testFrame(broadcast, wire.MAC{1, 2, 3, 4, 5, 6}, -1, 2, 64)),
		from.send(testFrame(broadcast, wire.MAC{}, -1, 3, 64)),
		from.send(testFrame(broadcast, src, -1, 4, 3000)),
		from.send(testFrame(broadcast, src, -1, 5, 1514)),
		from.send(testFrame(broadcast, src, -1, 6, 1515)))
	if err := errors.Join(append(errs, from.send(testFrame(broadcast, src, -1, 100, 64)))...); err != nil {
		t.Fatal(err)
	}
	if numbers, _ := until(t, to, 100); !slices.Equal(numbers, []uint64{5}) {
		t.Errorf("forwarded: %v, want 5 only", numbers)
	}
	drops := d.drops()
	for reason, want := range map[string]uint64{"reserved-multicast": 16, "source-multicast": 1, "source-zero": 1, "oversize": 2} {
		// The last octets 01 is that of pause frames, of another EtherType.
		if got := drops[reason]; got != want {
			t.Errorf("%s: %d, want %d; all: %v", reason, got, want, drops)
		}
	}
	d.stop(l.sw)
}

// Frames of 9000 bytes lie in several chunks.
func TestJumbo(t *testing.T) {
	l := newLab(t, 2, labOptions{mtu: 9000})
	for i, h := range l.hosts {
		h.address(t, []string{fmt.Sprintf("10.0.0.%d/24", i+1)})
	}
	d, _ := runConfig(t, fmt.Sprintf("version: 1\nswitches: [{name: s1, ports: [{interface: d0, netns: %[1]s, mtu: 9000}, {interface: d1, netns: %[1]s, mtu: 9000}]}]\n", l.sw))
	l.hosts[0].pings(t, "10.0.0.2", 9000-28)
	l.hosts[0].pings(t, "10.0.0.2", 56)
	transfer(t, l.hosts[0], l.hosts[1], "10.0.0.2", 8<<20)
	transfer(t, l.hosts[1], l.hosts[0], "10.0.0.1", 8<<20)
	p := d.ports()["d0"]
	if mean := p.RxBytes / p.RxFrames; mean < 2048 {
		t.Errorf("%d bytes a frame: not jumbo", mean)
	}
	if losses := d.losses(); len(losses) > 0 {
		t.Errorf("losses: %v", losses)
	}
	d.stop(l.sw)
}
