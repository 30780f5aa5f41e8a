package wire_test

import (
	"testing"

	"gswitch/frame"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

func TestTelemetryIsFound(t *testing.T) {
	for _, f := range formats() {
		m, why := wt.Parse(f.b)
		want, bth := uint16(0), 0
		if f.flags&frame.HasINT != 0 {
			want = f.l4 + wire.UDPLen
		}
		if m.INT != want || why != frame.Keep {
			t.Errorf("%s: telemetry at %d, want %d (%v)", f.name, m.INT, want, why)
		}
		if f.flags&frame.HasRoCE != 0 {
			bth = int(f.l4) + wire.UDPLen
			switch f.dport {
			case wire.HPCCPort:
				bth += 42
			case wire.HPCCGrowPort:
				bth += 2 + 2*8
			case wire.INTPort:
				bth += 4 + 12 + 12
			}
			if op := f.b[bth]; f.dport != wire.RoCEv2Port && op != wire.RCSendMiddle {
				t.Errorf("%s: the test is wrong about the BTH", f.name)
			}
		}
		if got := wire.BTHOffset(&m, f.b); got != bth {
			t.Errorf("%s: BTH at %d, want %d", f.name, got, bth)
		}
	}
}

// A tag pushed or popped moves the telemetry header like the others.
func TestTelemetryMovesWithTags(t *testing.T) {
	a := frame.MustArena(1, 2048, 256)
	p := wire.NewParser(wire.NewHasher(5, false))
	for _, f := range formats() {
		if f.flags&frame.HasINT == 0 {
			continue
		}
		a.SetBytes(0, f.b)
		p.Parse(a, []frame.Ref{0})
		at := a.Meta(0).INT
		wire.PushVLAN(a, 0, wire.EtherTypeVLAN, 5)
		if got := a.Meta(0).INT; got != at+wire.VLANLen {
			t.Errorf("%s: telemetry at %d after a push, was %d", f.name, got, at)
		}
		wire.PopVLAN(a, 0)
		if got := a.Meta(0).INT; got != at {
			t.Errorf("%s: telemetry at %d after push and pop, was %d", f.name, got, at)
		}
	}
}

func TestTelemetryIsNotSeenInTunnels(t *testing.T) {
	inner := []wt.Layer{ip4, wt.UDP(49152, wire.HPCCPort), wt.Payload(hpccBlock), wt.BTH(wire.RCSendMiddle, 7, 1), wt.Zeros(36)}
	m, why := wt.Parse(wt.Frame(append([]wt.Layer{eth, ip4, wt.GRE(0, 0, 0)}, inner...)...))
	if why != frame.Keep || m.Flags&(frame.HasINT|frame.HasRoCE|frame.HasUDP) != frame.HasUDP || m.INT != 0 {
		t.Errorf("%v: flags %x, telemetry at %d", why, m.Flags, m.INT)
	}
}

// Other kinds of INT are what they were: datagrams.
func TestForeignTelemetryIsPayload(t *testing.T) {
	for name, b := range map[string][]byte{
		"destination type":   edit(intMD(2000), 0, 0x24),
		"MX":                 edit(intMD(2000), 0, 0x34),
		"next is a UDP":      edit(intMD(2000), 0, 0x18),
		"identified by DSCP": edit(intMD(2000), 0, 0x10),
	} {
		f := wt.Frame(eth, ip4, wt.UDP(1000, wire.INTPort), wt.Payload(b), data)
		m, why := wt.Parse(f)
		if why != frame.Keep || m.Flags&(frame.HasINT|frame.HasUDP) != frame.HasUDP || m.INT != 0 {
			t.Errorf("%s: %v, flags %x", name, why, m.Flags)
		}
	}
}

// Only what switches have written is a record: not the header of the sender, nor one that is cut off.
func TestRecordsOfSwitches(t *testing.T) {
	hpcc := func(n byte) []byte { return append([]byte{n << 4}, make([]byte, wire.HPCCLen-1)...) }
	md := func(words byte) []byte {
		return append([]byte{wire.INTTypeMD<<4 | wire.INTNextPort<<2, 3 + words, 0, 9, wire.INTMDVersion << 4, 0, 3}, make([]byte, 9+4*int(words))...)
	}
	for i, c := range []struct {
		port uint16
		b    []byte
		want bool
	}{
		{wire.HPCCPort, hpcc(0), false}, {wire.HPCCPort, hpcc(1), true}, {wire.HPCCPort, hpcc(1)[:1], false},
		{wire.HPCCGrowPort, hpcc(0), false}, {wire.HPCCGrowPort, hpcc(15), true},
		{wire.INTPort, md(0), false}, {wire.INTPort, md(3), true}, {wire.INTPort, md(3)[:27], false}, {wire.INTPort, nil, false},
		{wire.RoCEv2Port, hpcc(1), false},
	} {
		if got := wire.HasRecords(c.port, c.b); got != c.want {
			t.Errorf("%d: port %d, %x: %v", i, c.port, c.b, got)
		}
	}
}
