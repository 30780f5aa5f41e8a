package traffic

import (
	"encoding/binary"
	"net"
	"net/netip"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

func testFrame(size int) Frame {
	return Frame{
		Size: size,
		Dst:  net.HardwareAddr{2, 0, 0, 0, 0, 2}, Src: net.HardwareAddr{2, 0, 0, 0, 0, 1},
		DstIP: netip.MustParseAddr("10.2.0.2"), SrcIP: netip.MustParseAddr("10.1.0.1"),
	}
}

func TestFrameBytes(t *testing.T) {
	b, err := testFrame(64).Bytes()
	if err != nil {
		t.Fatal(err)
	}
	if len(b) != 60 {
		t.Errorf("a 64-byte frame takes %d bytes without its FCS, want 60", len(b))
	}
	if c := checksum(b[ethLen : ethLen+ipLen]); c != 0 {
		t.Errorf("the checksum over the IP header is %#x, want 0", c)
	}
	for _, size := range []int{0, 53, 9005} {
		if _, err := testFrame(size).Bytes(); err == nil {
			t.Errorf("a frame of %d bytes was made", size)
		}
	}
}

// pair makes two joined devices in a namespace of the test and stays in it.
func pair(t *testing.T) *netlink.Handle {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("network namespaces need root")
	}
	runtime.LockOSThread() // never unlocked: the thread keeps the namespace and ends with the test
	ns, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ns.Close() })
	h, err := netlink.NewHandle()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	if err := h.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "a"}, PeerName: "b"}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		l, err := h.LinkByName(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.LinkSetUp(l); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

func TestPingComesBackFromTheReflector(t *testing.T) {
	h := pair(t)
	r, err := NewReflector(h, "b")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	rtt, err := Pinger{Device: "a", Frame: testFrame(128), Count: 50, Gap: 10 * time.Microsecond, CPU: -1}.Run()
	if err != nil {
		t.Fatal(err)
	}
	if rtt.N != 50 || rtt.Lost != 0 {
		t.Errorf("%d probes came back and %d were lost, want 50 and 0", rtt.N, rtt.Lost)
	}
	if rtt.Min > rtt.P50 || rtt.P50 > rtt.P99 || rtt.P99 > rtt.Max {
		t.Errorf("quantiles out of order: %+v", rtt)
	}
}

// Every flow of the generator has the checksum that a host would write.
func TestFlowsHaveTheirChecksums(t *testing.T) {
	pair(t)
	l, err := Generator{Frame: testFrame(64), Device: "a", Flows: 5000}.Load()
	if err != nil {
		t.Fatal(err)
	}
	defer l.prog.Close()
	defer l.state.Close()
	ports := map[uint16]bool{}
	for range 5000 {
		b := make([]byte, len(l.frame))
		if _, err := l.prog.Run(&ebpf.RunOptions{Data: l.frame, DataOut: b, Repeat: 1}); err != nil {
			t.Fatal(err)
		}
		udp := b[ethLen+ipLen:]
		pseudo := append(append([]byte{}, b[ethLen+12:ethLen+20]...), 0, 17, udp[4], udp[5])
		if c := checksum(append(pseudo, udp...)); c != 0 {
			t.Fatalf("port %d: the checksum is wrong by %#x", binary.BigEndian.Uint16(udp), c)
		}
		ports[binary.BigEndian.Uint16(udp)] = true
	}
	if len(ports) != 5000 {
		t.Errorf("%d flows, want 5000", len(ports))
	}
}

func TestSinkCountsWhatIsSent(t *testing.T) {
	h := pair(t)
	s, err := NewSink(h, "b")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	// Nothing reflects: every probe reaches the sink and counts as lost.
	const probes = 1
	rtt, err := Pinger{Device: "a", Frame: testFrame(64), Count: probes, CPU: -1}.Run()
	if err != nil {
		t.Fatal(err)
	}
	if rtt.Lost != probes {
		t.Errorf("%d probes were lost, want %d", rtt.Lost, probes)
	}
	frames, bytes, err := s.Count()
	if err != nil {
		t.Fatal(err)
	}
	if frames != probes || bytes != probes*60 {
		t.Errorf("the sink counted %d frames, %d bytes; want %d and %d", frames, bytes, probes, probes*60)
	}
}
