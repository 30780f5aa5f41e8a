package hostnic

import (
	"strings"
	"testing"

	"gswitch/wire"
)

// Frames that fit into no chunk are refused with the payload that does.
func TestFitChunks(t *testing.T) {
	g := newRig(t, 64, 2048) // with room for 2016 bytes
	for payload, want := range map[int]string{1956: "", 1957: "room for 2016: lower the payload from 1957 to 1956", 1999: "to 1956"} {
		c, other := testConfig(1), testConfig(2)
		c.Payload, c.Virtual = payload, false
		n, err := New(&c, g.pool)
		must(t, err)
		_, err = n.OpenQP(0, &QPConfig{RemoteAddr: other.Addr, RemoteMAC: other.MAC})
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasSuffix(err.Error(), want)) {
			t.Errorf("payload %d: %v, want %q", payload, err, want)
		}
	}
}

// What is refused says what fits, and that does: padding counts.
func TestFitMTU(t *testing.T) {
	const other = wire.IPv4Len + wire.UDPLen + wire.BTHLen + wire.ICRCLen
	for _, c := range []struct {
		payload, mtu int
		want         string // "" fits
	}{
		{1456, 1500, ""}, {1457, 1500, "a payload of 1457 bytes makes packets of 1504 with their headers, and the MTU of eth0 is 1500: lower payload to 1456, or raise the MTU to 1504"},
		{1453, 1500, ""}, {1455, 1499, "lower payload to 1452, or raise the MTU to 1500"},
		{8956, 9000, ""}, {8957, 9000, "lower payload to 8956"}, {8999, 9000, "lower payload to 8956, or raise the MTU to 9044"},
		{64, 44, "the MTU of eth0 is 44: raise the MTU to 108"},
	} {
		err := FitMTU("payload", c.payload, other, "eth0", c.mtu)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("payload %d, MTU %d: %v, want %q", c.payload, c.mtu, err, c.want)
		}
	}
}
