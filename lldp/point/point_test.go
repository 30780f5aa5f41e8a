package point

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"gswitch/capture/capturetest"
	"gswitch/frame"
	"gswitch/lldp"
	"gswitch/vswitch"
	st "gswitch/vswitch/switchtest"
	"gswitch/wire"
)

// named is a bridge of two ports that takes part.
func named(name string, last byte) *vswitch.Config {
	cfg := st.Base(2)
	cfg.Name, cfg.MAC[5] = name, last
	cfg.Options = vswitch.Options{Name: Options{Interval: 30 * frame.Second, Hold: 4, Description: "test"}}
	return cfg
}

// values are what a switch counts at a port, those with labels by name and labels.
func values(r *st.Rig, port uint16) map[string]float64 {
	v := map[string]float64{}
	for _, n := range r.Switch.Nodes {
		n.ReadFeatures(func(f *vswitch.Feature, c int, at uint16, x float64, labels ...string) {
			if f.Name == Name && at == port {
				v[strings.Join(append([]string{f.Counters[c].Name}, labels...), " ")] = x
			}
		})
	}
	return v
}

func wantValues(t *testing.T, what string, r *st.Rig, port uint16, want map[string]float64) {
	t.Helper()
	got := values(r, port)
	for k, x := range want {
		if y, there := got[k]; !there || y != x {
			t.Errorf("%s: %s is %v, want %v; there are\n%v", what, k, y, x, got)
		}
	}
}

// run lets seconds pass on both switches, port 1 of one at port 0 of the other.
func run(a, b *st.Rig, seconds int) {
	for range seconds {
		a.Advance(frame.Second)
		b.Advance(frame.Second)
		toB, toA := a.Out(1), b.Out(0)
		b.In(0, toB...)
		a.In(1, toA...)
		a.Out(0)
		b.Out(1)
	}
}

// neighborValue is the last counter, of the neighbours that are known.
func neighborValue(labels ...string) string {
	return strings.Join(append([]string{"lldp_ttl_seconds"}, labels...), " ")
}

// Two switches learn each other by the ports between them, announce changes, and
// remove a neighbour that sends no more, says that it leaves, or loses the link.
func TestTwoSwitches(t *testing.T) {
	left, right := named("left", 1), named("right", 2)
	left.Ports[0].Addresses = nil
	right.Loopbacks = append(right.Loopbacks, netip.MustParseAddr("192.0.2.1"))
	a, b := st.New(t, left), st.New(t, right)
	run(a, b, 10)
	ofRight := neighborValue("right", "a", "right/a", "02:aa:00:00:00:02", "192.0.2.1", "bridge,router", "test")
	wantValues(t, "left", a, 1, map[string]float64{"lldp_neighbors": 1, "lldp_received_total new": 1, "lldp_received_total malformed": 0, "lldp_sent_total": 1 + fastFrames})
	wantValues(t, "right", b, 0, map[string]float64{"lldp_neighbors": 1, neighborValue("left", "b", "left/b", "02:aa:00:00:00:01", "02:aa:00:00:00:01", "bridge", "test"): values(b, 0)["lldp_ttl_seconds left b left/b 02:aa:00:00:00:01 02:aa:00:00:00:01 bridge test"]})
	if ttl := values(a, 1)[ofRight]; ttl < 110 || ttl > 121 {
		t.Errorf("right is known for %v s, want nearly 121: %v", ttl, values(a, 1))
	}
	wantValues(t, "where nobody is", a, 0, map[string]float64{"lldp_neighbors": 0, "lldp_sent_total": 1})

	sent := values(a, 1)["lldp_sent_total"]
	run(a, b, 60)
	wantValues(t, "two intervals later", a, 1, map[string]float64{"lldp_sent_total": sent + 2})

	renamed := *right
	renamed.Name = "other"
	b.Apply(&renamed)
	run(a, b, 1)
	if v := values(a, 1); v["lldp_neighbors"] != 1 || v[ofRight] != 0 || v[strings.ReplaceAll(ofRight, "right", "other")] == 0 {
		t.Errorf("after a new name: %v", v)
	}

	off := renamed
	off.Options = nil
	b.Apply(&off)
	run(a, b, 2)
	wantValues(t, "turned off", a, 1, map[string]float64{"lldp_neighbors": 0, "lldp_received_total leaving": 1, "lldp_forgotten_total ttl": 0})
	if n := len(values(b, 0)); n != 0 {
		t.Errorf("a switch without it has %d values", n)
	}

	b.Apply(&renamed)
	run(a, b, 2)
	b.SetLink(0, false)
	run(a, b, 119)
	wantValues(t, "before the TTL has run out", a, 1, map[string]float64{"lldp_neighbors": 1})
	wantValues(t, "without a link", b, 0, map[string]float64{"lldp_neighbors": 0, "lldp_forgotten_total link": 1})
	run(a, b, 10)
	wantValues(t, "after the TTL", a, 1, map[string]float64{"lldp_neighbors": 0, "lldp_forgotten_total ttl": 1})
	b.SetLink(0, true)
	run(a, b, 2)
	wantValues(t, "with a link again", a, 1, map[string]float64{"lldp_neighbors": 1})

	run(a, b, 10)
	sent = values(b, 0)["lldp_sent_total"]
	for range 30 {
		if run(a, b, 1); values(b, 0)["lldp_sent_total"] > sent {
			break
		}
	}
	b.SetLink(0, false)
	run(a, b, 2)
	b.SetLink(0, true)
	run(a, b, 1)
	wantValues(t, "with a link that was gone for two seconds", b, 0, map[string]float64{"lldp_sent_total": sent + 2})
}

