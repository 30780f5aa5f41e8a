package e2e

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"gswitch/capture/capturetest"
	"gswitch/control/api"
	"gswitch/frame"
	"gswitch/mirror"
	"gswitch/wire"
)

// A router that is asked to watch, while frames pass, copies each end of a kernel's
// connection and what it drops itself to a collector. Wireshark sees the originals,
// and as many copies come as the router says.
func TestWatch(t *testing.T) {
	l := newLab(t, 3, labOptions{})
	for i, h := range l.hosts {
		h.address(t, []string{fmt.Sprintf("10.0.%d.2/24", i)}, fmt.Sprintf("10.0.%d.1", i))
	}
	text := fmt.Sprintf(`version: 1
switches:
  - name: r1
    id: 7
    loopback: [10.10.0.10]
    ports:
      - {name: a, interface: d0, netns: %[1]s, address: [10.0.0.1/24]}
      - {name: b, interface: d1, netns: %[1]s, address: [10.0.1.1/24]}
      - {name: c, interface: d2, netns: %[1]s, address: [10.0.2.1/24]}
`, l.sw)
	d, file := runConfig(t, text)
	a, b, collector := l.hosts[0], l.hosts[1], l.hosts[2]
	collector.pings(t, "10.0.2.1", 56)
	from := collector.raw(t, wire.EtherTypeIPv4)
	transfer(t, a, b, "10.0.1.2", 1<<16) // not watched yet
	write(t, file, text+"    watch: {sessions: [{name: everflow, to: 10.0.2.2, snap: 192, everflow: {sample: 0}, drops: [all]}]}\n")
	d.do("apply", file)
	transfer(t, a, b, "10.0.1.2", 1<<20)
	lost := flow{dst: a.neighbor(t, "10.0.0.1"), src: a.mac, srcIP: [4]byte{10, 0, 0, 2}, dstIP: [4]byte{10, 77, 0, 1}, dstPort: 7777, size: 100}
	if err := a.raw(t, etherTest).send(lost.frame(1)); err != nil {
		t.Fatal(err)
	}

	// Both SYN, both FIN, and the packet without a route. What else the kernels lose
	// on the way (group packets) may be reported, too.
	name := filepath.Join(t.TempDir(), "copies.pcapng")
	out := capturetest.Create(t, name, "collector")
	copies, numbers := 0, map[uint32]bool{}
	counted := func() (sent, matched, unsent float64) {
		for _, c := range show(d, &api.Counters{}, "mirrors").Counters {
			switch c.Name {
			case "watch_copies_total":
				sent += c.Value
			case "watch_matched_packets_total":
				matched += c.Value
			case "watch_lost_copies_total":
				unsent += c.Value
			}
		}
		return sent, matched, unsent
	}
	eventually(t, "the copies are there", func() error {
		for f, at := from.recv(time.Millisecond); f != nil; f, at = from.recv(time.Millisecond) {
			c, ok := mirror.Unwrap(f)
			if !ok {
				continue
			}
			if copies++; c.Switch.String() != "10.10.0.10" || !c.Numbered || numbers[c.Sequence] || c.Info.At == 0 {
				t.Errorf("copy %d: %+v", copies, c)
			}
			numbers[c.Sequence] = true
			out.Add(at.UnixNano(), f)
		}
		sent, matched, unsent := counted()
		if matched < 4 || int(sent) != copies || unsent != 0 || copies < 5 {
			return fmt.Errorf("%d copies came of %v; %v frames matched, %v copies were lost", copies, sent, matched, unsent)
		}
		return nil
	})
	out.Close()
	count := map[string]int{}
	for _, r := range tshark(t, name, "tcp.flags.syn", "tcp.flags.fin", "tcp.flags.ack", "udp.dstport", "erspan.sgt", "erspan.spanid", "_ws.malformed") {
		switch {
		case r[6] != "":
			t.Errorf("malformed: %v", r)
		case r[5] != "1":
			t.Errorf("session %s", r[5])
		case r[3] == "7777":
			count["lost "+r[4]]++
		case r[0] != "":
			count[fmt.Sprintf("syn %s fin %s ack %s", r[0], r[1], r[2])]++
		}
	}
	for what, n := range map[string]int{"syn 1 fin 0 ack 0": 1, "syn 1 fin 0 ack 1": 1, "syn 0 fin 1 ack 1": 2, fmt.Sprintf("lost %d", frame.NoRoute): 1} {
		if count[what] != n {
			t.Errorf("%d copies of %s, want %d: %v", count[what], what, n, count)
		}
	}
	write(t, file, text)
	d.do("apply", file)
	before := copies
	transfer(t, a, b, "10.0.1.2", 1<<16)
	for f, _ := from.recv(10 * time.Millisecond); f != nil; f, _ = from.recv(10 * time.Millisecond) {
		if _, ok := mirror.Unwrap(f); ok {
			copies++
		}
	}
	if copies != before {
		t.Errorf("%d copies after the session is gone", copies-before)
	}
	d.stop(l.sw)
}
