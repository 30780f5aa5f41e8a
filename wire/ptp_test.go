package wire_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"gswitch/wire"
)

// organisation is one that adds 26 bytes to messages.
var organisation = &wire.PTPOrganisation{ID: [6]byte{0x02, 0x67, 0x73, 0, 0, 1}, Len: 26}

// ptpMessage is a message and the data of the organisation; nil: there are none.
type ptpMessage struct {
	wire.PTPFields
	data []byte
}

func (m *ptpMessage) encode(b []byte) int {
	if m.data == nil {
		return m.Encode(b)
	}
	n, at := m.EncodeWith(b, organisation)
	if n > 0 {
		copy(b[at:], m.data)
	}
	return n
}

func (m *ptpMessage) decode(b []byte) (n int, ok bool) {
	m.data = nil
	n, at, ok := m.DecodeWith(b, organisation)
	if at > 0 {
		m.data = bytes.Clone(b[at : at+organisation.Len])
	}
	return n, ok
}

func ptpSamples() []ptpMessage {
	head := wire.PTPFields{Src: wire.MAC{2, 0, 0, 0, 0, 1}, Domain: 83, Clock: 0x020000fffe000001, Port: 7, Sequence: 4711, LogInterval: 0x7f,
		Time: wire.PTPTime{Seconds: 1<<40 + 5, Nanoseconds: 999_999_999}}
	data, err := hex.DecodeString("000000030000002b0501020000fffe00ff010000000700c0ffee")
	if err != nil {
		panic(err)
	}
	sync, req, resp, announce, plain, follow := head, head, head, head, head, head
	sync.Type, sync.Correction = wire.PTPSync, 12345<<16|0x8000
	req.Type = wire.PTPPdelayReq
	resp.Type, resp.RequestClock, resp.RequestPort, resp.Correction = wire.PTPPdelayResp, 99, 3, -77<<16
	announce.Type, announce.Grandmaster, announce.Steps, announce.Class, announce.Accuracy = wire.PTPAnnounce, 0x020000fffe00ff01, 5, 248, 0x21
	announce.Variance, announce.Priority1, announce.Priority2, announce.Source, announce.UTCOffset = 0xffff, 128, 128, 0xa0, 37
	plain.Type, plain.Flags = wire.PTPSync, wire.PTPTwoStep
	follow.Type = wire.PTPFollowUp
	answer := resp
	answer.Correction = 0
	return []ptpMessage{{sync, data}, {req, nil}, {resp, nil}, {announce, data}, {plain, nil}, {follow, nil}, {answer, data}}
}

func TestPTPKeepsWhatItSays(t *testing.T) {
	for _, want := range ptpSamples() {
		b := make([]byte, 128)
		n := want.encode(b)
		var got ptpMessage
		if k, ok := got.decode(b[:n]); !ok || k > n || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v (%t), want %+v", got, ok, want)
		}
		if n < wire.MinFrame || want.encode(b[:n-1]) != 0 || n > wire.MaxPTP+wire.PTPOrganisationHead+organisation.Len {
			t.Errorf("type %d: %d bytes", want.Type, n)
		}
		for k := range n {
			got.decode(b[:k]) // ends
		}
		wire.SetPTPCorrection(b, 5<<16)
		if _, ok := got.decode(b[:n]); !ok || got.Correction != 5<<16 {
			t.Error("a correction is not read as it is written")
		}
		// Who does not know the organisation passes over its TLV.
		if _, ok := got.Decode(b[:n]); !ok {
			t.Errorf("type %d: the TLV makes the message unreadable", want.Type)
		}
		for _, other := range []wire.PTPOrganisation{{ID: [6]byte{1}, Len: organisation.Len}, {ID: organisation.ID, Len: organisation.Len - 2}} {
			if _, at, ok := got.DecodeWith(b[:n], &other); at != 0 || !ok {
				t.Errorf("type %d: the TLV is taken for that of %v", want.Type, other)
			}
		}
	}
	if (&wire.PTPFields{Type: 5}).Encode(make([]byte, 200)) != 0 {
		t.Error("an unknown type was encoded")
	}
}

