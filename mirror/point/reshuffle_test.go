package point

import (
	"bytes"
	"fmt"
	"net/netip"
	"testing"

	"gswitch/mirror"
	"gswitch/vswitch"
	st "gswitch/vswitch/switchtest"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

const reshuffle = "reshuffle: [{vip: 10.255.0.1, to: [10.0.2.9, 10.0.2.8, 10.0.2.7], from: [10.10.0.0/24]}]"

// reshuffler is router with three analyzers behind port 2.
func reshuffler(t testing.TB, watch string) *vswitch.Config {
	cfg := router(t, watch)
	for i := range 2 {
		cfg.Neighbors = append(cfg.Neighbors, vswitch.StaticNeighbor{Addr: netip.AddrFrom4([4]byte{10, 0, 2, byte(7 + i)}), MAC: st.HostMAC(7 + i)})
	}
	return cfg
}

// foreign is the copy of a packet to the virtual address that another switch made.
func foreign(t testing.TB, from string, f mirror.Format, original []byte) []byte {
	t.Helper()
	s := mirror.Session{ID: 1, Src: netip.MustParseAddr(from), Dst: netip.MustParseAddr("10.255.0.1"), Format: f}
	b := make([]byte, 1600)
	n, _ := s.Copy(b, original, uint32(len(original)), mirror.Info{})
	copy(b, wt.Frame(wt.Eth(st.SelfMAC, st.HostMAC(2)))[:12])
	return b[:n]
}

// port80 is a packet of a flow, behind these headers.
func port80(i int, outer ...wt.Layer) []byte {
	return wt.Frame(append(append([]wt.Layer{eth}, outer...), wt.IPv4("10.0.0.1", fmt.Sprintf("10.0.1.%d", 1+i%200)), wt.TCP(wire.TCPFields{SrcPort: uint16(1000 + i), DstPort: 80, Flags: wire.TCPSyn}), wt.Zeros(40))...)
}

// Copies to a virtual address go to one of three analyzers, as they are but for the
// address: all of a packet to one, whichever switch made them, in whichever format, and
// to the same one as those that the switch makes itself. What comes from elsewhere is
// dropped, what is no copy is not touched.
func TestReshuffle(t *testing.T) {
	r := st.New(t, reshuffler(t, "sessions: [{name: e, to: 10.255.0.1, everflow: {sample: 0}}]\n"+reshuffle))
	at := map[string]int{}
	for i := range 60 {
		own := port80(i)
		var dst string
		for k, c := range [][]byte{foreign(t, "10.10.0.11", mirror.ERSPAN3, own), foreign(t, "10.10.0.12", mirror.GRE, own), own,
			foreign(t, "10.10.0.13", mirror.ERSPAN2, port80(i, wt.IPv4("10.0.0.50", "10.0.1.50")))} {
			r.In(1, c)
			got := r.One(2)
			ip := wire.IPv4(got[14:])
			to := netip.AddrFrom4([4]byte(ip[16:20])).String()
			if k == 0 {
				dst = to
				at[dst]++
			}
			if to != dst || !ip.ChecksumOK() || ip.TTL() != 63 {
				t.Fatalf("packet %d: copy %d goes to %s, others to %s; %x", i, k, to, dst, got)
			}
			if k != 2 && !bytes.Equal(got[34:], c[34:]) {
				t.Fatalf("copy %d of packet %d came as %x, left as %x", k, i, c, got)
			}
			if u, ok := mirror.Unwrap(got); !ok || k == 2 && u.Switch.String() != "10.10.0.10" {
				t.Fatalf("%+v", u)
			}
		}
		r.Out(0)
		r.Out(1)
	}
	if len(at) != 3 || at["10.0.2.9"] < 8 || at["10.0.2.8"] < 8 || at["10.0.2.7"] < 8 {
		t.Errorf("60 packets are divided %v", at)
	}
	sum := 0.0
	for _, n := range counted(r, "watch_reshuffled_copies_total") {
		sum += n
	}
	if sum != 240 {
		t.Errorf("%v copies were counted", sum)
	}

	r.In(1, foreign(t, "10.66.0.1", mirror.ERSPAN3, port80(1)))
	if out := r.Out(2); len(out) != 0 || counted(r, "watch_refused_copies_total")["10.255.0.1"] != 1 {
		t.Errorf("%d copies of an unknown source; %v", len(out), counted(r, "watch_refused_copies_total"))
	}
	r.In(1, wt.Frame(wt.Eth(st.SelfMAC, st.HostMAC(2)), wt.IPv4("10.10.0.11", "10.255.0.1"), wt.UDP(1, 2), wt.Zeros(20)))
	if out := r.Out(2); len(out) != 0 || counted(r, "watch_strange_copies_total")["10.255.0.1"] != 1 {
		t.Errorf("what is no copy went to %d analyzers; %v", len(out), counted(r, "watch_strange_copies_total"))
	}
}

// An analyzer that is taken out leaves its copies to the others, and no other copy moves.
func TestAnalyzerGone(t *testing.T) {
	cfg := reshuffler(t, reshuffle)
	r := st.New(t, cfg)
	where := func() (v []netip.Addr) {
		for i := range 60 {
			r.In(1, foreign(t, "10.10.0.11", mirror.ERSPAN3, port80(i)))
			v = append(v, netip.AddrFrom4([4]byte(r.One(2)[30:34])))
		}
		return v
	}
	before := where()
	cfg = reshuffler(t, "")
	cfg.Options = cfg.Options.With(Name, options(t, cfg, "reshuffle: [{vip: 10.255.0.1, to: [10.0.2.7, 10.0.2.9]}]"))
	r.Apply(cfg)
	gone := netip.MustParseAddr("10.0.2.8")
	for i, a := range where() {
		if before[i] != gone && a != before[i] || a == gone {
			t.Errorf("packet %d moved from %v to %v", i, before[i], a)
		}
	}
	if n := counted(r, "watch_reshuffled_copies_total"); n["10.255.0.1 10.0.2.9"]+n["10.255.0.1 10.0.2.7"] < 90 {
		t.Errorf("the counts do not go on: %v", n)
	}
}

func TestReshuffleErrors(t *testing.T) {
	for watch, want := range map[string]string{
		"reshuffle: []": "say sessions, reshuffle or probes",
		"reshuffle: [{vip: \"fd00::1\", to: [10.0.2.9]}]":                                                                  "reshuffle[0]: fd00::1 is no IPv4 address",
		"reshuffle: [{vip: 10.255.0.1, to: [10.255.0.1]}]":                                                                 "analyzers have others",
		"reshuffle: [{vip: 10.255.0.1, to: [10.0.2.9, 10.0.2.9]}]":                                                         "of its own",
		"sessions: [{name: s, to: 10.255.0.1, format: sflow, one_in: 10}]\nreshuffle: [{vip: 10.255.0.1, to: [10.0.2.9]}]": "sessions[0].to: a datagram of sFlow",
	} {
		_, err := parse(router(t, ""), watch)
		if err == nil || !bytes.Contains([]byte(err.Error()), []byte(want)) {
			t.Errorf("%s: %v, want %s", watch, err, want)
		}
	}
}
