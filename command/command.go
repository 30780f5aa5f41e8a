// Package command is the encoding of what changes nodes (frame.Command): fields
// one after another, in a form that stays the same from version to version.
package command

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

// AppendString appends the length of s and its bytes.
func AppendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// zoned stands for the length of an IPv6 address that its zone follows.
const zoned = 17

// AppendAddr appends an address: its length, its bytes, and the zone if there is
// one. An address that is not valid has no bytes.
func AppendAddr(b []byte, a netip.Addr) []byte {
	s := a.AsSlice()
	if a.Zone() != "" {
		return AppendString(append(append(b, zoned), s...), a.Zone())
	}
	return append(append(b, byte(len(s))), s...)
}

// AppendPrefix appends the address and the length of a prefix.
func AppendPrefix(b []byte, p netip.Prefix) []byte {
	return append(AppendAddr(b, p.Addr()), byte(p.Bits()))
}

// Decoder takes fields off the front of B. From the first bad one on it gives
// zeros.
type Decoder struct {
	B   []byte
	bad bool
}

// Fail makes what was decoded bad.
func (d *Decoder) Fail() { d.bad, d.B = true, nil }

// Bad reports whether a field was.
func (d *Decoder) Bad() bool { return d.bad }

// Err returns an error if a field was bad, or if something is left. what names
// what was decoded.
func (d *Decoder) Err(what string) error {
	if d.bad || len(d.B) > 0 {
		return fmt.Errorf("%s is cut short or too long", what)
	}
	return nil
}

func (d *Decoder) take(n int) []byte {
	if n > len(d.B) {
		d.Fail()
		return make([]byte, n)
	}
	v := d.B[:n]
	d.B = d.B[n:]
	return v
}

// Byte takes a byte, which is no more than most.
func (d *Decoder) Byte(most byte) byte {
	v := d.take(1)[0]
	if v > most {
		d.Fail()
		return 0
	}
	return v
}

// Uvarint takes a number, which is no more than most.
func (d *Decoder) Uvarint(most uint64) uint64 {
	v, n := binary.Uvarint(d.B)
	if n <= 0 || v > most {
		d.Fail()
		return 0
	}
	d.B = d.B[n:]
	return v
}

// String takes a string of at most so many bytes.
func (d *Decoder) String(most int) string {
	return string(d.take(int(d.Uvarint(uint64(most)))))
}

// Addr takes an address.
func (d *Decoder) Addr() netip.Addr {
	n := int(d.Byte(zoned))
	if n == 0 {
		return netip.Addr{}
	}
	a, ok := netip.AddrFromSlice(d.take(min(n, 16)))
	if n == zoned {
		zone := d.String(255)
		if zone == "" || a.Is4In6() { // netip drops the zone of these
			d.Fail()
		}
		a = a.WithZone(zone)
	}
	if !ok {
		d.Fail()
	}
	return a
}

// Prefix takes a prefix, which is valid.
func (d *Decoder) Prefix() netip.Prefix {
	a, bits := d.Addr(), int(d.Byte(255))
	p := netip.PrefixFrom(a, bits)
	if !p.IsValid() {
		d.Fail()
	}
	return p
}
