package capture

import (
	"errors"
	"strings"
	"testing"

	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

var (
	tcp4 = wt.Frame(wt.Eth(wt.MAC(2), wt.MAC(1)), wt.IPv4("10.1.0.1", "10.2.0.2"), wt.TCP(wire.TCPFields{SrcPort: 1000, DstPort: 80}))
	udp4 = wt.Frame(wt.Eth(wt.MAC(2), wt.MAC(1)), wt.VLAN(7, 3), wt.IPv4("10.1.0.1", "10.2.0.2"), wt.UDP(53, 4791))
	udp6 = wt.Frame(wt.Eth(wt.MAC(2), wt.MAC(1)), wt.IPv6("2001:db8::1", "2001:db8:0:1::2"), wt.Ext(wire.ProtoDstOpts, make([]byte, 6)), wt.UDP(9, 53), wt.Zeros(500))
	icmp = wt.Frame(wt.Eth(wt.MAC(1), wt.MAC(2)), wt.QinQ(100, 0), wt.VLAN(7, 0), wt.IPv4("10.2.0.2", "10.1.0.1"), wt.ICMP(8, 0, 0))
	arp  = append([]byte("\xff\xff\xff\xff\xff\xff\x02\x00\x00\x00\x00\x01\x08\x06\x00\x01\x08\x00\x06\x04\x00\x01"+
		"\x02\x00\x00\x00\x00\x01\x0a\x01\x00\x01\x00\x00\x00\x00\x00\x00\x0a\x02\x00\x02"), make([]byte, 18)...)
	pfc = append([]byte("\x01\x80\xc2\x00\x00\x01\x02\x00\x00\x00\x00\x01\x88\x08\x01\x01"), make([]byte, 44)...)
)

func TestFilter(t *testing.T) {
	frames := map[string][]byte{"tcp4": tcp4, "udp4": udp4, "udp6": udp6, "icmp": icmp, "arp": arp, "pfc": pfc, "cut": tcp4[:20], "tiny": {1, 2, 3}}
	for _, c := range []struct{ expr, want string }{
		{"ip", "tcp4 udp4 icmp cut"},
		{"ip6", "udp6"},
		{"arp", "arp"},
		{"tcp", "tcp4"},
		{"udp", "udp4 udp6"},
		{"icmp", "icmp"},
		{"icmp6", ""},
		{"roce", "udp4"},
		{"pfc", "pfc"},
		{"host 10.1.0.1", "tcp4 udp4 icmp arp"},
		{"src host 10.1.0.1", "tcp4 udp4 arp"},
		{"dst 10.1.0.1", "icmp"},
		{"net 10.2.0.0/16", "tcp4 udp4 icmp arp"},
		{"src net 10.2.0.0/16", "icmp"},
		{"net 0.0.0.0/0", "tcp4 udp4 icmp arp"},
		{"host 2001:db8::1", "udp6"},
		{"dst net 2001:db8:0:1::/64", "udp6"},
		{"src net 2001:db8:0:1::/64", ""},
		{"net ::/0", "udp6"},
		{"port 53", "udp4 udp6"},
		{"src port 53", "udp4"},
		{"udp dst port 53", "udp6"},
		{"tcp port 53", ""},
		{"portrange 80-1000", "tcp4"},
		{"dst portrange 50-60", "udp6"},
		{"proto 17", "udp4 udp6"},
		{"proto 0x06", "tcp4"},
		{"ether proto 0x8808", "pfc"},
		{"ether src 02:00:00:00:00:01", "tcp4 udp4 udp6 arp pfc cut"},
		{"ether dst 02:00:00:00:00:01", "icmp"},
		{"ether host 02:00:00:00:00:02", "tcp4 udp4 udp6 icmp cut"},
		{"broadcast", "arp"},
		{"ether multicast", "arp pfc"},
		{"vlan", "udp4 icmp"},
		{"vlan 7", "udp4 icmp"},
		{"vlan 100", "icmp"},
		{"vlan 8", ""},
		{"vlan and tcp", ""},
		{"greater 500", "udp6"},
		{"less 20", "cut tiny"},
		{"not ip", "udp6 arp pfc tiny"},
		{"! (ip or arp)", "udp6 pfc tiny"},
		{"tcp or udp and port 53", "udp4 udp6"}, // from left to right
		{"tcp or (udp and port 53)", "tcp4 udp4 udp6"},
		{"tcp||udp&&!vlan", "tcp4 udp6"},
		{"not tcp and not udp and ip", "icmp cut"},
	} {
		f, err := ParseFilter(c.expr)
		if err != nil {
			t.Errorf("%s: %v", c.expr, err)
			continue
		}
		for name, b := range frames {
			want := strings.Contains(" "+c.want+" ", " "+name+" ")
			if got := f.Match(b, len(b)); got != want {
				t.Errorf("%s: frame %s: %v, want %v", c.expr, name, got, want)
			}
		}
	}
	if f, err := ParseFilter("  "); f != nil || err != nil {
		t.Errorf("an empty expression gives %v, %v", f, err)
	}
}

// An error points at the word that is wrong.
func TestFilterErrors(t *testing.T) {
	for _, c := range []struct {
		expr string
		pos  int
		why  string
	}{
		{"hots 10.0.0.1", 0, "not known"},
		{"host", 4, "IP address is missing"},
		{"host example.org", 5, "not resolved"},
		{"tcp and host 10.0.0.300", 13, "not an IP address"},
		{"net 10.1.0.1/16", 4, "10.1.0.0/16"},
		{"net 10.1.0.0", 4, "not a prefix"},
		{"port 70000", 5, "0 to 65535"},
		{"portrange 9-3", 10, "not a range"},
		{"tcp udp", 4, "join"},
		{"(tcp or udp", 0, "not closed"},
		{"tcp)", 3, "not expected"},
		{"(tcp udp)", 5, "join"},
		{"tcp and", 7, "missing"},
		{"not", 3, "missing"},
		{"ether 02:00:00:00:00:01", 6, "followed by"},
		{"ether host 02:00", 11, "not a MAC"},
		{"src port", 8, "missing"},
		{"tcp src 10.0.0.1", 8, "port"},
		{"vlan 5000", 5, "4095"},
		{"greater -1", 8, "not a length"},
		{strings.Repeat("(", 100) + "tcp", 65, "levels"},
		{strings.Repeat("tcp or ", 600) + "tcp", -1, "terms"},
	} {
		_, err := ParseFilter(c.expr)
		var fe *FilterError
		if !errors.As(err, &fe) {
			t.Errorf("%s: %v, want a FilterError", c.expr, err)
			continue
		}
		if c.pos >= 0 && fe.Pos != c.pos || !strings.Contains(fe.Why, c.why) {
			t.Errorf("%s: at %d %q, want at %d with %q", c.expr, fe.Pos, fe.Why, c.pos, c.why)
		}
	}
}

func FuzzParseFilter(f *testing.F) {
	for _, s := range []string{"host 10.0.0.1 and not (tcp port 80 or vlan 7)", "ether src 02:00:00:00:00:01", "net ::/0 || less 0x40", "portrange 1-2&&pfc", "((", "not not roce"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		fl, err := ParseFilter(s)
		if err != nil {
			var fe *FilterError
			if !errors.As(err, &fe) || fe.Pos < 0 || fe.Pos > len(s) {
				t.Fatalf("%q: %v", s, err)
			}
			return
		}
		if fl != nil {
			for _, b := range [][]byte{tcp4, udp6, arp, pfc, nil} {
				n, err := ParseFilter("not (" + s + ")")
				if err == nil && n.Match(b, len(b)) == fl.Match(b, len(b)) {
					t.Fatalf("%q and its negation agree", s)
				}
			}
		}
	})
}

func FuzzMatch(f *testing.F) {
	for _, b := range [][]byte{tcp4, udp4, udp6, icmp, arp, pfc} {
		f.Add(b)
	}
	every, err := ParseFilter("host 1.2.3.4 or host ::1 or port 9 or vlan 9 or roce or pfc or proto 200 or ether src 00:00:00:00:00:09 or broadcast")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) { every.Match(b, len(b)) })
}

func BenchmarkFilter(b *testing.B) {
	f, err := ParseFilter("udp and dst port 4791 and net 10.0.0.0/8 and not vlan 8")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		f.Match(udp4, len(udp4))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N), "ns/frame")
}
