package e2e

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gswitch/control/api"
	"gswitch/mirror"
	"gswitch/wire"
)

// snmp is a counter of the kernel of a host (proc_net_snmp(5)).
func (h *host) snmp(t *testing.T, proto, name string) (n int) {
	t.Helper()
	c, out := h.program(t, "cat", "/proc/net/snmp")
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(out.String()) {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] != proto+":" {
			continue
		}
		if names == nil {
			names = f
			continue
		}
		n, err := strconv.Atoi(f[slices.Index(names, name)])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	t.Fatalf("there is no %s %s", proto, name)
	return 0
}

// A host that may sends probes into the network at a router: each is copied once and
// goes on, and the kernel of the server drops it without an answer, for its checksum
// alone. Probes to the router end there. From elsewhere there are none.
func TestProbes(t *testing.T) {
	l := newLab(t, 3, labOptions{})
	for i, h := range l.hosts {
		h.address(t, []string{fmt.Sprintf("10.0.%d.2/24", i)}, fmt.Sprintf("10.0.%d.1", i))
	}
	d, _ := runConfig(t, fmt.Sprintf(`version: 1
switches:
  - name: r1
    loopback: [10.10.0.10]
    ports:
      - {name: a, interface: d0, netns: %[1]s, address: [10.0.0.1/24]}
      - {name: b, interface: d1, netns: %[1]s, address: [10.0.1.1/24]}
      - {name: c, interface: d2, netns: %[1]s, address: [10.0.2.1/24]}
    watch:
      sessions: [{name: everflow, to: 10.0.2.2, snap: 192, everflow: {sample: 0}}]
      probes: {from: [10.0.0.0/24]}
`, l.sw))
	a, b, collector := l.hosts[0], l.hosts[1], l.hosts[2]
	collector.pings(t, "10.0.2.1", 56)
	a.pings(t, "10.0.1.2", 56)
	from := collector.raw(t, wire.EtherTypeIPv4)
	count := func(name string) (sum int) {
		for _, c := range show(d, &api.Counters{}, "mirrors").Counters {
			if c.Name == name {
				sum += int(c.Value)
			}
		}
		return sum
	}
	const probes = 200
	send := func(h *host, id int, args ...string) {
		t.Helper()
		c, out := h.program(t, gfabric, append([]string{"probe", "--via", "10.10.0.10", "--id", fmt.Sprint(id), "--count", fmt.Sprint(probes), "--every", "1ms"}, args...)...)
		if err := c.Wait(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	wrong, resets, messages := b.snmp(t, "Tcp", "InCsumErrors"), b.snmp(t, "Tcp", "OutRsts"), a.snmp(t, "Icmp", "InMsgs")
	send(a, 5, "--to", "10.0.1.2", "--protocol", "tcp", "--dst-port", "80")
	send(a, 6, "--to", "10.10.0.10")
	send(b, 7, "--to", "10.0.0.2")
	came := map[uint32]map[uint32]int{}
	eventually(t, "copies of all probes are there, and the probes of one series at the server", func() error {
		for f, _ := from.recv(time.Millisecond); f != nil; f, _ = from.recv(time.Millisecond) {
			if _, h, ok := mirror.Parse(f); ok && h.Probe != 0 {
				if came[h.Probe] == nil {
					came[h.Probe] = map[uint32]int{}
				}
				came[h.Probe][h.Number]++
			}
		}
		if n := b.snmp(t, "Tcp", "InCsumErrors") - wrong; len(came[5]) != probes || len(came[6]) != probes || len(came[7]) != probes || n != probes {
			return fmt.Errorf("copies of %d, %d and %d probes; the server refuses %d", len(came[5]), len(came[6]), len(came[7]), n)
		}
		return nil
	})
	for id, numbers := range came {
		for n, copies := range numbers {
			if copies != 1 {
				t.Errorf("%d copies of probe %d of series %d", copies, n, id)
			}
		}
	}
	for name, want := range map[string]int{"watch_probes_total": 2 * probes, "watch_ended_probes_total": probes, "watch_refused_probes_total": probes} {
		if n := count(name); n != want {
			t.Errorf("%s is %d, want %d", name, n, want)
		}
	}
	if n := b.snmp(t, "Tcp", "OutRsts") - resets; n != 0 {
		t.Errorf("the server answers with %d resets", n)
	}
	if n := a.snmp(t, "Icmp", "InMsgs") - messages; n != 0 {
		t.Errorf("%d messages of ICMP came for probes", n)
	}
	d.stop(l.sw)
}
