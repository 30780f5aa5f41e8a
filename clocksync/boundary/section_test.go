package boundary

import (
	"strings"
	"testing"
	"time"

	"gswitch/clocksync"
	"gswitch/frame"
	st "gswitch/vswitch/switchtest"
)

func section() *Section {
	return &Section{Times: clocksync.Times{Domain: 83, Interval: 10e6, Uncertainty: clocksync.Uncertainty{Hop: 20e3, Drift: 200}}, Hops: 1, Announce: 1e9}
}

// Documents that say too little, or what cannot be, are refused with the key that is wrong.
func TestSection(t *testing.T) {
	cfg := st.Star()
	first, second := cfg.Ports[0].Name, cfg.Ports[1].Name
	for want, change := range map[string]func(s *Section){
		"parent: say by which port":              func(s *Section) {},
		"root: a root receives no sync messages": func(s *Section) { s.Root, s.Parent = true, first },
		`parent: there is no port`:               func(s *Section) { s.Parent = "nowhere" },
		"second: is the same":                    func(s *Section) { s.Parent, s.Second = first, first },
		"ports[0]: is the port of":               func(s *Section) { s.Parent, s.Ports = first, []string{first} },
		"slaves[1]: there is no":                 func(s *Section) { s.Root, s.Slaves = true, []string{first, "nowhere"} },
		"most_hops: 1 hops":                      func(s *Section) { s.Parent, s.Hops, s.MostHops = first, 2, 1 },
		"more than two intervals":                func(s *Section) { s.Parent, s.Timeout = first, s.Interval },
		"more than four intervals":               func(s *Section) { s.Parent, s.Takeover = first, s.Interval },
	} {
		s := section()
		change(s)
		if _, err := s.Options(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	s := section()
	s.Parent, s.Second, s.Late = first, second, 5
	v, err := s.Options(cfg)
	if err != nil {
		t.Fatal(err)
	}
	o := v.(clocksync.Options)
	if o.Accept != 0 || o.Backup != 1 || o.Transmit.Has(0) || !o.Transmit.Has(1) || !o.Transmit.Has(2) || o.EpsBase != 20*frame.Microsecond || o.EpsBackup != 60*frame.Microsecond || o.Unstamped != 5 {
		t.Errorf("%+v", o)
	}
	s.Late = 0
	if v, _ = s.Options(cfg); v.(clocksync.Options).Unstamped != clocksync.Forever {
		t.Error("messages without a stamp are used")
	}
}

// A root begins with the wall clock, and sends to slaves that know PTP alone without
// what they do not understand.
func TestRootOfSlaves(t *testing.T) {
	cfg := st.Star()
	cfg.Epoch = time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC).UnixNano()
	s := section()
	s.Root, s.Slaves = true, []string{cfg.Ports[1].Name}
	v, err := s.Options(cfg)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Options = cfg.Options.With(Name, v)
	r := st.New(t, cfg)
	r.Advance(20 * frame.Millisecond)
	for port, plain := range map[uint16]bool{0: false, 1: true, 2: false} {
		kinds := map[string]int{}
		for _, f := range messages(t, r, port) {
			name := map[bool]string{true: "sundial", false: "plain"}[f.HasSundial]
			switch f.Type {
			case 0:
				kinds["sync "+name]++
				if d := int64(f.Time.Seconds) - cfg.Epoch/1e9; d < 0 || d > 1 {
					t.Errorf("port %d: %d seconds since 1970", port, f.Time.Seconds)
				}
			case 0xb:
				kinds["announce "+name]++
			}
		}
		if (kinds["sync plain"] > 0) != plain || (kinds["announce plain"] > 0) != plain || (kinds["sync sundial"] > 0) == plain || kinds["announce sundial"] != 0 {
			t.Errorf("port %d: %v", port, kinds)
		}
	}
}
