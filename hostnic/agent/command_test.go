package agent

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"

	"gswitch/command/commandtest"
	"gswitch/frame"
	"gswitch/hostnic"
	inband "gswitch/int"
	"gswitch/transport"
)

func someChanges() []Change {
	return []Change{
		&StartTransfer{Transfer: &Transfer{To: netip.MustParseAddr("10.0.0.2"), Service: Memory, Verb: hostnic.Read, Size: 300, Count: 2, Depth: 1, Interval: 7,
			CC: "hpcc", Options: map[string]string{"eta": "0.9", "Wai": "80"}, Limit: 1e9, Class: 3, INT: inband.HPCC, Trace: true, Recovery: transport.IRN, Cap: 9}},
		&StartTransfer{Transfer: &Transfer{To: netip.MustParseAddr("fd00::2"), CC: "none"}},
		EndTransfer{5},
		&ServeRegion{Region: &Region{bytes: 1000}},
		&ServeRegion{Region: &Region{bytes: 1000}, Again: true},
		&ServeRegion{},
		&Configure{Document: []byte("version: 1\n")},
		Shutdown{},
		OfNIC{hostnic.TakeReports{}},
		OfNIC{&hostnic.Inject{Frame: []byte{1, 2, 3}, Class: 7}},
	}
}

func TestChangesAreEncoded(t *testing.T) {
	commandtest.Encoded(t, someChanges(), DecodeChange)
	// The form outlives the version: records that were made keep their meaning.
	want := append([]byte{1, 4, 10, 0, 0, 2, byte(Memory), byte(hostnic.Read), 3, byte(inband.HPCC), 1, transport.IRN.Code + 1, 0xac, 2, 2, 1, 7, 9,
		0x80, 0x80, 0x80, 0x80, 0xd0, 0xac, 0xf3, 0xe6, 0x41}, "\x04hpcc\x02\x03Wai\x0280\x03eta\x030.9"...)
	if got := someChanges()[0].Encode(nil); !bytes.Equal(got, want) {
		t.Errorf("a transfer is encoded as %x, want %x", got, want)
	}
	for _, bad := range []string{"", "\x00", "\x09", "\x01\x04\x0a", "\x02", "\x05\x00", "\x03\x02\x00", "\x03\x00\x05", "\x03\x01\xff\xff\xff\xff\xff\xff\x01",
		"\x0f", "\x07\x04nope", "\x08\x08\x00"} {
		if c, err := DecodeChange([]byte(bad)); err == nil || c != nil {
			t.Errorf("%x is taken for %+v", bad, c)
		}
	}
}

func FuzzDecodeChange(f *testing.F) { commandtest.Fuzz(f, someChanges(), DecodeChange) }

// Two pairs of hosts, one driven by the commands and the other by what their
// encodings are decoded to, send the same frames at the same instants.
func TestCommandsAreCarriedOut(t *testing.T) {
	sent := func(decoded bool) (seen []byte, p *pair) {
		p = newPair(t, nil)
		p.lose = func(from int, b []byte) bool {
			seen = append(append(seen, byte(from), byte(p.now), byte(p.now>>8), byte(p.now>>16)), b...)
			return false
		}
		do := func(host int, c Change) {
			t.Helper()
			if decoded {
				back, err := DecodeChange(c.Encode(nil))
				if err != nil {
					t.Fatal(err)
				}
				if s, ok := back.(*Configure); ok {
					s.Config = c.(*Configure).Config // of the document
				}
				if c = back; Allocate(c) != nil {
					t.Fatalf("%+v cannot be prepared", c)
				}
			} else if s, ok := c.(*StartTransfer); ok {
				if err := Allocate(s); err != nil {
					t.Fatal(err)
				}
			}
			p.a[host].Command(c).Do(p.now)
			switch c := c.(type) {
			case *StartTransfer:
				if c.Refused != nil {
					t.Error(c.Refused)
				}
			case *ServeRegion:
				if c.Refused != nil {
					t.Error(c.Refused)
				}
			case *Configure:
				if c.Refused != nil {
					t.Error(c.Refused)
				}
			}
		}
		transfer := func(verb hostnic.Verb, size uint64, count int) *StartTransfer {
			return &StartTransfer{Transfer: &Transfer{To: p.a[1].cfg.NIC.Addr, Service: Memory, Verb: verb, Size: size, Count: count, Depth: 2, CC: "none", Options: map[string]string{"window": "none"}}}
		}
		do(1, &ServeRegion{Region: NewRegion(40_000)})
		do(0, transfer(hostnic.Write, 30_000, 3))
		p.pass(100 * frame.Millisecond)
		do(1, &ServeRegion{})
		do(1, &ServeRegion{Region: p.a[1].last, Again: true})
		do(0, transfer(hostnic.Read, 40_000, 2))
		do(0, transfer(hostnic.Write, 20_000, 1_000_000))
		p.pass(10 * frame.Millisecond)
		do(0, EndTransfer{3})
		p.pass(100 * frame.Millisecond)
		conf := p.a[0].cfg
		conf.NIC.Rate = 2e9
		do(0, &Configure{Config: &conf, Document: []byte("rate: 2Gbps")})
		do(0, transfer(hostnic.Read, 10_000, 1))
		p.pass(100 * frame.Millisecond)
		do(0, Shutdown{})
		p.pass(100 * frame.Millisecond)
		return seen, p
	}
	a, p := sent(false)
	b, _ := sent(true)
	if len(a) < 200_000 || !bytes.Equal(a, b) {
		t.Errorf("%d bytes of frames by commands, %d by what was decoded, or others", len(a), len(b))
	}
	if p.a[0].started != 4 || len(p.a[0].transfers) != 0 || p.a[0].NIC().Config().Rate != 2e9 {
		t.Errorf("%d transfers were started, %d are there, at %d bit/s", p.a[0].started, len(p.a[0].transfers), p.a[0].NIC().Config().Rate)
	}
	refused := &StartTransfer{Transfer: &Transfer{To: p.a[1].cfg.NIC.Addr, CC: "none", Count: 1, Depth: 1}}
	if p.a[0].Command(refused).Do(p.now); refused.Refused == nil || !strings.Contains(refused.Refused.Error(), "taken down") {
		t.Errorf("after the shutdown: %v", refused.Refused)
	}
}
