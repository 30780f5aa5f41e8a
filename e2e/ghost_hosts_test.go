package e2e

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/safchain/ethtool"
	"golang.org/x/sys/unix"

	"gswitch/control/api"
	"gswitch/wire"
)

// Three hosts of one process, on two workers, communicate through a switch as if each
// were alone; verbs choose among them, and a kill leaves nothing of any.
func TestGhostHosts(t *testing.T) {
	l := newLab(t, 3, labOptions{})
	var ports strings.Builder
	for i := range l.hosts {
		fmt.Fprintf(&ports, "  - {interface: d%d, netns: %s, rate: 200Mbps, burst: 20ms}\n", i, l.sw)
	}
	sw, _ := runConfig(t, "version: 1\nswitches:\n- name: s1\n  id: 7\n  telemetry: {int: true, links: [200Mbps]}\n  ports:\n"+ports.String())
	file := filepath.Join(t.TempDir(), "hosts.yaml")
	text := "version: 1\nworkers: [{}, {}]\nhosts:\n"
	for i, h := range l.hosts {
		text += fmt.Sprintf("- {name: g%d, netns: %s, interface: eth0, address: 10.0.0.%d/24, rate: 400Mbps, burst: 5ms, base_rtt: 20ms, telemetry: {links: [200Mbps]}, serve: true}\n", i, h.ns, i+1)
	}
	write(t, file, text)
	socket := filepath.Join(t.TempDir(), "sock")
	d := launchProgram(t, ghost, socket, "-c", file)
	d.await()

	list := asked(d, &api.HostList{}, "show", "hosts").Hosts
	if len(list) != 3 || list[0].Name != "g0" || list[1].Worker != 1 || list[2].Worker != 0 || list[2].Netns != l.hosts[2].ns || list[1].State != "up" {
		t.Errorf("hosts are %v", list)
	}
	// From each to the next: to another worker, and to the same one.
	for i := range 3 {
		from, to := fmt.Sprintf("g%d", i), fmt.Sprintf("10.0.0.%d", (i+1)%3+1)
		if p := asked(d, &api.TransferReport{}, "--host", from, "ping", to, "-n", "2", "-i", "1ms"); len(p.Samples) != 2 || len(p.Samples[0].Hops) != 1 || p.Samples[0].Hops[0].Switch != 7 {
			t.Errorf("%s pings %s: %v", from, to, p)
		}
		if r := asked(d, &api.TransferReport{}, "--host", from, "send", "--to", to, "--size", "100kB").Result; r.VerifiedBytes != 100e3 || r.Corrupt != 0 {
			t.Errorf("%s sends to %s: %v", from, to, r)
		}
	}
	for _, h := range asked(d, &api.HostList{}, "show", "hosts").Hosts {
		if h.MessagesReceived < 1 || h.MessagesSent < 3 {
			t.Errorf("%s received %d messages and sent %d", h.Name, h.MessagesReceived, h.MessagesSent)
		}
	}
	if h := asked(d, &api.HostStatus{}, "--host", "g2", "show", "host"); h.Address != "10.0.0.3/24" {
		t.Errorf("g2 is %v", h)
	}
	if m := asked(d, &api.Ports{}, "watch", "-n", "1", "-i", "50ms"); len(m.Ports) != 3 || m.Ports[2].Switch != "g2" || m.Ports[2].Interface != "eth0" {
		t.Errorf("watch shows %v", m)
	}
	for want, args := range map[string]string{
		"there are several hosts: choose one with --host: g0, g1, g2": "show host",
		`there is no host "g9"; there are g0, g1, g2`:                 "--host g9 show flows",
		"--host: g0": "ping 10.0.0.2",
	} {
		if out, code := d.try(strings.Fields(args)...); code != 1 || !strings.Contains(out, want) {
			t.Errorf("%s: exit code %d, %s", args, code, out)
		}
	}
	text = scrape(t, d)
	for _, want := range []string{`gswitch_host_up{host="g2"} 1`, `gswitch_xsk_kicks_total{port="eth0",switch="g1",worker="1"}`, `gswitch_worker_lateness_seconds_count{worker="1"}`} {
		if !strings.Contains(text, want) {
			t.Errorf("/metrics has no %s", want)
		}
	}
	d.Process.Kill()
	<-d.done
	for _, h := range l.hosts {
		if left := xdpPrograms(t, h.ns); left != nil {
			t.Errorf("programs are left on %v", left)
		}
	}
	d = launchProgram(t, ghost, socket, "-c", file)
	d.await()
	if r := asked(d, &api.TransferReport{}, "--host", "g0", "send", "--to", "10.0.0.3", "--size", "50kB").Result; r.VerifiedBytes != 50e3 {
		t.Errorf("after it was killed: %v", r)
	}
	d.stop(l.hosts[0].ns, l.hosts[1].ns, l.hosts[2].ns)
	sw.stop(l.sw)
}

