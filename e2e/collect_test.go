package e2e

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gswitch/collect"
	"gswitch/control/api"
	"gswitch/wire"
)

// collector is a running gcollect.
type collector struct {
	t    *testing.T
	data string
	args []string
	*exec.Cmd
}

func newCollector(t *testing.T, fabric string, args ...string) *collector {
	t.Helper()
	c := &collector{t: t, data: t.TempDir()}
	c.args = append([]string{"run", "--data", c.data, "--fabric", fabric, "--metrics", ""}, args...)
	c.start()
	t.Cleanup(func() { c.kill() })
	return c
}

func (c *collector) start() {
	c.t.Helper()
	c.Cmd = exec.Command(gcollect, c.args...)
	c.Stderr = c.t.Output()
	c.SysProcAttr = &unix.SysProcAttr{}
	out, err := c.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		c.t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.Contains(line, "ready") {
		c.t.Fatalf("gcollect prints %q, %v", line, err)
	}
}

func (c *collector) kill() {
	c.Process.Kill()
	c.Wait()
}

// events are what it found.
func (c *collector) events(kind string) (v []collect.Event, err error) {
	out, err := exec.Command(gcollect, "events", "--data", c.data, "--kind", kind, "--json").Output()
	if err != nil {
		return nil, err
	}
	for d := json.NewDecoder(strings.NewReader(string(out))); d.More(); {
		var e collect.Event
		if err := d.Decode(&e); err != nil {
			return nil, err
		}
		v = append(v, e)
	}
	return v, nil
}

// freePort is one that a program may listen on, again and again.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// A link between two switches loses frames. gcollect names each of them, on that
// link and nowhere else, though it is killed and started again while frames pass;
// and of the reports none is lost.
func TestCollectLosses(t *testing.T) {
	l := newLab(t, 2, labOptions{})
	fabric := filepath.Join(t.TempDir(), "fabric.yaml")
	write(t, fabric, "version: 1\nname: line\nmode: l2\nhosts: [h1, h2]\nswitches: [s1, s2]\nlinks: [{a: h1, b: s1}, {a: h2, b: s2}, {a: s1, b: s2, rate: 10Gbps}]\n")
	at := freePort(t)
	c := newCollector(t, fabric, "--reports", at)
	if out, err := exec.Command(gcollect, "show", "limits", "--data", c.data).CombinedOutput(); err != nil || !strings.Contains(string(out), "reports that are being read") || !strings.Contains(string(out), "connections of the NATS server") {
		t.Errorf("gcollect show limits: %v\n%s", err, out)
	}
	d, _ := runConfig(t, fmt.Sprintf(`version: 1
export: {to: %[2]q}
switches:
  - name: s1
    qos: {metered: {lossradar: {queues: [0]}}}
    ports:
      - {name: h1, interface: d0, netns: %[1]s}
      - {name: s2, wire: w, qos: metered, faults: {loss: 5%%, seed: 3}}
  - name: s2
    qos: {metered: {lossradar: {queues: [0]}}}
    ports:
      - {name: h2, interface: d1, netns: %[1]s}
      - {name: s1, wire: w, qos: metered}
`, l.sw, at))
	a, b := l.hosts[0], l.hosts[1]
	from, to := a.raw(t, wire.EtherTypeIPv4), b.raw(t, wire.EtherTypeIPv4)
	back := flow{dst: wire.MAC{255, 255, 255, 255, 255, 255}, src: b.mac, srcIP: [4]byte{10, 0, 0, 2}, dstIP: [4]byte{10, 0, 0, 1}, dstPort: 7, size: 100}
	if err := to.send(back.frame(0)); err != nil { // so that h2 is known
		t.Fatal(err)
	}
	f := flow{dst: b.mac, src: a.mac, srcIP: [4]byte{10, 0, 0, 1}, dstIP: [4]byte{10, 0, 0, 2}, dstPort: 7777, srcPort: 1, size: 100}
	sent, got := 0, 0
	arrived := func(wait time.Duration) {
		for x, _ := to.recv(wait); x != nil; x, _ = to.recv(wait) {
			if _, ok := flowNumber(x, 7777); ok {
				got++
			}
		}
	}
	pass := func(n int) {
		for range n {
			sent++
			x := f.frame(uint64(sent))
			binary.BigEndian.PutUint16(x[18:], uint16(sent))
			binary.BigEndian.PutUint16(x[24:], 0)
			binary.BigEndian.PutUint16(x[24:], wire.Checksum(x[14:34]))
			if err := from.send(x); err != nil {
				t.Fatal(err)
			}
			if sent%50 == 0 {
				time.Sleep(10 * time.Millisecond) // batches are to have few losses
			}
		}
		arrived(200 * time.Millisecond)
	}
	pass(1000)
	c.kill()
	pass(1000)
	c.start()
	pass(1000)
	want := netip.MustParseAddr("10.0.0.1")
	eventually(t, "all losses are named", func() error {
		arrived(time.Millisecond) // what was under way for long
		v, err := c.events("loss")
		if err != nil {
			return err
		}
		var named uint64
		for _, e := range v {
			if e.Where != "s1>s2" {
				t.Errorf("a loss at %s: %v", e.Where, e)
			}
			if e.Src == want && e.DstPort == 7777 {
				named += e.Packets
			}
		}
		if int(named) != sent-got {
			return fmt.Errorf("%d losses are named, of %d", named, sent-got)
		}
		return nil
	})
	var lost uint64
	for _, n := range d.ports()["s1/s2"].Faults.GetLost() {
		lost += n
	}
	if int(lost) < sent-got || sent == got {
		t.Fatalf("%d of %d frames came, the link lost %d", got, sent, lost)
	}
	eventually(t, "the reports are acknowledged", func() error {
		m := d.metrics()
		if m["gswitch_export_reports_total/lost"] != 0 || m["gswitch_export_reports_total/acknowledged"] == 0 {
			t.Fatalf("%v", m)
		}
		if m["gswitch_export_waiting_reports"] > 20 || m["gswitch_export_connections_total"] < 2 {
			return fmt.Errorf("%v wait", m["gswitch_export_waiting_reports"])
		}
		return nil
	})
	x := show(d, &api.Exports{}, "export").Exports
	if len(x) != 1 || x[0].To != at || x[0].Name != "s1" || !x[0].Connected || x[0].Lost != 0 || x[0].Acknowledged+x[0].Waiting != x[0].Sequence || len(x[0].Sources) != 2 {
		t.Errorf("%v", x)
	}
	sum := uint64(0)
	for _, s := range x[0].Sources {
		if sum += s.Reports; s.System != "lossradar" {
			t.Errorf("%v", s)
		}
	}
	if sum != x[0].Sequence {
		t.Errorf("%d reports of the switches, the last one is %d", sum, x[0].Sequence)
	}
	d.stop(l.sw)
}
