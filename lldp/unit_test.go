package lldp

import (
	"encoding/hex"
	"reflect"
	"strings"
	"testing"

	"gswitch/wire"
)

// vector is a frame written by hand from IEEE 802.1AB clause 8: a value a line.
var vector = unhex(`
	0180c200000e 020000000001 88cc
	0207 04 020000000001
	0404 05 703130
	0602 0079
	0805 73312f7031
	0a02 7331
	0c03 677377
	0e04 0014 0004
	100c 05 01 0a000001 01 00000000 00
	0000`)

func unhex(s string) []byte {
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		panic(err)
	}
	return b
}

func sample() Unit {
	mac := wire.MAC{2, 0, 0, 0, 0, 1}
	return Unit{Src: mac, Chassis: ID{ChassisMAC, mac[:]}, Port: ID{PortName, []byte("p10")}, TTL: 121,
		PortDescription: []byte("s1/p1"), Name: []byte("s1"), Description: []byte("gsw"),
		HasCapabilities: true, Capabilities: Bridge | Router, Enabled: Bridge, Management: ID{FamilyIPv4, []byte{10, 0, 0, 1}}, Numbering: NoNumber}
}

// What is written is what the standard says, and is read as it was meant.
func TestVector(t *testing.T) {
	want := sample()
	b := make([]byte, 256)
	n := want.Encode(b)
	if !reflect.DeepEqual(b[:n], vector) {
		t.Errorf("%x\nwant\n%x", b[:n], vector)
	}
	var got Unit
	if !got.Decode(vector) || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	for k := range n {
		if want.Encode(b[:k]) != 0 {
			t.Fatalf("%d bytes go into %d", n, k)
		}
	}
	want.TTL = 0
	if n = want.Encode(b); n != wire.MinFrame || !got.Decode(b[:n]) || got.TTL != 0 || got.Name != nil || got.Management.Kind != 0 {
		t.Errorf("a leave of %d bytes: %+v", n, got)
	}
}

// Values that are too long are not written.
func TestTooLong(t *testing.T) {
	long := make([]byte, MaxText+1)
	for i, change := range []func(*Unit){
		func(u *Unit) { u.Chassis.Value = long }, func(u *Unit) { u.Port.Value = nil }, func(u *Unit) { u.Name = long },
		func(u *Unit) { u.Management.Value = long[:maxAddress+1] },
	} {
		u := sample()
		if change(&u); u.Encode(make([]byte, 2000)) != 0 {
			t.Errorf("case %d is written", i)
		}
	}
}

// Frames that are not whole are refused; what is unknown is passed over.
func TestWholeFrames(t *testing.T) {
	const head = `0180c200000e 020000000001 88cc `
	const must = head + `0207 04 020000000001 0404 05 703130 0602 0079 `
	for _, c := range []struct {
		what, frame string
		whole       bool
	}{
		{"only what must be there", must, true},
		{"padded", must + "0000 ffff", true},
		{"another EtherType", strings.Replace(must, "88cc", "88cd", 1), false},
		{"nothing", head, false},
		{"no TTL", head + `0207 04 020000000001 0404 05 703130 0000`, false},
		{"another order", head + `0404 05 703130 0207 04 020000000001 0602 0079`, false},
		{"a second TTL", must + "0602 0078", false},
		{"a TTL of one byte", head + `0207 04 020000000001 0404 05 703130 0601 79`, false},
		{"a chassis without a name", head + `0201 04 0404 05 703130 0602 0079`, false},
		{"a value beyond the end", must + "0a05 7331", false},
		{"half a length", must + "0a", false},
		{"capabilities of two bytes", must + "0e02 0014", false},
		{"an address beyond its value", must + "100c 20 01 0a000001 01 00000000 00", false},
		{"an address of no bytes", must + "1009 01 01 01 00000000 00 0000", false},
		{"an object identifier beyond its value", must + "100c 05 01 0a000001 01 00000000 01", false},
		{"values of organisations, and reserved ones", must + "fe04 00120f01 fc01 00 0000", true},
	} {
		var u Unit
		if u.Decode(unhex(c.frame)) != c.whole {
			t.Errorf("%s: whole is %v", c.what, !c.whole)
		}
	}
	var u Unit
	if u.Decode(unhex(must + "0a01 61 0a01 62")); string(u.Name) != "a" {
		t.Errorf("of two names %q counts", u.Name)
	}
	for k := range len(vector) {
		u.Decode(vector[:k]) // ends
	}
	if !u.Decode(vector) || testing.AllocsPerRun(100, func() { u.Decode(vector) }) != 0 {
		t.Error("reading a frame takes memory")
	}
}

// What neighbours announce does no harm to a reader.
func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"leaf 1\x00":                   "leaf 1",
		"a\x1b[31mb\u202ec":            "a?[31mb?c",
		"two\nlines":                   "two lines",
		"\xff\xfe":                     "??",
		strings.Repeat("ü", 200) + "x": strings.Repeat("ü", 100),
	} {
		if got := Text([]byte(in)); got != want {
			t.Errorf("%q is shown as %q, want %q", in, got, want)
		}
	}
	mac := []byte{2, 0, 0, 0, 0, 1}
	for _, c := range [][2]string{
		{ChassisText(ID{ChassisMAC, mac}), "02:00:00:00:00:01"},
		{ChassisText(ID{ChassisAddress, []byte{FamilyIPv4, 10, 0, 0, 1}}), "10.0.0.1"},
		{ChassisText(ID{ChassisMAC, mac[:5]}), "0200000000"},
		{ChassisText(ID{ChassisAddress, []byte{FamilyIPv6}}), ""},
		{PortText(ID{PortMAC, mac}), "02:00:00:00:00:01"},
		{PortText(ID{PortName, []byte("eth\a0")}), "eth?0"},
		{AddressText(ID{FamilyMAC, mac}), "02:00:00:00:00:01"},
		{AddressText(ID{}), ""},
		{(Bridge | Router | 1<<15).String(), "bridge,router"},
	} {
		if c[0] != c[1] {
			t.Errorf("%q, want %q", c[0], c[1])
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(vector)
	f.Add(unhex("0180c200000e 020000000001 88cc 0207 04 020000000001 0404 05 703130 0602 0000 0000"))
	f.Add(unhex("0180c200000e 020000000001 88cc 0202 05 01 0402 04 02 0602 0001 0a00 100d 05 02 0a000001 01 00000000 01 ff 0000"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var u, again Unit
		if !u.Decode(b) {
			return
		}
		ChassisText(u.Chassis)
		PortText(u.Port)
		AddressText(u.Management)
		Text(u.Description)
		if u.TTL == 0 {
			return // nothing else is written
		}
		c := make([]byte, 4096)
		if n := u.Encode(c); n == 0 || !again.Decode(c[:n]) || !reflect.DeepEqual(u, again) {
			t.Fatalf("%+v becomes %+v", u, again)
		}
	})
}
