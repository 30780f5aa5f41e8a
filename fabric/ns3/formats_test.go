package ns3

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gswitch/fabric"
)

func read(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func mustTopology(t testing.TB, text string) *Topology {
	t.Helper()
	topo, err := ParseTopology("t", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return topo
}

// pair is two hosts, 0 and 1, at switch 2.
const pair = "3 1 2\n2\n0 2 25Gbps 1000ns 0\n1 2 0.1Tbps 0.002ms 0.01\n"

func TestParseTopology(t *testing.T) {
	topo := mustTopology(t, pair)
	if topo.Nodes != 3 || !topo.IsSwitch[2] || topo.IsSwitch[0] || len(topo.Links) != 2 {
		t.Fatalf("%+v", topo)
	}
	if l := topo.Links[1]; l != (Link{1, 2, 100e9, 2 * time.Microsecond, 0.01}) {
		t.Fatalf("%+v", l)
	}
	f, err := topo.Fabric("My_Net.topo")
	if err != nil {
		t.Fatal(err)
	}
	if f.Name != "my-net-topo" || f.Size() != "2 hosts, 1 switch, 2 links" || f.Links[0].Rate != 25e9 || f.Mode != fabric.L2 {
		t.Fatalf("%+v", f)
	}
}

func TestTopologyErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "t:1: the file ends where numbers of nodes",
		"3 1":                                "t:1: 2 fields instead of the 3",
		"3 4 1\n":                            "t:1: 4 switches among 3 nodes",
		"3 0 1\n":                            "t:1: no switches",
		"3 1 1\n":                            "t:2: the file ends where the numbers of the switches",
		"3 2 1\n2 2\n":                       "t:2: switch 2 is named twice",
		"3 1 1\n7\n":                         "t:2: node 7 is not one of the 3 nodes",
		"3 1 1\n2\n0 2 25G 1us 0\n":          `t:3: rate "25G" is not a number with a unit`,
		"3 1 1\n2\n0 2 nanGbps 1us 0\n":      `t:3: rate "nanGbps"`,
		"3 1 1\n2\n0 2 1bps 1us 0\n":         "below 1Mbps",
		"3 1 1\n2\n0 2 25Gbps 1 0\n":         `delay "1" is not`,
		"3 1 1\n2\n0 2 25Gbps 2s 0\n":        "above 1s",
		"3 1 1\n2\n0 2 25Gbps 1us 1\n":       "not a probability",
		"3 1 1\n2\n0 1 25Gbps 1us 0\n":       "joins the hosts 0 and 1",
		"3 1 1\n2\n2 2 25Gbps 1us 0\n":       "joins node 2 to itself",
		"3 1 1\n2\n\n0 2 25Gbps 1us 0\nx\n":  `t:5: "x" stands after the last link`,
		"3 1 1\n2\n0 2 25Gbps 1us 0 9\n":     "6 fields instead of the 5 of a link",
		"3 1 2\n2\n0 2 25Gbps 1us 0\n":       "t:4: the file ends where a link",
		"99999 1 2\n2\n":                     "number of nodes 99999 is above",
		"3 1 -1\n2\n0 2 25Gbps 1us 0\n":      `number of links "-1" is not a number`,
		"3 1 1\n2\n0 2 -25Gbps 1us 0\n":      "rate",
		"3 1 1\n2\n0x1 2 25Gbps 1us 0\n":     `node "0x1" is not a number`,
		"3 1 1\n2\n0 2 25Gbps 1us 0%\n":      "loss",
		"3 1 1\n2\n0 2 25Gbps 1us\t-0.1\n\n": "loss",
	} {
		_, err := ParseTopology("t", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

func TestParseFlows(t *testing.T) {
	topo := mustTopology(t, pair)
	flows, err := ParseFlows("f", []byte("2\n0 1 3 100 63071 2.000244765\n1 0 3 100 5457 2.000361720\n"), topo)
	if err != nil {
		t.Fatal(err)
	}
	// The second is the published example of a start that is not a whole
	// nanosecond as a binary fraction.
	want := []Flow{{0, 1, 3, 100, 63071, 2000244765}, {1, 0, 3, 100, 5457, 2000361719}}
	if len(flows) != 2 || flows[0] != want[0] || flows[1] != want[1] {
		t.Fatalf("%+v", flows)
	}
}

func TestFlowErrors(t *testing.T) {
	topo := mustTopology(t, pair)
	for text, want := range map[string]string{
		"":                                "f:1: the file ends where the number of flows",
		"x\n":                             "number of flows",
		"1\n0 1 3 100 5\n":                "5 fields instead of the 6",
		"1\n0 2 3 100 5 2\n":              "node 2 is a switch",
		"1\n0 0 3 100 5 2\n":              "host 0 sends to itself",
		"1\n0 9 3 100 5 2\n":              "node 9 is not one of",
		"1\n0 1 8 100 5 2\n":              "priority group 8 is above 7",
		"1\n0 1 3 65536 5 2\n":            "destination port 65536 is above",
		"1\n0 1 3 100 0 2\n":              "0 bytes",
		"1\n0 1 3 100 5 -2\n":             "start",
		"1\n0 1 3 100 5 Inf\n":            "start",
		"1\n0 1 3 100 5 NaN\n":            "start",
		"1\n0 1 3 1 5 2\n0\n":             `f:3: "0" stands after the last flow`,
		"2\n0 1 3 1 5 2\n":                "f:3: the file ends where a flow",
		"1\n0 1 3 1 4294967296 2":         "bytes 4294967296 is above",
		"2\n0 1 3 1 5 2\n0 1 3 1 5 1.9\n": "f:3: the flow starts before",
	} {
		_, err := ParseFlows("f", []byte(text), topo)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

func TestFCTRoundTrip(t *testing.T) {
	want := []FCT{{0x0b000301, 0x0b000101, 10000, 100, 63071, 2000244765, 27725, 25805}, {1, 2, 3, 4, 5, 6, 7, 8}}
	var b bytes.Buffer
	if err := WriteFCT(&b, want); err != nil {
		t.Fatal(err)
	}
	if first, _, _ := strings.Cut(b.String(), "\n"); first != "0b000301 0b000101 10000 100 63071 2000244765 27725 25805" {
		t.Fatal(first)
	}
	got, err := ParseFCT("c", b.Bytes())
	if err != nil || len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Fatal(got, err)
	}
	for text, what := range map[string]string{
		"1 2 3\n":                 "c:1: 3 fields",
		"\n1 2 3 4 5 6 7 g":       "c:2: field 8",
		"1 2 3 4 5 6 7 0":         "alone in the network is 0",
		"123456789 2 3 4 5 6 7 8": "field 1",
		"1 2 65536 4 5 6 7 8":     "field 3",
	} {
		if _, err := ParseFCT("c", []byte(text)); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestAddresses(t *testing.T) {
	for _, n := range []int{0, 1, 255, 256, 375, maxNodes - 1} {
		if NodeOf(AddrOf(n)) != n {
			t.Errorf("node %d has the address %08x of node %d", n, AddrOf(n), NodeOf(AddrOf(n)))
		}
	}
	if AddrOf(3) != 0x0b000301 || AddrOf(300) != 0x0b012c01 {
		t.Errorf("%08x %08x", AddrOf(3), AddrOf(300))
	}
}

func FuzzTopology(f *testing.F) {
	f.Add([]byte(pair))
	f.Add(read(f, "incast16_500K.topo"))
	f.Add([]byte("2 1 1\n1\n0 1 1e9bps 1e9ns 0.999\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		topo, err := ParseTopology("t", data)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "t:") {
				t.Fatalf("error without a line: %v", err)
			}
			return
		}
		if len(topo.IsSwitch) != topo.Nodes {
			t.Fatal("nodes without a kind")
		}
		if len(topo.Links) < 64 {
			topo.Fabric("fuzz") // errors are fine, panics are not
		}
	})
}

func FuzzFlows(f *testing.F) {
	f.Add([]byte("1\n0 1 3 100 5 2.5\n"))
	f.Add([]byte("2\n0 1 3 100 5 2.0000000001\n1 0 0 0 4294967295 1e8\n"))
	f.Add([]byte("1\n0 1 3 100 5 1e-300\n"))
	topo := mustTopology(f, pair)
	f.Fuzz(func(t *testing.T, data []byte) {
		flows, err := ParseFlows("f", data, topo)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f:") {
				t.Fatalf("error without a line: %v", err)
			}
			return
		}
		for _, fl := range flows {
			if fl.Start < 0 || fl.Bytes == 0 || fl.Src == fl.Dst {
				t.Fatalf("%+v", fl)
			}
		}
	})
}

func FuzzFCT(f *testing.F) {
	f.Add([]byte("0b000301 0b000101 10000 100 63071 2000244765 27725 25805\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		flows, err := ParseFCT("c", data)
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := WriteFCT(&b, flows); err != nil {
			t.Fatal(err)
		}
		again, err := ParseFCT("c", b.Bytes())
		if err != nil || len(again) != len(flows) {
			t.Fatalf("what was written does not read: %v", err)
		}
	})
}
