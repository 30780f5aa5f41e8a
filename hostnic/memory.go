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

// keyGenBits of an R_key are a generation, so that the key of a region that
// was deregistered opens no other.
const keyGenBits = 8

// Memory is the table of registered regions that remote ends may reach. A NIC
// has one; every R_key is checked in it with the bounds and rights of its
// region (IBTA 10.6, 9.7.4.1.5).
type Memory struct {
	regions []region
	free    []uint32
}

type region struct {
	open   bool
	gen    uint8
	access Access
	base   uint64
	size   uint64
	data   []byte // nil: a virtual region, whose bytes do not exist
}

// Register opens data to the remote end under the addresses from base on and
// returns its R_key. The bytes stay the caller's to read; what is written and
// when is told by completions.
func (m *Memory) Register(base uint64, data []byte, access Access) (rkey uint32, err error) {
	return m.register(region{base: base, size: uint64(len(data)), access: access, data: data})
}

// RegisterVirtual is Register without bytes: lengths and rights are checked,
// writes go nowhere, and reads and atomics answer zeros. For virtual time.
func (m *Memory) RegisterVirtual(base, size uint64, access Access) (rkey uint32, err error) {
	return m.register(region{base: base, size: size, access: access})
}

func (m *Memory) register(r region) (uint32, error) {
	if r.base+r.size < r.base {
		return 0, fmt.Errorf("memory region of %d bytes at %#x passes the end of the address space", r.size, r.base)
	}
	i := uint32(len(m.regions))
	if k := len(m.free); k > 0 {
		i, m.free = m.free[k-1], m.free[:k-1]
		r.gen = m.regions[i].gen + 1
	} else if i >= 1<<(32-keyGenBits) {
		return 0, fmt.Errorf("%d memory regions are registered: there are no more keys", i)
	} else {
		m.regions = append(m.regions, region{})
	}
	r.open = true
	m.regions[i] = r
	return i<<keyGenBits | uint32(r.gen), nil
}

// Deregister ends a region. What the remote end does with its key from now on
// is refused.
func (m *Memory) Deregister(rkey uint32) error {
	r := m.lookup(rkey)
	if r == nil {
		return fmt.Errorf("there is no memory region with the key %#x", rkey)
	}
	r.open, r.data = false, nil
	m.free = append(m.free, rkey>>keyGenBits)
	return nil
}

func (m *Memory) lookup(rkey uint32) *region {
	i := rkey >> keyGenBits
	if int(i) >= len(m.regions) {
		return nil
	}
	if r := &m.regions[i]; r.open && r.gen == uint8(rkey) {
		return r
	}
	return nil
}

// reach returns the region if the remote end may do need with the size bytes
// at va, nil if it may not.
func (m *Memory) reach(rkey uint32, va, size uint64, need Access) *region {
	r := m.lookup(rkey)
	if r == nil || r.access&need != need {
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