// from is a frame of a neighbour.
func from(last byte, ttl uint16) []byte {
	mac := st.HostMAC(int(last))
	u := lldp.Unit{Src: mac, Chassis: lldp.ID{Kind: lldp.ChassisMAC, Value: mac[:]}, Port: lldp.ID{Kind: lldp.PortMAC, Value: mac[:]}, TTL: ttl}
	b := make([]byte, 200)
	return b[:u.Encode(b)]
}

// Garbage, floods and unknown senders are counted, cost what they may, and leave nothing
// else behind.
func TestHostileNeighbours(t *testing.T) {
	r := st.New(t, named("s", 1))
	r.Advance(frame.Second)
	for at := range uint16(2) {
		r.Out(at)
	}
	damaged, elsewhere, short := from(1, 60), from(1, 60), from(1, 60)
	damaged[15], elsewhere[5] = 0xff, 0x03
	r.In(0, damaged, elsewhere, short[:wire.EthernetLen])
	for i := range byte(10) {
		r.In(0, from(i, 60))
	}
	wantValues(t, "ten in four places", r, 0, map[string]float64{"lldp_neighbors": maxNeighbors, "lldp_received_total new": maxNeighbors,
		"lldp_received_total too-many": 10 - maxNeighbors, "lldp_received_total malformed": 2, "lldp_received_total over-rate": 0})
	if n := r.Counts(0).Drops[frame.ReservedMulticast]; n != 1 {
		t.Errorf("%d frames to another address are dropped, want 1", n)
	}
	for range 50 {
		r.In(0, from(0, 60))
	}
	wantValues(t, "a flood", r, 0, map[string]float64{"lldp_received_total refreshed": maxFrames - 12, "lldp_received_total over-rate": 50 - (maxFrames - 12)})
	r.None(0) // whatever comes, an answer waits for the next tick
	r.Advance(frame.Second)
	r.One(0)
	r.None(1)
	r.In(0, from(0, 0), from(9, 0))
	wantValues(t, "leave, of one who was never known, too", r, 0, map[string]float64{"lldp_neighbors": maxNeighbors - 1, "lldp_received_total leaving": 2})
}

