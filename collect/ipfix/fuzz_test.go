package ipfix

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"
)

// read takes a message apart as a collector does that implements RFC 7011 alone: the
// templates of its sets, and by them the values of each record.
func read(b []byte) (templates map[uint16][][2]uint16, records []map[uint16][]byte, err error) {
	be := binary.BigEndian
	if len(b) < header || be.Uint16(b) != version || int(be.Uint16(b[2:])) != len(b) {
		return nil, nil, errors.New("no message of its length")
	}
	templates = map[uint16][][2]uint16{}
	for b = b[header:]; len(b) > 0; {
		if len(b) < setHeader || int(be.Uint16(b[2:])) < setHeader || int(be.Uint16(b[2:])) > len(b) {
			return nil, nil, errors.New("a set is longer than its message")
		}
		id, set := be.Uint16(b), b[setHeader:be.Uint16(b[2:])]
		b = b[be.Uint16(b[2:]):]
		if id == 2 {
			for k := 4; k < len(set); k += 4 {
				templates[be.Uint16(set)] = append(templates[be.Uint16(set)], [2]uint16{be.Uint16(set[k:]), be.Uint16(set[k+2:])})
			}
			if len(templates[be.Uint16(set)]) != int(be.Uint16(set[2:])) {
				return nil, nil, errors.New("a template has another number of elements")
			}
			continue
		}
		for len(set) > 0 {
			r := map[uint16][]byte{}
			for _, x := range templates[id] {
				n := int(x[1])
				if x[1] == 0xffff && len(set) > 0 { // RFC 7011, section 7
					n, set = int(set[0]), set[1:]
				}
				if n > len(set) {
					return nil, nil, fmt.Errorf("element %d is cut", x[0])
				}
				r[x[0]], set = set[:n], set[n:]
			}
			if len(r) == 0 {
				return nil, nil, errors.New("a set without template")
			}
			records = append(records, r)
		}
	}
	return templates, records, nil
}

// Whatever flows there are, a collector reads what was written.
func FuzzMessages(f *testing.F) {
	f.Add([]byte{10, 0, 0, 1, 10, 0, 0, 2}, uint16(1), uint16(2), uint64(3), int64(4), "s1>s2", uint8(3), uint16(0))
	f.Add([]byte{255, 0, 0, 1, 0, 0, 0, 2}, uint16(0), uint16(65535), ^uint64(0), int64(-1), string(make([]byte, 300)), uint8(40), uint16(900))
	f.Fuzz(func(t *testing.T, addrs []byte, sport, dport uint16, dropped uint64, ms int64, where string, count uint8, room uint16) {
		if len(addrs) != 8 {
			return
		}
		e := Encoder{Domain: 1, Most: LeastMessage + int(room)}
		x := Flow{Src: netip.AddrFrom4([4]byte(addrs)), Dst: netip.AddrFrom4([4]byte(addrs[4:])), SrcPort: sport, DstPort: dport, Protocol: uint8(sport), Dropped: dropped,
			First: time.UnixMilli(ms), Last: time.UnixMilli(ms), Status: Congestion, Where: where}
		v := make([]Flow, count)
		for i := range v {
			v[i] = x
		}
		for len(v) > 0 {
			b, n := e.Message(now, true, v)
			if n == 0 || len(b) > e.Most {
				t.Fatalf("%d flows in %d bytes of %d", n, len(b), e.Most)
			}
			_, records, err := read(b)
			if err != nil || len(records) != n {
				t.Fatalf("%d records of %d flows: %v", len(records), n, err)
			}
			for _, r := range records {
				be := binary.BigEndian
				if string(r[8])+string(r[12]) != string(addrs) || be.Uint16(r[7]) != sport || be.Uint16(r[11]) != dport || be.Uint64(r[133]) != dropped ||
					int64(be.Uint64(r[152])) != ms || string(r[82]) != where[:min(len(where), mostName)] {
					t.Fatalf("%v of %+v", r, x)
				}
			}
			v = v[n:]
		}
	})
}
