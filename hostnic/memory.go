package hostnic

import (
	"encoding/binary"
	"fmt"
)

// Access is what the remote end may do with a memory region, as bits.
type Access uint8

const (
	RemoteWrite Access = 1 << iota
	RemoteRead
	RemoteAtomic
)

// Memory is the table of registered regions that remote ends may access. A NIC has one.
// It checks every R_key against the bounds and rights of its region, and against the
// queue pair to which it was granted (IBTA 10.6, 9.7.4.1.5): each queue pair is a
// protection domain of its own (10.2.3).
//
// Keys are random: a guess matches a key once in 2^32 attempts, each of which ends its
// queue pair.
type Memory struct {
	regions []region // by the low bits of their keys, of a length of 2^n
	open    int
	keys    Draws
}

type region struct {
	key    uint32 // 0: none
	of     uint32 // the key of the region that it is another key of; else 0
	owner  uint32 // number of the queue pair whose remote end may use it, plus 1; 0 for the region's own key, which no remote end may use
	access Access
	base   uint64
	size   uint64
	data   []byte // nil: a virtual region, whose bytes do not exist
}

// Regions returns how many regions are registered, and how many there may be.
func (m *Memory) Regions() (open, most int) { return m.open, maxRegions }

// maxRegions leaves enough numbers that are not keys.
const maxRegions = 1 << 20

// Register registers data as a region at the addresses from base on and returns its local
// key. Remote ends cannot use that key: NIC.Grant makes R_keys. The caller may keep
// reading the bytes; completions report what is written, and when.
func (m *Memory) Register(base uint64, data []byte, access Access) (rkey uint32, err error) {
	return m.register(region{base: base, size: uint64(len(data)), access: access, data: data})
}

// RegisterVirtual is Register without bytes: lengths and rights are checked,
// writes go nowhere, and reads and atomics answer zeros. For virtual time.
func (m *Memory) RegisterVirtual(base, size uint64, access Access) (rkey uint32, err error) {
	return m.register(region{base: base, size: size, access: access})
}

// grant returns an R_key of a region, which gives the remote end of a single queue pair
// access to it. It ends with the region, or by Deregister.
func (m *Memory) grant(key, qpn uint32) (rkey uint32, err error) {
	g := m.lookup(key)
	if g == nil || g.owner != 0 {
		return 0, unknownKey(key)
	}
	r := *g
	r.of, r.owner = key, qpn+1
	return m.register(r)
}

// revoke ends an R_key of a queue pair, if it has not ended with its region.
func (m *Memory) revoke(rkey, qpn uint32) {
	if r := m.lookup(rkey); r != nil && r.owner == qpn+1 {
		*r = region{}
		m.open--
	}
}

func (m *Memory) register(r region) (uint32, error) {
	if r.base+r.size < r.base {
		return 0, fmt.Errorf("memory region of %d bytes at %#x passes the end of the address space", r.size, r.base)
	}
	if m.open >= maxRegions {
		return 0, fmt.Errorf("%d memory regions are registered: there are no more keys", m.open)
	}
	if 2*m.open >= len(m.regions) {
		m.grow()
	}
	for {
		r.key = uint32(m.keys.Next())
		if at := m.at(r.key); r.key != 0 && at.key == 0 {
			*at = r
			m.open++
			return r.key, nil
		}
	}
}

// grow doubles the table. Keys that differ in their low bits still do with one
// bit more.
func (m *Memory) grow() {
	old := m.regions
	m.regions = make([]region, max(8, 2*len(old)))
	for _, r := range old {
		if r.key != 0 {
			*m.at(r.key) = r
		}
	}
}

// at returns the place of a key in a table that is not empty.
func (m *Memory) at(rkey uint32) *region { return &m.regions[rkey&uint32(len(m.regions)-1)] }

// Deregister ends a region, with all R_keys granted for it, or a single R_key. Later
// accesses of the remote end are refused.
func (m *Memory) Deregister(rkey uint32) error {
	r := m.lookup(rkey)
	if r == nil {
		return unknownKey(rkey)
	}
	*r = region{}
	m.open--
	for i := range m.regions {
		if m.regions[i].of == rkey {
			m.regions[i] = region{}
			m.open--
		}
	}
	return nil
}

func unknownKey(rkey uint32) error {
	return fmt.Errorf("there is no memory region with the key %#x", rkey)
}

func (m *Memory) lookup(rkey uint32) *region {
	if len(m.regions) == 0 || rkey == 0 {
		return nil
	}
	if r := m.at(rkey); r.key == rkey {
		return r
	}
	return nil
}

// reach returns the region if the remote end of a queue pair may do need with
// the size bytes at va, nil if it may not.
func (m *Memory) reach(qpn, rkey uint32, va, size uint64, need Access) *region {
	r := m.lookup(rkey)
	if r == nil || r.access&need != need || r.owner != qpn+1 {
		return nil
	}
	// Subtractions, since sums may overflow.
	if va < r.base || size > r.size || va-r.base > r.size-size {
		return nil
	}
	return r
}

// slice returns the bytes at va, nil in a virtual region.
func (r *region) slice(va, size uint64) []byte {
	if r.data == nil {
		return nil
	}
	return r.data[va-r.base:][:size:size]
}

// atomic does a fetch-add, or with compare a compare-swap, of the 64-bit word
// in b, and returns what it was. Words lie in memory as the host has them,
// little-endian; on the wire they are big-endian (IBTA 9.4.5).
func atomic(b []byte, compare bool, operand, expected uint64) uint64 {
	if b == nil {
		return 0
	}
	was := binary.LittleEndian.Uint64(b)
	switch {
	case !compare:
		binary.LittleEndian.PutUint64(b, was+operand)
	case was == expected:
		binary.LittleEndian.PutUint64(b, operand)
	}
	return was
}
