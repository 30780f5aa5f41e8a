package gswitch

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"gswitch/capture"
	"gswitch/control"
	"gswitch/control/api"
	"gswitch/dataplane/xsk"
	"gswitch/dataplane/xsk/xsktest"
)

// lab is a namespace for a switch with two ports, and one for each host.
type lab struct {
	ns    [3]string // switch, host 1, host 2
	hosts [2]int    // packet sockets at the far ends of the ports
	macs  [2][6]byte
}

func newLab(t *testing.T) *lab {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: network namespaces and AF_XDP")
	}
	l := &lab{}
	for i, part := range []string{"sw", "h1", "h2"} {
		l.ns[i] = fmt.Sprintf("control-%d-%s", os.Getpid(), part)
		xsktest.NetNS(t, l.ns[i])
	}
	for i := range l.hosts {
		far := fmt.Sprintf("eth%d", i+1)
		handle, err := netns.GetFromName(l.ns[i+1])
		if err != nil {
			t.Fatal(err)
		}
		defer handle.Close()
		err = xsk.InNetNS(l.ns[0], func() error {
			return netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: far}, PeerName: "host", PeerNamespace: netlink.NsFd(int(handle))})
		})
		if err != nil {
			t.Fatalf("making a veth pair: %v", err)
		}
		err = xsk.InNetNS(l.ns[i+1], func() error {
			link, err := netlink.LinkByName("host")
			if err != nil {
				return err
			}
			copy(l.macs[i][:], link.Attrs().HardwareAddr)
			if err := netlink.LinkSetUp(link); err != nil {
				return err
			}
			l.hosts[i], err = packetSocket(link.Attrs().Index)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(l.hosts[i]) })
	}
	return l
}

// testType is an EtherType for experiments (IEEE 802, local experimental 1).
const testType = 0x88b5

func packetSocket(ifindex int) (int, error) {
	proto := uint16(testType>>8 | testType&0xff<<8) // network order
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, int(proto))
	if err != nil {
		return -1, err
	}
	timeout := unix.NsecToTimeval(int64(5 * time.Second))
	return fd, errors.Join(
		unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: proto, Ifindex: ifindex}),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 8<<20),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout))
}

func (l *lab) send(t *testing.T, from, to int, n uint32) {
	t.Helper()
	b := make([]byte, 64)
	copy(b, l.macs[to][:])
	copy(b[6:], l.macs[from][:])
	binary.BigEndian.PutUint16(b[12:], testType)
	binary.BigEndian.PutUint32(b[14:], n)
	if _, err := unix.Write(l.hosts[from], b); err != nil {
		t.Fatalf("sending frame %d: %v", n, err)
	}
}

// receive returns the number in the next frame that arrives at a host and did
// not leave from there.
func (l *lab) receive(at int) (uint32, error) {
	n, _, err := l.receiveStamped(at)
	return n, err
}

// receiveStamped also returns when the kernel got the frame, which does not hang on
// when this process is given a processor.
func (l *lab) receiveStamped(at int) (uint32, time.Time, error) {
	b, oob := make([]byte, 256), make([]byte, 256)
	for {
		n, m, _, _, err := unix.Recvmsg(l.hosts[at], b, oob, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return 0, time.Time{}, fmt.Errorf("nothing arrives any more: %w", err)
		}
		if n < 18 || string(b[6:12]) == string(l.macs[at][:]) {
			continue
		}
		messages, err := unix.ParseSocketControlMessage(oob[:m])
		if err != nil {
			return 0, time.Time{}, err
		}
		for _, c := range messages {
			if c.Header.Level == unix.SOL_SOCKET && c.Header.Type == unix.SCM_TIMESTAMPNS && len(c.Data) >= 16 {
				s, ns := binary.NativeEndian.Uint64(c.Data), binary.NativeEndian.Uint64(c.Data[8:])
				return binary.BigEndian.Uint32(b[14:]), time.Unix(int64(s), int64(ns)), nil
			}
		}
		return 0, time.Time{}, errors.New("a frame arrived without the instant at which it did")
	}
}

