package gfabric

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"

	"gswitch/fabric"
	"gswitch/fabric/traces"
	"gswitch/mirror"
	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// The copy of the last hop that is lost makes a packet seem lost: why says beside the suspect
// how many copies are missing, and nothing is missing where none is.
func TestWhySaysWhichCopiesAreMissing(t *testing.T) {
	top, err := fabric.Load("leaf-spine:2,3,2", fabric.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := fabric.NewPlan(top)
	if err != nil {
		t.Fatal(err)
	}
	for lost, want := range map[int]string{0: "9 copies of 3 packets\n", 1: "8 copies of 3 packets; 1 copies are missing by their numbers\n"} {
		b := traces.New(plan)
		sessions := map[string]*mirror.Session{}
		for packet := range 3 {
			for hop, name := range []string{"leaf1", "spine1", "leaf2"} {
				i, _ := top.Lookup(name)
				s := sessions[name]
				if s == nil {
					s = &mirror.Session{ID: 1, Src: plan.Nodes[i].Loopback[0], Dst: netip.MustParseAddr("10.0.2.3")}
					sessions[name] = s
				}
				copied := make([]byte, 400)
				original := wt.Frame(wt.Eth(wt.MAC(1), wt.MAC(2)), wt.IPv4("10.0.0.2", "10.0.1.2", wt.TTL(uint8(64-hop)), wt.IPv4With(func(f *wire.IPv4Fields) { f.ID = uint16(packet + 1) })), wt.UDP(1, 2))
				n, _ := s.Copy(copied, original, uint32(len(original)), mirror.Info{})
				if name == "leaf2" && packet == 1 && lost > 0 {
					continue
				}
				b.Add(1, copied[:n])
			}
		}
		b.Finish(1e10)
		for _, ask := range []func(*copiesFlags, *bytes.Buffer) error{
			func(f *copiesFlags, w *bytes.Buffer) error { return whyDrops(f, w, b) },
			func(f *copiesFlags, w *bytes.Buffer) error { return whyProbes(f, w, b) },
			func(f *copiesFlags, w *bytes.Buffer) error { return f.traces(w, b, b.Verdicts()) },
		} {
			var w bytes.Buffer
			if err := ask(&copiesFlags{limit: 10}, &w); err != nil || !strings.HasSuffix(w.String(), want) {
				t.Errorf("%v, %q; want at the end %q", err, w.String(), want)
			}
		}
		if s := b.Suspects(); len(s) != lost {
			t.Errorf("%d lost: %+v", lost, s)
		}
	}
}
