package point

import (
	"bytes"
	"net/netip"
	"testing"

	"gswitch/mirror"
	"gswitch/vswitch"
	st "gswitch/vswitch/switchtest"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

const taken = "probes: {from: [10.0.0.0/24]}"

// guidedBy is a probe from a host to an address by switches.
func guidedBy(from, src, dst string, via ...string) []byte {
	p := mirror.Probe{ID: 9, From: netip.MustParseAddr(from), Src: netip.MustParseAddr(src), Dst: netip.MustParseAddr(dst), Proto: wire.ProtoTCP, SrcPort: 4, DstPort: 80}
	for _, v := range via {
		p.Via = append(p.Via, netip.MustParseAddr(v))
	}
	b := wt.Frame(eth, wt.Payload(p.Append(nil, 1)))
	wire.Ethernet(b).SetEtherType(wire.EtherTypeIPv4)
	return b
}

// A probe goes on as what is in it, as if that had just come, and is copied as it came;
// several headers for one switch come off at once; at its end it is dropped without an
// answer. No other sender may send any, and tunnels that ask for no trace are not touched.
func TestProbes(t *testing.T) {
	const own = "10.10.0.10"
	r := st.New(t, router(t, "sessions: [{name: e, to: 10.0.2.9, everflow: {sample: 0}}]\n"+taken))
	count := func(name string) (n float64) {
		for _, v := range counted(r, name) {
			n += v
		}
		return n
	}
	for _, via := range [][]string{{own}, {own, own}, {own, own, own}} {
		f := guidedBy("10.0.0.7", "10.66.0.1", "10.0.1.2", via...)
		r.In(0, f)
		got, c := r.One(1), r.One(2)
		want := f[14+20*len(via):]
		if ip := wire.IPv4(got[14:]); ip.TTL() != mirror.ProbeTTL-1 || !ip.ChecksumOK() || !bytes.Equal(got[14+20:], want[20:]) || !bytes.Equal(got[14+12:14+20], want[12:20]) {
			t.Errorf("by %v: sent %x, came %x", via, want, got)
		}
		if u, ok := mirror.Unwrap(c); !ok || !bytes.Equal(u.Original[14:], f[14:]) {
			t.Errorf("by %v: the copy is of %x", via, u.Original)
		}
	}
	if n := count("watch_probes_total"); n != 6 {
		t.Errorf("%v headers were taken off, want 6", n)
	}
	nothing := func(what string, f []byte, counter string) {
		t.Helper()
		before, ports := count(counter), r.Drops()
		r.In(0, f)
		if a, b := len(r.Out(0)), len(r.Out(1)); a+b != 0 {
			t.Errorf("%s: %d frames are sent back and %d on", what, a, b)
		}
		r.Out(2) // the copy
		if n := count(counter) - before; n != 1 {
			t.Errorf("%s: %s grew by %v; %v", what, counter, n, ports)
		}
	}
	nothing("the end", guidedBy("10.0.0.7", "10.0.0.7", own, own), "watch_ended_probes_total")
	nothing("an unknown source", guidedBy("10.66.0.1", "10.0.0.7", "10.0.1.2", own), "watch_refused_probes_total")
	f := guidedBy("10.0.0.7", "10.0.0.7", "10.0.1.2", own, own)
	copy(f[14+20+12:], []byte{10, 66, 0, 1})
	wire.IPv4(f[34:]).UpdateChecksum()
	nothing("an unknown source in the tunnel of another", f, "watch_refused_probes_total")

	f = guidedBy("10.0.0.7", "10.66.0.1", "10.0.1.2", own)
	ip := wire.IPv4(f[14:])
	ip[1] = 0
	ip.UpdateChecksum()
	before := count("watch_probes_total") + count("watch_refused_probes_total")
	r.In(0, f)
	if out := r.Out(1); len(out) != 0 || count("watch_probes_total")+count("watch_refused_probes_total") != before {
		t.Errorf("a tunnel that is none of probes: %x", out)
	}
	r.Out(0)
	r.Out(2)
}

// A switch that takes no probes drops them as it does any frame without a receiver.
func TestNoProbes(t *testing.T) {
	r := st.New(t, router(t, "sessions: [{name: e, to: 10.0.2.9, everflow: {sample: 0}}]"))
	r.In(0, guidedBy("10.0.0.7", "10.0.0.7", "10.0.1.2", "10.10.0.10"))
	if out := r.Out(1); len(out) != 0 {
		t.Errorf("%x", out)
	}
	r.Out(0)
	r.Out(2)
}

func TestProbesAreChecked(t *testing.T) {
	cfg := router(t, "")
	for text, want := range map[string]string{
		"probes: {from: [fd00::/64]}": "probes.from: fd00::/64 is no network of IPv4",
		"probes: {from: []}":          "probes.from: say which networks probes may come from",
	} {
		if _, err := parse(cfg, text); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if _, err := parse(new(vswitch.Config), taken); err == nil {
		t.Error("a switch without an address takes probes")
	}
}