// Only ports that are named take part.
func TestPorts(t *testing.T) {
	cfg := named("s", 1)
	cfg.Options = vswitch.Options{Name: Options{Interval: frame.Second, Hold: 1, Ports: []string{"b"}}}
	r := st.New(t, cfg)
	r.Advance(1)
	r.None(0)
	r.One(1)
	r.In(0, from(1, 60))
	if n := r.Counts(0).Drops[frame.ReservedMulticast]; n != 1 || len(values(r, 0)) != 0 {
		t.Errorf("%d dropped, %v", n, values(r, 0))
	}
	r.Advance(frame.Second)
	var u lldp.Unit
	if !u.Decode(r.One(1)) || u.TTL != 2 || u.Enabled != lldp.Bridge {
		t.Errorf("%+v", u)
	}
}

// Sections say what a switch does, and refuse what it cannot.
func TestSection(t *testing.T) {
	cfg := st.Base(2)
	s := Section{Interval: 30e9, Hold: 4, Ports: []string{"a"}}
	o, err := s.Options(cfg)
	if err != nil || o.(Options).Interval != 30*frame.Second || !slices.Equal(o.(Options).Ports, s.Ports) {
		t.Errorf("%+v, %v", o, err)
	}
	for _, c := range []struct {
		s    Section
		want string
	}{
		{Section{Ports: []string{"a", "z"}}, `ports[1]: there is no port "z"`},
		{Section{Ports: []string{""}}, "no port"},
		{Section{System: strings.Repeat("x", 201)}, "system: is 201 bytes"},
		{Section{Description: strings.Repeat("x", 201)}, "description: is 201 bytes"},
	} {
		if _, err := c.s.Options(cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	cfg.Options = vswitch.Options{Name: Options{Hold: 1}}
	if err := check(cfg); err == nil || !strings.Contains(err.Error(), "interval") {
		t.Error(err)
	}
	if long := (&Options{Interval: 3600 * frame.Second, Hold: 100}).ttl(); long != maxTTL {
		t.Errorf("a TTL of %d s", long)
	}
}

// The longest texts that documents may have fit a frame.
func TestLongTexts(t *testing.T) {
	long := strings.Repeat("x", 300)
	cfg := named(long, 1)
	cfg.Ports[0].Name = long
	cfg.Loopbacks = append(cfg.Loopbacks, netip.MustParseAddr("2001:db8::1"))
	o := Options{Interval: frame.Second, Hold: 1, System: long, Description: long}
	var u lldp.Unit
	if !u.Decode(advertisement(cfg, &cfg.Ports[0], &o)) || len(u.Description) != maxText || lldp.AddressText(u.Management) != "2001:db8::1" {
		t.Errorf("%+v", u)
	}
}

// Wireshark's dissector sees what was meant, in a frame of a switch.
func TestTsharkDissects(t *testing.T) {
	cfg := named("leaf1", 1)
	cfg.Loopbacks = append(cfg.Loopbacks, netip.MustParseAddr("192.0.2.1"))
	r := st.New(t, cfg)
	r.Advance(1)
	frames := [][]byte{r.One(0)}
	frames = append(frames, goodbye(frames[0]))
	lines := capturetest.Dissect(t, frames, "lldp.chassis.id.mac", "lldp.port.id", "lldp.time_to_live", "lldp.port.desc",
		"lldp.tlv.system.name", "lldp.tlv.system.desc", "lldp.tlv.enable_system_cap", "lldp.mgn.addr.ip4", "_ws.malformed", "_ws.expert.message")
	want := []string{"02:aa:00:00:00:01|a|121|leaf1/a|leaf1|test|0x0014|192.0.2.1||", "02:aa:00:00:00:01|a|0|||||||"}
	if !slices.Equal(lines, want) {
		t.Errorf("tshark sees %q, want %q", lines, want)
	}
}
