package endpoint

import (
	"net/netip"
	"reflect"
	"testing"

	"gswitch/frame"
	"gswitch/hostnic"
	"gswitch/hostnic/agent"
	"gswitch/tcp/stack"
	"gswitch/transport"
	"gswitch/wire"
)

// What a record holds of a call says all of it but the bytes.
func TestCallsAreCoded(t *testing.T) {
	for _, c := range []struct{ is, want hostnic.Call }{
		{&Dial{To: netip.MustParseAddrPort("10.0.0.2:80")}, nil},
		{&Listen{Port: 443, On: true}, nil},
		{&Listen{Port: 1}, nil},
		{&Write{Number: 7, Data: []byte("12345")}, &Write{Number: 7, N: 5}},
		{&Read{Number: 1 << 40, To: make([]byte, 300)}, &Read{Number: 1 << 40, N: 300}},
		{&Close{Number: 3, All: true}, nil},
		{&Close{Number: 3, All: true, Reset: true}, nil},
	} {
		if c.want == nil {
			c.want = c.is
		}
		got, err := decode(c.is.Encode(nil))
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%+v came back as %+v, %v", c.is, got, err)
		}
	}
	for _, b := range [][]byte{nil, {9}, {dialKind}, {listenKind, 0}, {closeKind, 1, 4}, {writeKind, 1, 0xff, 0xff, 0xff, 0xff, 0x7f}, append((&Close{Number: 1}).Encode(nil), 0)} {
		if c, err := decode(b); err == nil {
			t.Errorf("% x is %+v", b, c)
		}
	}
}

// FuzzDecode: what is decoded is encoded as it was, and nothing else is a call.
func FuzzDecode(f *testing.F) {
	for _, c := range []hostnic.Call{&Dial{To: netip.MustParseAddrPort("10.0.0.2:80")}, &Listen{Port: 443, On: true}, &Write{Number: 7, N: 5}, &Read{Number: 8, N: 9}, &Close{Number: 3, Reset: true}} {
		f.Add(c.Encode(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := decode(b)
		if err != nil {
			return
		}
		again, err := decode(c.Encode(nil))
		if err != nil || !reflect.DeepEqual(again, c) {
			t.Errorf("% x is %+v, then %+v, %v", b, c, again, err)
		}
		if n := len(c.Encode(nil)); n > len(b) {
			t.Errorf("% x is written as %d bytes", b, n)
		}
	})
}

// A document that cannot be meant is refused with the reason.
func TestSection(t *testing.T) {
	cfg := &hostnic.Config{Name: "h", Addr: netip.MustParseAddr("10.0.0.1"), MAC: wire.MAC{2}, Seed: 5}
	good := Section{Congestion: "cubic", MinRTO: 1e8, MSS: 1000, ReceiveBuffer: 6000, Connections: 4, Services: []Service{{80, "http"}, {81, "http"}}}
	o, err := good.Options(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c := o.(stack.Config)
	if s := c.Streams; s == nil || s.Most != 4 || s.TCP.ReceiveBuffer != 6000 || s.TCP.MaxReceive != 6000 || s.TCP.MSS != 1000 || s.TCP.Lengths || c.Seed != 5 {
		t.Errorf("%+v", c)
	}
	for name, change := range map[string]func(s *Section, c *hostnic.Config){
		"dctcp without marks":    func(s *Section, _ *hostnic.Config) { s.Congestion = "dctcp" },
		"two at a port":          func(s *Section, _ *hostnic.Config) { s.Services = []Service{{80, "http"}, {80, "echo"}} },
		"a buffer of a segment":  func(s *Section, _ *hostnic.Config) { s.ReceiveBuffer = 1000 },
		"an address of IPv6":     func(_ *Section, c *hostnic.Config) { c.Addr = netip.MustParseAddr("fd00::1") },
		"a timeout that is none": func(s *Section, _ *hostnic.Config) { s.MinRTO = 0 },
	} {
		s, at := good, *cfg
		change(&s, &at)
		if o, err := s.Options(&at); err == nil {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

// Of a host with connections there is no image, and who asks for one gets the reason.
func TestNoImage(t *testing.T) {
	a, err := frame.NewArena(make([]byte, 64*2048), 2048, frame.DefaultHeadroom)
	if err != nil {
		t.Fatal(err)
	}
	pool := frame.NewPool(a)
	for _, on := range []bool{false, true} {
		c := agent.Config{NIC: hostnic.Config{Name: "h", MAC: wire.MAC{2}, Addr: netip.MustParseAddr("10.0.0.1"), Rate: 1e9, Payload: 1000, BaseRTT: frame.Millisecond,
			Stack: &hostnic.StackConfig{Bits: 24, Port: agent.Port}}, Transport: transport.Config{Recovery: transport.GoBackN, RTOLow: frame.Millisecond, RTOHigh: frame.Millisecond, N: 3}}
		if on {
			s := Section{Congestion: "cubic", MinRTO: 1e8, MSS: 1000, ReceiveBuffer: 6000, Connections: 4}
			o, err := s.Options(&c.NIC)
			if err != nil {
				t.Fatal(err)
			}
			c.NIC.Options = c.NIC.Options.With(Name, o)
		}
		h, err := agent.New(&c, pool)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.AppendImage(nil, pool, func(b []byte) int { return len(b) }, func(func(frame.Ref)) {}); (err != nil) != on {
			t.Errorf("with connections of TCP %v: %v", on, err)
		}
	}
}
