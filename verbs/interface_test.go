package verbs_test

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"gswitch/dataplane/xsk"
	"gswitch/dataplane/xsk/xsktest"
	"gswitch/verbs"
)

// link makes two namespaces joined by a veth pair, eth0 at both ends. It skips
// the test where that is not allowed.
func link(t testing.TB) (names [2]string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root for network namespaces and AF_XDP")
	}
	test := strings.ToLower(strings.TrimPrefix(strings.ReplaceAll(t.Name(), "/", "-"), "Test"))
	var handles [2]netns.NsHandle
	for i := range names {
		names[i] = fmt.Sprintf("verbs-%d-%s-%d", os.Getpid(), test, i)
		xsktest.NetNS(t, names[i])
		var err error
		if handles[i], err = netns.GetFromName(names[i]); err != nil {
			t.Fatal(err)
		}
		defer handles[i].Close()
	}
	at := netlink.NewLinkAttrs()
	at.Name = "eth0"
	if err := xsk.InNetNS(names[0], func() error {
		return netlink.LinkAdd(&netlink.Veth{LinkAttrs: at, PeerName: "eth0", PeerNamespace: netlink.NsFd(handles[1])})
	}); err != nil {
		t.Fatal(err)
	}
	for _, ns := range names {
		if err := xsk.InNetNS(ns, func() error {
			l, err := netlink.LinkByName("eth0")
			if err != nil {
				return err
			}
			return netlink.LinkSetUp(l)
		}); err != nil {
			t.Fatal(err)
		}
	}
	return names
}

// open opens the host of an end.
func open(t testing.TB, ctx context.Context, ns string, i int) *verbs.Host {
	t.Helper()
	h, err := verbs.Open(ctx, verbs.Config{Interface: "eth0", NetNS: ns, Address: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), 24), Rate: 1e9, BaseRTT: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// The example runs over AF_XDP between two namespaces.
func TestExample(t *testing.T) {
	names := link(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	a, b := open(t, ctx, names[0], 0), open(t, ctx, names[1], 1)
	m, err := b.Register(make([]byte, 8192), verbs.RemoteRead|verbs.RemoteWrite)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Listen(verbs.ListenConfig{Offer: m}); err != nil {
		t.Fatal(err)
	}
	if err := hello(ctx, a, b.Addr()); err != nil {
		t.Fatal(err)
	}
	if err := m.Sync(); err != nil {
		t.Fatal(err)
	}
	if got := m.Bytes()[4096:4101]; string(got) != "hello" {
		t.Errorf("memory has %q", got)
	}
}

// An interface that is not there, or whose MTU is too small, is refused with a
// reason.
func TestOpenRefuses(t *testing.T) {
	names := link(t)
	at := netip.MustParsePrefix("10.0.0.1/24")
	for want, c := range map[string]verbs.Config{
		"nothing in network namespace " + names[0]: {Interface: "nothing", NetNS: names[0], Address: at},
		"raise the MTU": {Interface: "eth0", NetNS: names[0], Address: at, Payload: 3000},
		"no-such-ns":    {Interface: "eth0", NetNS: "no-such-ns", Address: at},
	} {
		h, err := verbs.Open(context.Background(), c)
		if err == nil {
			h.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
