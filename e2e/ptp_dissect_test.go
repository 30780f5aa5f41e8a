package e2e

import (
	"fmt"
	"testing"
)

// What two switches send each other on a link to keep their clocks together is PTPv2 to
// Wireshark: every message of every kind that there is, both ways, and none is malformed.
func TestPTPOfALinkIsDissected(t *testing.T) {
	l := newLab(t, 2, labOptions{})
	d, _ := runConfig(t, `version: 1
switches:
- name: s1
  clock: {root: true, slaves: [d0], announce: 50ms, interval: 10ms}
  ports:
  - {interface: d0, netns: `+l.sw+`}
  - {interface: d1, netns: `+l.sw+`}
- name: s2
  clock: {parent: to1, interval: 10ms}
  ports:
  - {name: to1, interface: eth0, netns: `+l.hosts[1].ns+`}
`)
	dump := d.capture("--in", "--out", "--port", "s1/d0", "--port", "s1/d1")
	// By their message types (IEEE 1588-2019, table 36): what a switch follows, how long the
	// link is, and, at the port for other slaves, which node is the root.
	sync, request, answer, announce := "0x00", "0x02", "0x03", "0x0b"
	want := []string{"s1/d1 out " + sync, "s1/d1 in " + request, "s1/d1 out " + answer, "s1/d0 out " + sync, "s1/d0 out " + announce}
	var count map[string]int
	eventually(t, "each message was captured", func() error {
		count = map[string]int{}
		for _, r := range tshark(t, dump.file, "frame.interface_name", "frame.packet_flags_direction", "ptp.v2.messagetype", "ptp.v2.domainnumber", "ptp.v2.versionptp", "_ws.malformed", "eth.type") {
			way := map[string]string{"0x00000001": "in", "0x00000002": "out"}[r[1]]
			switch {
			case r[6] != "0x88f7":
				continue
			case r[2] == "" || r[3] != "83" || r[4] != "2" || r[5] != "":
				t.Errorf("no message of PTPv2 in domain 83: %q", r)
			}
			count[fmt.Sprint(r[0], " ", way, " ", r[2])]++
		}
		for _, w := range want {
			if count[w] < 3 {
				return fmt.Errorf("%d messages are %s, of %v", count[w], w, count)
			}
		}
		return nil
	})
	dump.end()
	t.Log(count)
	d.stop(l.sw)
}