// Whatever queue of its interface a frame arrives on, the host answers it.
func TestGhostInterfaceQueues(t *testing.T) {
	l := newLab(t, 1, labOptions{queues: 2})
	d := launchProgram(t, ghost, filepath.Join(t.TempDir(), "sock"), "--netns", l.sw, "--port", "d0", "--addr", "10.0.0.1/24")
	d.await()
	status := asked(d, &api.HostStatus{}, "show", "host")
	if status.Queues != 2 {
		t.Fatalf("it has %d queues: %v", status.Queues, status)
	}
	mac, err := wire.ParseMAC(status.Mac)
	if err != nil {
		t.Fatal(err)
	}
	// The kernel of the other end chooses the queue by flow.
	const flows = 64
	h := l.hosts[0]
	r := h.raw(t, unix.ETH_P_IP)
	for i := range flows {
		if err := r.send(echoRequest(mac, h.mac, [4]byte{10, 0, 0, byte(100 + i)}, [4]byte{10, 0, 0, 1}, uint16(i))); err != nil {
			t.Fatal(err)
		}
	}
	answered := map[uint16]bool{}
	for len(answered) < flows {
		b, _ := r.recv(patience)
		if b == nil {
			t.Fatalf("%d of %d echo requests were answered", len(answered), flows)
		}
		if ip := wire.IPv4(b[wire.EthernetLen:]); ip.Proto() == wire.ProtoICMP && b[34] == wire.ICMPEchoReply {
			answered[binary.BigEndian.Uint16(b[38:])] = true
		}
	}
	in(t, l.sw, func() error {
		e, err := ethtool.NewEthtool()
		if err != nil {
			return err
		}
		defer e.Close()
		stats, err := e.Stats("d0")
		if err != nil {
			return err
		}
		for _, q := range []string{"rx_queue_0_xdp_packets", "rx_queue_1_xdp_packets"} {
			if stats[q] == 0 {
				t.Errorf("%s is 0: only one queue was tried", q)
			}
		}
		return nil
	})
	d.stop(l.sw)
}

// echoRequest is an ICMP echo request with an identifier.
func echoRequest(dst, src wire.MAC, from, to [4]byte, id uint16) []byte {
	b := make([]byte, 64)
	eth := wire.EthernetFields{Dst: dst, Src: src, EtherType: wire.EtherTypeIPv4}
	eth.Encode(b)
	ip := wire.IPv4Fields{TTL: 64, Proto: wire.ProtoICMP, TotalLen: uint16(len(b) - wire.EthernetLen), Src: from, Dst: to}
	msg := b[wire.EthernetLen+ip.Encode(b[wire.EthernetLen:]):]
	wire.IPv4(b[wire.EthernetLen:]).UpdateChecksum()
	msg[0] = wire.ICMPEcho
	binary.BigEndian.PutUint16(msg[4:], id)
	wire.UpdateICMPChecksum(0, msg)
	return b
}
