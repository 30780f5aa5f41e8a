package traffic

import (
	"net"
	"net/netip"
	"os"
	"runtime"
	"testing"
	"time"

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

func TestSinkCountsWhatIsSent(t *testing.T) {
	h := pair(t)
	s, err := NewSink(h, "b")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	// Nothing reflects: every probe reaches the sink and is given up.
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
