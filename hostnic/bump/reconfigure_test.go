package bump

import (
	"testing"

	"gswitch/frame"
	"gswitch/transport"
	"gswitch/wire"
)

// New rules are for new channels; a packet on its way in one that is open is
// not disturbed; what stands in open channels cannot change.
func TestReconfigure(t *testing.T) {
	g := newRig(t, nil)
	g.meet(udp(0, 8))
	for n := range uint64(20) {
		g.send(0, udp(n, 1000).bytes())
	}
	c := config(t, transport.IRN)
	c.NIC.Rate, c.Queue, c.Idle = 5e8, 50_000, 2*frame.Second
	c.Default.CC, c.Default.New = "dctcp", factory(t, "dctcp")
	c.Rules = []Rule{{Proto: wire.ProtoUDP, PortLo: 53, PortHi: 53, Flows: Pass}}
	change := &Configure{Bump: g.b[0], Config: &c, Document: []byte("idle: 1s")}
	back, err := DecodeCommand(change.Encode(nil))
	if err != nil || string(back.Document) != "idle: 1s" {
		t.Errorf("the command came back with %q, %v", back.Document, err)
	}
	if change.Do(g.now); change.Refused != nil {
		t.Fatal(change.Refused)
	}
	g.run(20*frame.Millisecond, nil)
	if len(g.got[1]) != 20 || numberOf(g.got[1][19]) != 19 {
		t.Errorf("%d of 20 packets came", len(g.got[1]))
	}
	var cc []string
	for _, ch := range g.b[0].Channels(nil) {
		cc = append(cc, ch.CC)
	}
	if len(cc) != 1 || cc[0] != "none" {
		t.Errorf("the open channel has %v", cc)
	}
	if got := g.b[0].Config(); got.Queue != 50_000 || got.Mark != 25_000 || g.b[0].NIC().Config().Rate != 5e8 {
		t.Errorf("in force are %+v", got)
	}

	name, other := udp(0, 8), udp(0, 8)
	name.dport, other.dport = 53, 54
	passed, carried := g.b[0].count.PassedOut, g.b[0].count.Carried
	g.send(0, name.bytes())
	g.run(5*frame.Millisecond, nil)
	if g.b[0].count.PassedOut != passed+1 || g.b[0].count.Carried != carried {
		t.Errorf("what the new rule passes was carried: %+v", g.b[0].count)
	}
	g.send(0, other.bytes())
	g.run(5*frame.Millisecond, nil)
	cc = cc[:0]
	for _, ch := range g.b[0].Channels(nil) {
		cc = append(cc, ch.CC)
	}
	if len(cc) != 2 || cc[0] != "none" || cc[1] != "dctcp" {
		t.Errorf("channels have %v, want none and dctcp", cc)
	}

	before := g.b[0].Config()
	for what, change := range map[string]func(*Config){
		"MTU":      func(c *Config) { c.MTU = 1400 },
		"MAC":      func(c *Config) { c.MAC = wire.MAC{2, 3} },
		"channels": func(c *Config) { c.Channels = 7 },
		"queue":    func(c *Config) { c.Mark = c.Queue + 1 },
		"timeouts": func(c *Config) { c.Transport.RTOLow = 2 * c.Transport.RTOHigh },
		"rate":     func(c *Config) { c.NIC.Rate = 0 },
	} {
		bad := c
		change(&bad)
		if err := g.b[0].Reconfigure(g.now, &bad); err == nil {
			t.Errorf("%s: no error", what)
		}
		if after := g.b[0].Config(); after.MTU != before.MTU || after.Mark != before.Mark || after.Channels != before.Channels || after.NIC.Rate != before.NIC.Rate {
			t.Errorf("%s: refused, and yet %+v", what, after)
		}
	}
	g.idle()
}