// What AF_XDP gave a port and why, and what was set on the interface, is shown
// and exported.
func TestPortIsExplained(t *testing.T) {
	l := newLab(t)
	socket := filepath.Join(t.TempDir(), "s1.sock")
	d := startDaemon(t, socket, "--netns", l.ns[0], "--port", "eth1", "--port", "eth2", "--poll", "sleep", "--name", "s1")
	out, errs, code := invoke(t, "", "--socket", socket, "show", "ports", "eth1")
	for _, want := range []string{"mode             native (zero-copy: refused", "frames in a transmit call", "set up ", "rings            rx full 0"} {
		if !strings.Contains(out, want) || code != 0 {
			t.Errorf("show ports eth1: exit code %d, want %q:\n%s%s", code, want, out, errs)
		}
	}
	// Shells complete the names of what runs.
	for args, want := range map[string]string{
		"show ports ": "eth1\neth2\n", "set port eth": "eth1\neth2\n", "show ports eth1 ": ":4\n", "show --switch ": "s1\n", "capture --port ": "eth1\neth2\n",
	} {
		words := append([]string{"__complete", "--socket", socket}, strings.Split(args, " ")...)
		if out, errs, code := invoke(t, "", words...); code != 0 || !strings.HasPrefix(out, want) {
			t.Errorf("completion of %q: exit code %d, want %q:\n%s%s", args, code, want, out, errs)
		}
	}
	text := scrape(t, socket)
	for _, want := range []string{
		`gswitch_xsk_info{busy_poll="false",mode="native",multi_buffer="false",port="eth1",switch="s1",tried="zero-copy: refused`,
		`gswitch_xsk_rx_ring_full_total{port="eth2",switch="s1",worker="0"} 0`,
		"gswitch_memory_huge_pages ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("/metrics has no %s", want)
		}
	}
	if code := d.stop(t, unix.SIGTERM); code != 0 {
		t.Errorf("exit code %d after SIGTERM; log:\n%s", code, d.log.String())
	}
	if log := d.log.String(); !strings.Contains(log, `msg="interface opened" interface=eth1 netns=`+l.ns[0]+` mode=native tried="zero-copy: refused`) {
		t.Errorf("the log does not name the mode:\n%s", log)
	}
}

