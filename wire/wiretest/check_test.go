package wiretest_test

import (
	"fmt"
	"strings"
	"testing"

	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// record is a TB that remembers.
type record struct{ said []string }

func (r *record) Helper()                      {}
func (r *record) Errorf(f string, args ...any) { r.said = append(r.said, fmt.Sprintf(f, args...)) }

func frame() []byte {
	return wt.Frame(wt.Eth(wt.MAC(2), wt.MAC(1)), wt.VLAN(100, 3), wt.IPv4("10.0.0.1", "10.0.0.2", wt.TTL(9), wt.TOS(46<<2|wire.CE)), wt.UDP(1000, 2000), wt.Zeros(20))
}

func TestCheckAgrees(t *testing.T) {
	wt.Check(t, frame(), wt.MACs(wt.MAC(2), wt.MAC(1)), wt.Tagged(100, 3), wt.Addrs("10.0.0.1", "10.0.0.2"),
		wt.HasTTL(9), wt.DSCP(46), wt.ECN(wire.CE), wt.Ports(1000, 2000), wt.Checksums())
	wt.Check(t, wt.Frame(wt.Eth(wt.MAC(2), wt.MAC(1)), wt.IPv6("fd00::1", "fd00::2"), wt.ICMPv6(wire.ICMPv6Echo, 0, 1)),
		wt.Untagged(), wt.Addrs("fd00::1", "fd00::2"), wt.ICMPType(wire.ICMPv6Echo, 0), wt.Checksums())
}

// A checker that cannot fail checks nothing.
func TestCheckComplains(t *testing.T) {
	broken := frame()
	broken[len(broken)-1]++ // payload: only the UDP checksum sees it
	for what, c := range map[string]wt.Checker{
		"destination MAC": wt.MACs(wt.MAC(3), wt.MAC(1)), "source MAC": wt.MACs(wt.MAC(2), wt.MAC(3)),
		"VID": wt.Tagged(101, 3), "PCP": wt.Tagged(100, 4), "tagged": wt.Untagged(),
		"source address": wt.Addrs("10.0.0.9", "10.0.0.2"), "destination address": wt.Addrs("10.0.0.1", "10.0.0.9"),
		"TTL": wt.HasTTL(8), "DSCP": wt.DSCP(1), "ECN": wt.ECN(0), "source port": wt.Ports(1, 2000), "destination port": wt.Ports(1000, 1),
		"not ICMP": wt.ICMPType(8, 0), "checksum": wt.Checksums(),
	} {
		var r record
		if wt.Check(&r, broken, c); len(r.said) != 1 || !strings.HasPrefix(r.said[0], what) {
			t.Errorf("%s: %q", what, r.said)
		}
	}
	var r record
	if wt.Check(&r, broken[:20]); len(r.said) != 1 || !strings.Contains(r.said[0], "parse-short-ipv4") {
		t.Errorf("%q", r.said)
	}
}