// A message costs what its length says: no memory, and one TLV is read.
func TestPTPCostsNothingElse(t *testing.T) {
	sync := ptpSamples()[0]
	b := make([]byte, 256)
	n := sync.encode(b)
	var got wire.PTPFields
	if a := testing.AllocsPerRun(100, func() { sync.EncodeWith(b, organisation); got.DecodeWith(b[:n], organisation) }); a != 0 {
		t.Errorf("a message takes %v allocations", a)
	}
	const tlv = 36
	copy(b[n:], b[n-tlv:n])
	total := n - wire.EthernetLen + tlv
	b[wire.EthernetLen+2], b[wire.EthernetLen+3] = byte(total>>8), byte(total)
	if _, _, ok := got.DecodeWith(b[:n+tlv], organisation); ok {
		t.Error("a TLV that is there twice is taken")
	}
	if _, ok := got.Decode(b[:n+tlv]); !ok {
		t.Error("two TLVs that nobody knows make the message unreadable")
	}
}

// Wireshark's dissector sees what was meant.
func TestTsharkDissectsPTP(t *testing.T) {
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		if os.Getenv("GSWITCH_CI") != "" {
			t.Fatal(err)
		}
		t.Skip("tshark is not installed")
	}
	var fs []format
	for _, f := range ptpSamples() {
		b := make([]byte, 128)
		fs = append(fs, format{b: b[:f.encode(b)]})
	}
	path := filepath.Join(t.TempDir(), "ptp.pcap")
	if err := os.WriteFile(path, pcap(fs), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(tshark, "-r", path, "-T", "json", "-e", "ptp.v2.messagetype", "-e", "ptp.v2.sequenceid", "-e", "ptp.v2.domainnumber",
		"-e", "ptp.v2.an.localstepsremoved", "-e", "ptp.v2.an.grandmasterclockidentity", "-e", "ptp.v2.an.tlvType", "-e", "ptp.v2.an.lengthField", "-e", "ptp.v2.an.tlv.data", "-e", "ptp.v2.messagelength", "-e", "_ws.malformed", "-e", "_ws.expert.severity").Output()
	if err != nil {
		t.Fatal(err)
	}
	var frames []struct {
		Source struct {
			Layers map[string][]string
		} `json:"_source"`
	}
	if err := json.Unmarshal(out, &frames); err != nil {
		t.Fatal(err)
	}
	types := []string{"0x00", "0x02", "0x03", "0x0b", "0x00", "0x08", "0x03"}
	for i, f := range frames {
		l := f.Source.Layers
		if !strings.EqualFold(l["ptp.v2.messagetype"][0], types[i]) || l["ptp.v2.sequenceid"][0] != "4711" || l["ptp.v2.domainnumber"][0] != "83" || l["_ws.malformed"] != nil {
			t.Errorf("frame %d: %v", i+1, l)
		}
		// Sync messages and answers with the time carry the same fields; of these Wireshark
		// looks at no TLV.
		if i == 0 && l["ptp.v2.messagelength"][0] != "80" || i == 6 && l["ptp.v2.messagelength"][0] != "90" {
			t.Errorf("a message with a TLV: %v", l)
		}
		if i == 3 && (l["ptp.v2.an.tlvType"] == nil || l["ptp.v2.an.tlvType"][0] != "32768" || l["ptp.v2.an.lengthField"][0] != "32" || !strings.HasPrefix(strings.ReplaceAll(l["ptp.v2.an.tlv.data"][0], ":", ""),
			"026773000001"+"00000003"+"0000002b"+"05"+"01"+"020000fffe00ff01"+"00000007")) {
			t.Errorf("the data of the organisation: %v", l)
		}
		if i == 3 && (l["ptp.v2.an.localstepsremoved"][0] != "5" || l["ptp.v2.an.grandmasterclockidentity"] == nil) {
			t.Errorf("announce: %v", l)
		}
	}
	if len(frames) != len(types) {
		t.Errorf("%d frames", len(frames))
	}
}

func FuzzPTP(f *testing.F) {
	for _, x := range ptpSamples() {
		b := make([]byte, 128)
		f.Add(b[:x.encode(b)])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var x, y ptpMessage
		if _, ok := x.decode(b); !ok {
			return
		}
		c := make([]byte, 256)
		n := x.encode(c)
		if n == 0 {
			return // a type that is not written
		}
		if _, ok := y.decode(c[:n]); !ok || !reflect.DeepEqual(x, y) {
			t.Fatalf("%+v becomes %+v", x, y)
		}
	})
}
