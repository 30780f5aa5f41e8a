package wiretest_test

import (
	"strings"
	"testing"

	"gswitch/wire"
	wt "gswitch/wire/wiretest"
)

// What is read is said again in the same words.
func TestWordsOfWhatIsRead(t *testing.T) {
	for _, line := range []string{
		"h1 > h2, 10.0.0.1 > 10.0.0.2, UDP 1000 > 2000, 1000 bytes",
		"h1 > h2, vlan 10 priority 3, 10.0.0.1 > 10.0.0.2 ttl 9 dscp 24 ECT(0), UDP 1000 > 2000, 64 bytes",
		"h1 > h258, 10.0.0.1 > 10.0.0.2 CE, UDP 49152 > RoCE, SEND middle qp 5 psn 77, 1500 bytes",
		"h1 > h2, escaped for 2 hops, class 3, 10.0.0.1 > 10.0.0.2, UDP 1000 > 2000, 104 bytes",
		"h3 > all, ARP: who has 10.0.0.2? tell 10.0.0.3",
		"h2 > h3, ARP: 10.0.0.2 is at h2",
		"h1 > h2, 10.0.0.1 > 10.0.0.2, echo request 7, 98 bytes",
		"PFC: class 3 waits 65535 quanta, class 4 goes on",
		"token: 10.0.0.1 > 10.0.0.2, UDP 1000 > 4791, hops 2",
		"h1 > 02:aa:00:00:00:01, 10.0.0.1 > 10.0.0.2, UDP 1 > 2, 60 bytes",
	} {
		b, err := wt.Read(line, nil)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		if said := wt.Words(b, len(b)); said != line {
			t.Errorf("%s\n is said to be\n%s", line, said)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	for line, want := range map[string]string{
		"h1 h2, 60 bytes":                  "one > other",
		"h1 > x, 60 bytes":                 "no station",
		"h1 > h2, 10.0.0.1 > 10.0.0.2 big": "no part of an IP header",
		"h1 > h2, 10.0.0.1 > nowhere":      "nowhere",
		"h1 > h2, something":               "not understood",
		"h1 > h2, vlan 9999 priority 1":    "12 bits",
		"PFC: class 9 goes on":             "3 bits",
		"pause: class 3":                   "no control frame",
	} {
		if b, err := wt.Read(line, map[string]wire.MAC{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, % x; want %q", line, err, b, want)
		}
	}
}

// Any bytes are said in some words.
func FuzzWords(f *testing.F) {
	for _, line := range []string{"h1 > h2, 10.0.0.1 > 10.0.0.2, UDP 49152 > RoCE, SEND middle qp 5 psn 77, 100 bytes", "PFC: class 3 waits 65535 quanta", "h3 > all, ARP: who has 10.0.0.2? tell 10.0.0.3"} {
		b, _ := wt.Read(line, nil)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < 2000 && wt.Words(b, len(b)) == "" {
			t.Error("no words")
		}
	})
}