// In a container that has the documented capabilities and no others, ports of
// the process's own network namespace work: no CAP_SYS_ADMIN is needed.
func TestCapabilitiesOfAContainer(t *testing.T) {
	l := newLab(t)
	socket := filepath.Join(t.TempDir(), "s1.sock")
	d := &daemon{Cmd: exec.Command(program, "run", "--socket", socket, "--port", "eth1", "--port", "eth2", "--poll", "sleep")}
	d.Stderr = &d.log
	out, err := d.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	started := make(chan error)
	go func() {
		// This thread ends with the goroutine, and what it dropped with it.
		runtime.LockOSThread()
		started <- func() error {
			ns, err := netns.GetFromName(l.ns[0])
			if err != nil {
				return err
			}
			defer ns.Close()
			if err := netns.Set(ns); err != nil {
				return err
			}
			// deploy/README.md: NET_ADMIN NET_RAW IPC_LOCK SYS_NICE PERFMON BPF.
			keep := map[uintptr]bool{unix.CAP_NET_ADMIN: true, unix.CAP_NET_RAW: true, unix.CAP_IPC_LOCK: true, unix.CAP_SYS_NICE: true, unix.CAP_PERFMON: true, unix.CAP_BPF: true}
			for c := range uintptr(unix.CAP_LAST_CAP + 1) {
				if keep[c] {
					continue
				}
				if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
					return fmt.Errorf("drop capability %d: %w", c, err)
				}
			}
			return d.Start()
		}()
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	if !strings.HasPrefix(line, "ready: ") {
		t.Errorf("no line with ready, but %q", line)
	} else if err := d.Process.Signal(unix.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := d.Wait(); err != nil {
		t.Errorf("%v; log:\n%s", err, d.log.String())
	}
}

// scrape returns what a daemon exposes.
func scrape(t *testing.T, socket string) string {
	t.Helper()
	c := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	r, err := c.Get("http://gswitch/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdleConnections()
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// sample returns the value of a series in what was scraped.
func sample(t *testing.T, text, series string) (v float64) {
	t.Helper()
	_, rest, ok := strings.Cut(text, "\n"+series+" ")
	if _, err := fmt.Sscan(rest, &v); !ok || err != nil {
		t.Fatalf("/metrics has no %s", series)
	}
	return v
}

// Reloads by signal and by API, edits and bad files, while frames flow: not
// one is lost. There are never more than inFlight frames under way.
func TestReloadUnderTraffic(t *testing.T) {
	l := newLab(t)
	dir := t.TempDir()
	socket, file := filepath.Join(dir, "s1.sock"), filepath.Join(dir, "switch.yaml")
	doc := func(rate, more string) string {
		return fmt.Sprintf(`version: 1
workers: [{poll: adaptive}]
memory: {frames: 16384}
switches:
  - name: s1
    ports:
      - {name: p1, interface: eth1, netns: %s, rate: %s}
      - {name: p2, interface: eth2, netns: %s}
%s`, l.ns[0], rate, l.ns[0], more)
	}
	store := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	store(doc("unlimited", ""))
	d := startDaemon(t, socket, "-c", file)
	client := control.Dial(socket)
	ctx := context.Background()

	l.send(t, 1, 0, 0) // teaches the switch where host 2 is
	if _, err := l.receive(0); err != nil {
		t.Fatal(err)
	}

	const inFlight, total = 32, 20000
	credit, stop, done := make(chan struct{}, inFlight), make(chan struct{}), make(chan error, 1)
	go func() {
		for want := uint32(0); ; want++ {
			got, err := l.receive(1)
			if err == nil && got != want {
				err = fmt.Errorf("frame %d arrived in place of %d", got, want)
			}
			if err != nil || got == total-1 {
				done <- err
				close(stop)
				return
			}
			<-credit
		}
	}()
	changes := make(chan error, 1)
	go func() { changes <- churn(ctx, d, client, store, doc, stop) }()
send:
	for n := uint32(0); n < total; n++ {
		select {
		case credit <- struct{}{}:
			l.send(t, 0, 1, n)
		case <-stop:
			break send
		}
	}
	if err := <-done; err != nil {
		t.Errorf("%v; log:\n%s", err, d.log.String())
	}
	if err := <-changes; err != nil {
		t.Error(err)
	}
	if code := d.stop(t, unix.SIGTERM); code != 0 {
		t.Errorf("exit code %d; log:\n%s", code, d.log.String())
	}
	if strings.Contains(d.log.String(), "still held by nodes or lost") {
		t.Error(d.log.String())
	}
}

// churn changes the configuration in every way until stop, at least once.
func churn(ctx context.Context, d *daemon, client api.ControlClient, store func(string), doc func(rate, more string) string, stop chan struct{}) error {
	for round := 0; ; round++ {
		v, err := client.GetVersion(ctx, &api.GetVersionRequest{})
		if err != nil {
			return err
		}
		store(doc(fmt.Sprintf("%dGbps", 1+round%10), "    acls: {a: [{match: {ethertype: arp}, action: drop}]}\n"))
		if err := d.Process.Signal(unix.SIGHUP); err != nil {
			return err
		}
		for now := v; now.Generation == v.Generation; runtime.Gosched() {
			if now, err = client.GetVersion(ctx, &api.GetVersionRequest{}); err != nil {
				return err
			}
		}
		if _, err := client.Apply(ctx, &api.ApplyRequest{Yaml: doc("unlimited", "    fdb: {ageing: 60s}\n")}); err != nil {
			return fmt.Errorf("apply: %w", err)
		}
		if _, err := client.Apply(ctx, &api.ApplyRequest{Yaml: doc("unlimited", "      - {name: p3, interface: nosuch0}\n")}); err == nil {
			return errors.New("a document with a missing interface was applied")
		}
		more := "      - {name: p3, wire: w}\n      - {name: p4, wire: w, vlan: {access: 7}}\n"
		if _, err := client.Apply(ctx, &api.ApplyRequest{Yaml: doc("unlimited", more)}); err != nil {
			return fmt.Errorf("apply with more ports: %w", err)
		}
		entry := &api.Entry{Table: "fdb", Yaml: "{mac: 02:00:00:00:00:77, port: p2}"}
		if _, err := client.Edit(ctx, &api.EditRequest{Edit: &api.EditRequest_Set{Set: entry}}); err != nil {
			return fmt.Errorf("edit: %w", err)
		}
		if _, err := client.ListPorts(ctx, &api.ListRequest{}); err != nil {
			return err
		}
		select {
		case <-stop:
			return nil
		default:
		}
	}
}

// A killed daemon leaves nothing that keeps the next from working.
func TestKillAndStartAgain(t *testing.T) {
	l := newLab(t)
	socket := filepath.Join(t.TempDir(), "s1.sock")
	for range 3 {
		d := startDaemon(t, socket, "--netns", l.ns[0], "--port", "eth1", "--port", "eth2")
		l.send(t, 0, 1, 7)
		if n, err := l.receive(1); n != 7 || err != nil {
			t.Fatalf("frame %d: %v; log:\n%s", n, err, d.log.String())
		}
		if code := d.stop(t, unix.SIGKILL); code != -1 {
			t.Errorf("exit code %d", code)
		}
	}
}

// A capture is a file that can be read, with what went in and out.
func TestCapture(t *testing.T) {
	l := newLab(t)
	dir := t.TempDir()
	socket, file := filepath.Join(dir, "s1.sock"), filepath.Join(dir, "c.pcapng")
	d := startDaemon(t, socket, "--netns", l.ns[0], "--port", "eth1", "--port", "eth2", "--name", "s1")
	_, errs, code := invoke(t, "", "--socket", socket, "capture", "-w", file, "ether", "protocool", "arp")
	if code != 2 {
		t.Errorf("a filter that is none: %d %s", code, errs)
	}
	_, errs, code = invoke(t, "", "--socket", socket, "capture", "-p", "eth7", "-w", file)
	if code != 1 || !strings.Contains(errs, `there is no port "eth7"; there are s1/eth1, s1/eth2`) {
		t.Errorf("a port that is none: %d %s", code, errs)
	}

	// Each frame is there once, unless both directions are asked for.
	onceFile := filepath.Join(dir, "once.pcapng")
	once := exec.Command(program, "--socket", socket, "capture", "-w", onceFile)
	if err := once.Start(); err != nil {
		t.Fatal(err)
	}
	for n := uint32(0); n < 100000 && len(readCapture(t, onceFile)) < 3; n++ {
		l.send(t, 0, 1, n)
		if _, err := l.receive(1); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(once.Process.Signal(unix.SIGINT), once.Wait()); err != nil {
		t.Error(err)
	}
	if frames := slices.Compact(readCapture(t, onceFile)); !slices.Equal(frames, []string{"s1/eth1 in 64 bytes"}) {
		t.Errorf("without flags the capture has %v", frames)
	}
	cmd := exec.Command(program, "--socket", socket, "capture", "--in", "--out", "-w", file)
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// The taps are in place some time after the start: send until frames
	// appear in the file.
	seen := map[string]bool{}
	for n := uint32(0); n < 100000 && len(seen) < 2; n++ {
		l.send(t, 0, 1, n)
		if _, err := l.receive(1); err != nil {
			t.Fatal(err)
		}
		for _, s := range readCapture(t, file) {
			seen[s] = true
		}
	}
	for _, want := range []string{"s1/eth1 in 64 bytes", "s1/eth2 out 64 bytes"} {
		if !seen[want] {
			t.Errorf("the capture lacks %q; it has %v", want, seen)
		}
	}
	if err := cmd.Process.Signal(unix.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	var frames, size int
	if n, _ := fmt.Sscanf(said.String(), "%d frames, %d bytes in", &frames, &size); n != 2 || frames < len(readCapture(t, file)) || int64(size) != info.Size() || strings.Contains(said.String(), "lost") {
		t.Errorf("it says %q of a file of %d bytes", said.String(), info.Size())
	}
	if code := d.stop(t, unix.SIGTERM); code != 0 {
		t.Errorf("exit code %d; log:\n%s", code, d.log.String())
	}
}

// readCapture returns what a file that may still grow holds of our frames.
func readCapture(t *testing.T, file string) (frames []string) {
	f, err := os.Open(file)
	if err != nil {
		return nil // not made yet
	}
	defer f.Close()
	r, err := capture.NewReader(f)
	for err == nil {
		var rec capture.Record
		var b []byte
		if rec, b, err = r.Next(); err == nil && len(b) >= 14 && binary.BigEndian.Uint16(b[12:]) == testType {
			frames = append(frames, fmt.Sprintf("%s %s %d bytes", r.Interfaces()[rec.Iface].Name, rec.Dir, rec.Wire))
		}
	}
	return frames
}

// What goes wrong most often says what to do.
func TestClearErrors(t *testing.T) {
	l := newLab(t)
	socket := filepath.Join(t.TempDir(), "s1.sock")
	d := startDaemon(t, socket, "--netns", l.ns[0], "--port", "eth1")
	other := filepath.Join(t.TempDir(), "other.sock")
	for _, tc := range []struct{ args, want string }{
		{"--netns " + l.ns[0] + " --port eth3", "there is no interface eth3 in network namespace " + l.ns[0] + "; there are eth1, eth2"},
		{"--netns " + l.ns[0] + " --port eth1", "already attached"},
		{"--netns nosuchns --port eth1", "network namespace nosuchns"},
	} {
		_, errs, code := invoke(t, "", append([]string{"run", "--socket", other}, strings.Fields(tc.args)...)...)
		if code != 1 || !strings.Contains(errs, tc.want) {
			t.Errorf("run %s: %d, want %q:\n%s", tc.args, code, tc.want, errs)
		}
	}
	if code := d.stop(t, unix.SIGTERM); code != 0 {
		t.Errorf("exit code %d; log:\n%s", code, d.log.String())
	}
}
